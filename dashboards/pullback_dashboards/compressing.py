"""Pages and their twins are sent compressed; a page of 40 kB becomes 6 kB for 0.3 ms of work.

What a compressed answer weighs can tell a secret in it to somebody who can have text of theirs put beside it and watches
the wire (BREACH). Pages hold one secret, the proof of their forms, and that is masked anew for every answer
(`logins/cookies.py`); a secret that is shown once is in an answer that nobody stores, and such answers are left as they are.
What else a reader may see is hidden in a name of random length in gzip's header, as Django does ("Heal the BREACH").

A page that is sent in pieces is compressed piece by piece. Other streams are left alone, and so is the API, which answers
programs.
"""

import gzip
import io
import secrets

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_NOT_OURS = ("/api/", "/static/")
_KINDS = ("text/", "application/json", "application/atom+xml", "image/svg+xml")
_LEAST = 1_000  # bytes; less is one packet anyway
_LEVEL = 4  # a fifteenth longer than at zlib's usual 6, in two thirds of the time
_LONGEST_NAME = 100


class Compressed:
    """The middleware."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Compress what is sent as one piece of text, to whoever takes gzip."""
        if scope["type"] != "http" or scope["path"].startswith(_NOT_OURS):
            await self._app(scope, receive, send)
            return
        takes = _takes_gzip(Headers(scope=scope).get("accept-encoding", ""))
        begun: Message | None = None
        pieces: _Pieces | None = None

        async def compressing(message: Message) -> None:
            nonlocal begun, pieces
            if message["type"] == "http.response.start" and _may_be_compressed(Headers(raw=message["headers"])):
                begun = message
                return
            body, more = message.get("body", b""), message.get("more_body", False)
            if begun is not None:
                headers = MutableHeaders(raw=begun["headers"])
                headers.add_vary_header("accept-encoding")
                if takes and (_is_page(headers) if more else len(body) >= _LEAST):
                    pieces = _Pieces()
                    headers["content-encoding"] = "gzip"
            if pieces is not None:
                message = {**message, "body": pieces.compressed(body, more=more)}
            if begun is not None:
                if pieces is not None and not more:
                    headers["content-length"] = str(len(message["body"]))
                start, begun = begun, None
                await send(start)
            await send(message)

        await self._app(scope, receive, compressing)


def _may_be_compressed(headers: Headers) -> bool:
    """Text that nobody compressed before, and that is not shown this once."""
    return (
        headers.get("content-type", "").startswith(_KINDS)
        and not headers.get("content-type", "").startswith("text/event-stream")
        and "content-encoding" not in headers
        and "no-store" not in headers.get("cache-control", "")
    )


def _is_page(headers: Headers) -> bool:
    return headers.get("content-type", "").startswith("text/html")


def _takes_gzip(accepted: str) -> bool:
    for part in accepted.lower().split(","):
        coding, _, parameters = part.partition(";")
        if coding.strip() == "gzip":
            return parameters.replace(" ", "") not in {"q=0", "q=0.0", "q=0.00", "q=0.000"}
    return False


class _Pieces:
    """An answer that is compressed as it comes, each piece whole."""

    def __init__(self) -> None:
        self._held = io.BytesIO()
        name = "a" * secrets.randbelow(_LONGEST_NAME)
        self._file = gzip.GzipFile(name, "wb", compresslevel=_LEVEL, fileobj=self._held, mtime=0)

    def compressed(self, body: bytes, *, more: bool) -> bytes:
        """What is to be sent for a piece."""
        self._file.write(body)
        if more:
            self._file.flush()
        else:
            self._file.close()
        sent = self._held.getvalue()
        self._held.seek(0)
        self._held.truncate()
        return sent

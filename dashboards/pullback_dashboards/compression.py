"""Compression of pages and their formats: a page of 40 kB becomes 6 kB for 0.3 ms of work.

The size of a compressed answer can reveal a secret in it to an attacker who controls other text in it and watches the
wire (BREACH). Pages hold one secret, the proof of their forms, and that is masked anew for every answer
(`logins/cookies.py`); a secret that is shown once is in an answer that must not be stored, and such answers are not compressed.
What else a reader may see is hidden in a name of random length in gzip's header, as Django does ("Heal the BREACH").

Streams are left alone, and so is the API, which answers programs.
"""

import gzip
import io
import secrets
from contextlib import suppress

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pullback_service.background_threads import in_background
from pullback_service.errors import BusyError

_NOT_OURS = ("/api/", "/static/")
_KINDS = ("text/", "application/json", "application/atom+xml", "image/svg+xml")
_LEAST = 1_000  # bytes; less is one packet anyway
_LONG = 100_000  # takes a millisecond: in a thread
_LEVEL = 4  # a fifteenth longer than at zlib's usual 6, in two thirds of the time
_LONGEST_NAME = 100


class CompressionMiddleware:
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

        async def compressing(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start" and _may_be_compressed(Headers(raw=message["headers"])):
                begun = message
                return
            if begun is not None:
                start, begun = begun, None
                headers = MutableHeaders(raw=start["headers"])
                headers.add_vary_header("accept-encoding")
                if takes and not message.get("more_body", False) and len(message.get("body", b"")) >= _LEAST:
                    body = message["body"]
                    with suppress(BusyError):  # then it is sent as it is
                        packed = await in_background(_compressed, body) if len(body) >= _LONG else _compressed(body)
                        message = {**message, "body": packed}
                        headers["content-encoding"] = "gzip"
                        headers["content-length"] = str(len(packed))
                await send(start)
            await send(message)

        await self._app(scope, receive, compressing)


def _may_be_compressed(headers: Headers) -> bool:
    """Text that nobody compressed before, and that is not shown this once."""
    return (
        headers.get("content-type", "").startswith(_KINDS)
        and "content-encoding" not in headers
        and "no-store" not in headers.get("cache-control", "")
    )


def _takes_gzip(accepted: str) -> bool:
    for part in accepted.lower().split(","):
        coding, _, parameters = part.partition(";")
        if coding.strip() == "gzip":
            return parameters.replace(" ", "") not in {"q=0", "q=0.0", "q=0.00", "q=0.000"}
    return False


def _compressed(body: bytes) -> bytes:
    buffer = io.BytesIO()
    name = "a" * secrets.randbelow(_LONGEST_NAME)
    with gzip.GzipFile(name, "wb", compresslevel=_LEVEL, fileobj=buffer, mtime=0) as file:
        file.write(body)
    return buffer.getvalue()

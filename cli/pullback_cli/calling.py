"""A service as commands ask it for something: an answer, or one sentence with what to do."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

import httpx

from pullback_cli.refusals import RefusalError

TOKEN_VARIABLE = "PULLBACK_TOKEN"  # noqa: S105 - the name of a variable, not a secret
HIGHEST_LIMIT = 1000

Item = dict[str, Any]


class Service:
    """One service; every refusal of it is a sentence on the command line."""

    def __init__(self, server: str, token_file: Path | None, *, timeout_s: float = 30) -> None:
        if not server.startswith(("http://", "https://")):
            raise RefusalError(f"--server {server!r} is not an address like http://127.0.0.1:8000")
        self._server = server
        token = os.environ.get(TOKEN_VARIABLE) if token_file is None else _read(token_file)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._http = httpx.Client(base_url=server.rstrip("/"), headers=headers, timeout=timeout_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def get(self, path: str, **query: object) -> Item:
        """A thing, or a page of a list."""
        return self._answer("GET", path, params=_said(query))

    def post(self, path: str, body: Mapping[str, object] | None = None, **query: object) -> Item:
        """What became of a wish."""
        return self._answer("POST", path, json=body, params=_said(query))

    def patch(self, path: str, body: Mapping[str, object]) -> Item:
        """A thing after a change."""
        return self._answer("PATCH", path, json=body)

    def text(self, path: str) -> Iterator[str]:
        """A log, piece by piece, as far as it is written."""
        offset = 0
        while True:
            answer = self._send("GET", path, params={"offset": offset})
            yield answer.content.decode(errors="replace")
            following = int(answer.headers["Pullback-Next-Offset"])
            if following == offset or following >= int(answer.headers["Pullback-Log-Size"]):
                return
            offset = following

    def items(self, path: str, *, most: int, **query: object) -> list[Item]:
        """A list, page after page, as far as `most`."""
        found: list[Item] = []
        cursor: str | None = None
        while len(found) < most:
            page = self.get(path, limit=min(most - len(found), HIGHEST_LIMIT), cursor=cursor, **query)
            found += page["items"]
            cursor = page["next"]
            if cursor is None:
                break
        return found

    def _answer(self, method: str, path: str, **parts: Any) -> Item:
        try:
            answer = self._send(method, path, **parts).json()
        except ValueError as error:
            raise RefusalError(f"{self._server} did not answer with JSON: is it a Pullback service?") from error
        if not isinstance(answer, dict):
            raise RefusalError(f"{self._server} did not answer with a JSON object: is it a Pullback service?")
        return answer

    def _send(self, method: str, path: str, **parts: Any) -> httpx.Response:
        try:
            response = self._http.request(method, path, **parts)
        except httpx.TransportError as error:
            raise RefusalError(
                f"{self._server} does not answer ({error}): check --server, or start one with `pullback up`"
            ) from error
        if response.is_success:
            return response
        try:
            detail = str(response.json()["detail"])
        except (ValueError, KeyError, TypeError):
            detail = f"{self._server} answered {response.status_code}: is it a Pullback service?"
        raise RefusalError(detail)


def _said(query: Mapping[str, object]) -> dict[str, str]:
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in query.items()
        if value is not None
    }


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise RefusalError(f"the token file {file} cannot be read: name a file that holds a token") from error

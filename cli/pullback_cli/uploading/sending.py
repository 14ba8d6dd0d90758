"""One upload: a body, what is said beside it, and the answer."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import httpx

from pullback_cli.credentials import token_in
from pullback_cli.refusals import RefusalError

_TIMEOUT_S = 120
_AGAIN = "run the same command again: what is stored already is not stored twice"


class MissingError(RefusalError):
    """The service needs something said that the file leaves unsaid; `names` are the parameters."""

    def __init__(self, detail: str, names: frozenset[str]) -> None:
        super().__init__(detail)
        self.names = names


class Uploads:
    """Uploads to one service."""

    def __init__(self, server: str, token_file: Path | None) -> None:
        if not server.startswith(("http://", "https://")):
            raise RefusalError(f"--server {server!r} is not an address like http://127.0.0.1:8000")
        token = token_in(token_file)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._http = httpx.Client(base_url=server, headers=headers, timeout=httpx.Timeout(_TIMEOUT_S, connect=10))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def send(self, body: bytes, said: Mapping[str, str | None], *, name: str) -> tuple[dict[str, Any], bool]:
        """The receipt, and whether this upload stored something."""
        query = {key: value for key, value in said.items() if value is not None}
        try:
            response = self._http.post("/api/v1/reports", params=query, content=body)
        except httpx.TransportError as error:
            raise RefusalError(f"{name}: the service does not answer ({error}); {_AGAIN}") from error
        if response.is_success:
            receipt: dict[str, Any] = response.json()
            return receipt, response.status_code == httpx.codes.CREATED
        raise _refusal(response, name)


def _refusal(response: httpx.Response, name: str) -> RefusalError:
    try:
        problem = response.json()
        detail = str(problem["detail"])
    except (ValueError, KeyError, TypeError):
        return RefusalError(f"{name}: the service answered {response.status_code}; is this a Pullback service?")
    paths = [str(error.get("path", "")) for error in problem.get("errors", ())]
    names = frozenset(path.removeprefix("query.") for path in paths if path.startswith("query."))
    if response.status_code == httpx.codes.BAD_REQUEST and names:
        return MissingError(f"{name}: {detail}", names)
    return RefusalError(f"{name}: {detail}" + (f" {_AGAIN.capitalize()}." if response.is_server_error else ""))

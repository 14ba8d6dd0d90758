"""A client that costs little of the processor that it shares with the service: one kept connection, plain `http.client`."""

import http.client
import time
from dataclasses import dataclass
from typing import Any

import orjson

TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer and how long it took, from before sending to after the last byte."""

    status: int
    body: bytes
    seconds: float
    headers: Any

    def json(self) -> Any:
        """The body as JSON."""
        return orjson.loads(self.body)


class Connection:
    """One connection to the service."""

    def __init__(self, port: int, token: str) -> None:
        self._http = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
        self._headers = {"Authorization": f"Bearer {token}"}

    def get(self, path: str) -> Answer:
        """Ask."""
        return self.send("GET", path)

    def post(self, path: str, content: object) -> Answer:
        """Send JSON."""
        return self.send("POST", path, orjson.dumps(content))

    def send(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Answer:
        """Send a request and read all of its answer."""
        given = self._headers | headers | ({"Content-Type": "application/json"} if body is not None else {})
        started = time.perf_counter()
        try:
            self._http.request(method, path, body, given)
            response = self._http.getresponse()
        except ConnectionError:  # closed while nothing was said on it
            self._http.close()
            started = time.perf_counter()
            self._http.request(method, path, body, given)
            response = self._http.getresponse()
        content = response.read()
        return Answer(response.status, content, time.perf_counter() - started, response.headers)

    def close(self) -> None:
        """Close it."""
        self._http.close()

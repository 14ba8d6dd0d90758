"""Clients that cost little of the processors that they share with the service.

One kept connection each: of plain `http.client`, and for many small uploads of bare bytes on a socket.
"""

import http.client
import re
import socket
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

    def __init__(self, port: int, token: str | None) -> None:
        self._http = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}

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


class BarePosts:
    """Posts of JSON to one path on one connection, written and read as bytes: 0.05 ms each where `http.client` takes 0.5."""

    def __init__(self, port: int, token: str, path: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._head = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
            "Content-Type: application/json\r\nContent-Length: "
        ).encode()

    def post(self, body: bytes) -> tuple[int, bytes, float]:
        """Status and body of the answer, and seconds until all of it was here."""
        started = time.perf_counter()
        self._socket.sendall(b"%b%d\r\n\r\n%b" % (self._head, len(body), body))
        answer = b""
        while (split := answer.find(b"\r\n\r\n")) < 0:
            answer += self._received()
        head, content = answer[:split], answer[split + 4 :]
        length = _LENGTH.search(head)
        if length is None:
            raise RuntimeError(f"An answer without a length: {head[:500]!r}")
        while len(content) < int(length[1]):
            content += self._received()
        return int(head[9:12]), content, time.perf_counter() - started

    def close(self) -> None:
        """Close it."""
        self._socket.close()

    def _received(self) -> bytes:
        piece = self._socket.recv(65536)
        if not piece:
            raise ConnectionError("The service closed the connection in the middle of an answer.")
        return piece


_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)

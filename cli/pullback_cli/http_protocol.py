"""HTTP connections that send a request, or are closed. What comes to no request is counted: no line of the log is about it."""

import asyncio
from collections.abc import Callable
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_WITHIN_S = 20.0
"""Time for the head of a request, from the first byte to the last: half a head holds a connection, and names nobody."""


class BoundedHeadProtocol(H11Protocol):
    """uvicorn's protocol, with bounds on connections and on how long a head may take. Idle ones have their own (`timeout_keep_alive`).

    `refused` is called with the kind of a connection that was closed before a request was read.
    """

    _due: asyncio.TimerHandle | None = None
    _sent_nothing = True

    def __init__(self, *arguments: Any, most: int, refused: Callable[[str], None], **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._most = most
        self._refused = refused

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first head."""
        super().connection_made(transport)
        if len(self.connections) > self._most:
            self._refused("too-many-connections")
            transport.close()
        else:
            self._due = self.loop.call_later(HEAD_WITHIN_S, self._cut)

    def data_received(self, data: bytes) -> None:
        """Read on. While the other side is about to send a head the time runs, however often a byte of it comes."""
        self._sent_nothing = False
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop()
        elif self._due is None:
            self._due = self.loop.call_later(HEAD_WITHIN_S, self._cut)

    def send_400_response(self, msg: str) -> None:
        """Answer what is no request."""
        self._refused("no-http")
        super().send_400_response(msg)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting. Whoever leaves in the middle of a head did not end it either."""
        if self._due is not None and not self._sent_nothing and self.conn.their_state is h11.IDLE:
            self._refused("head-left")
        self._stop()
        super().connection_lost(exc)

    def _cut(self) -> None:
        self._due = None
        self._refused("nothing-sent" if self._sent_nothing else "head-cut")
        self.transport.close()

    def _stop(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None

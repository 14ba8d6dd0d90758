"""HTTP connections that send a request, or are closed."""

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_WITHIN_S = 20.0
"""Time for the head of a request, from the first byte to the last: half a head holds a connection, and names nobody."""


class BoundedHeadProtocol(H11Protocol):
    """uvicorn's protocol, with a bound on how long a head may take. Idle connections have their own (`timeout_keep_alive`)."""

    _due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first head."""
        super().connection_made(transport)
        self._due = self.loop.call_later(HEAD_WITHIN_S, transport.close)

    def data_received(self, data: bytes) -> None:
        """Read on. While the other side is about to send a head the time runs, however often a byte of it comes."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop()
        elif self._due is None:
            self._due = self.loop.call_later(HEAD_WITHIN_S, self.transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop()
        super().connection_lost(exc)

    def _stop(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None

"""HTTP connections that send a request, or are closed. What comes to no request is counted: no line of the log is about it."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from pullback_service.client_network import network_of

HEAD_WITHIN_S = 20.0
"""Time for the head of a request, from the first byte to the last: half a head holds a connection, and names nobody."""
HEADS_AT_ONCE = 16
SHORT_HEAD_BYTES = 16 * 1024
"""A head of so many bytes is always read, as by most servers; a longer one while all that are not whole have MOST_HEAD_BYTES at most."""
MOST_HEAD_BYTES = 64 * 1024 * 1024
SHARE = 4
"""One network may have a quarter of the connections, unless it is that of a trusted proxy."""
BODY_ROUND_S = 20.0
BODY_ROUND_BYTES = 20 * 1024
"""The bytes of a body that must come in each round, unless it ends: one kilobyte a second. A slower one would hold a connection for ever."""


class Heads:
    """State that the connections of a process share: bytes of heads that are not whole, and the number of connections by network.

    Heads are read in turns: a few each time that the event loop looks at its connections, of those that wait the newest first.

    A thousand that come at once would else all be read, 0.2 ms each, before anybody else is looked at.
    """

    def __init__(self) -> None:
        self._left = HEADS_AT_ONCE
        self._waiting: list[Callable[[], None]] = []
        self.held_bytes = 0
        self.of_network: Counter[str] = Counter()

    def take(self, loop: asyncio.AbstractEventLoop, read: Callable[[], None]) -> None:
        """Read a head at once, or in its turn."""
        if self._left == HEADS_AT_ONCE:
            loop.call_soon(self._begin_round, loop)
        if self._left:
            self._left -= 1
            read()
        else:
            self._waiting.append(read)

    def _begin_round(self, loop: asyncio.AbstractEventLoop) -> None:
        self._left = HEADS_AT_ONCE
        for read in [self._waiting.pop() for _ in self._waiting[:HEADS_AT_ONCE]]:
            self.take(loop, read)


class BoundedHeadProtocol(H11Protocol):
    """uvicorn's protocol, with bounds on connections and on how slowly a request may come. Idle ones have their own (`timeout_keep_alive`).

    Heads are read in turns. `refused` is called with the kind of a connection that was closed before a request was read.
    """

    _due: asyncio.TimerHandle | None = None
    _sent_nothing = True
    _unread = b""
    _round: asyncio.TimerHandle | None = None
    _came_in_round = 0
    _held_bytes = 0
    _network: str | None = None

    def __init__(self, *arguments: Any, most: int, heads: Heads, refused: Callable[[str], None], **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._heads = heads
        self._most = most
        self._refused = refused

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first head."""
        super().connection_made(transport)
        self._count()
        if len(self.connections) > self._most:
            self._refused("too-many-connections")
            transport.close()
        elif self._network is not None and self._heads.of_network[self._network] > self._most // SHARE:
            self._refused("connections-of-one-address")
            transport.close()
        else:
            self._due = self.loop.call_later(HEAD_WITHIN_S, self._cut)

    def data_received(self, data: bytes) -> None:
        """Read on. While the other side is about to send a head the time runs, however often a byte of it comes."""
        self._sent_nothing = False
        if self.conn.their_state is not h11.IDLE:
            self._came_in_round += len(data)
            self._read(data)
        elif self._unread:
            self._unread += data  # what came before waits for its turn
        else:
            self._unread = data
            self._heads.take(self.loop, self._read_head)
            if self._unread:
                self.flow.pause_reading()

    def _read_head(self) -> None:
        data, self._unread = self._unread, b""
        if not self.transport.is_closing():
            self.flow.resume_reading()
            self._read(data)

    def _read(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._hold(0)
            self._stop()
        elif not self._hold(self._held_bytes + len(data)):
            self._stop()
            self._refused("heads-too-long")
            self.transport.close()
        elif self._due is None:
            self._due = self.loop.call_later(HEAD_WITHIN_S, self._cut)

    def _count(self) -> None:
        """Count a connection for its network, unless it is that of a proxy, which brings those of everybody."""
        if self.client is not None and self.client[0] not in getattr(self.app, "trusted_hosts", ()):
            self._network = network_of(self.client[0])
            self._heads.of_network[self._network] += 1

    def _hold(self, held_bytes: int) -> bool:
        """Count the bytes of a head that is not whole; False if they are too many beside those of all others."""
        self._heads.held_bytes += held_bytes - self._held_bytes
        self._held_bytes = held_bytes
        return held_bytes <= SHORT_HEAD_BYTES or self._heads.held_bytes <= MOST_HEAD_BYTES

    def handle_events(self) -> None:
        """Take in what has come, and watch over a body that has not ended; also one that nobody reads, behind its answer."""
        super().handle_events()
        if self.conn.their_state is not h11.SEND_BODY:
            self._end_round()
        elif self._round is None:
            self._begin_round()

    def _begin_round(self) -> None:
        self._came_in_round = 0
        self._round = self.loop.call_later(BODY_ROUND_S, self._judge_round)

    def _judge_round(self) -> None:
        if self._came_in_round >= BODY_ROUND_BYTES or self.flow.read_paused:  # paused: it is we who are slow
            self._begin_round()
        else:
            self._refused("body-cut")
            self.transport.close()

    def _end_round(self) -> None:
        if self._round is not None:
            self._round.cancel()
            self._round = None

    def send_400_response(self, msg: str) -> None:
        """Answer what is no request."""
        self._refused("no-http")
        super().send_400_response(msg)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting. Whoever leaves in the middle of a head did not end it either."""
        if self._due is not None and not self._sent_nothing and self.conn.their_state is h11.IDLE:
            self._refused("head-left")
        self._stop()
        self._end_round()
        self._hold(0)
        if self._network is not None:
            self._heads.of_network[self._network] -= 1
            if not self._heads.of_network[self._network]:
                del self._heads.of_network[self._network]
        super().connection_lost(exc)

    def _cut(self) -> None:
        self._due = None
        self._refused("nothing-sent" if self._sent_nothing else "head-cut")
        self.transport.close()

    def _stop(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None

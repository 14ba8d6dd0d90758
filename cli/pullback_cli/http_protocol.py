"""HTTP connections that send a request, or are closed. What comes to no request is counted: no line of the log is about it."""

import asyncio
import socket
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import h11
import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.flow_control import CLOSE_HEADER
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
UNREAD_BYTES = 80 * 1024 * 1024
"""The part of a body that is read and dropped when its request is answered early: what is left of the longest upload."""
UNREAD_S = 10.0
UNREAD_SILENCE_S = 1.0
"""Time for the next part of such a body: who waits for the answer before it sends more gets it then."""
LAST_REQUEST_S = 1.0
"""Time for a request that was on its way, by a kept connection, when the process was asked to end."""


class Heads:
    """State that the connections of a process share: bytes of heads that are not whole, and the number of connections by network.

    Heads are read in turns: a few each time that the event loop looks at its connections, of those that wait the newest first.

    A thousand that come at once would else all be read, 0.2 ms each, before anybody else is looked at.
    """

    def __init__(self) -> None:
        self._left = HEADS_AT_ONCE
        self._waiting: list[Callable[[], None]] = []
        self.held_bytes = 0
        self.are_last = False  # the process ends: each connection may have one request more
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
    _is_last = False
    _left_bytes: int | None = None  # of a body whose request is answered; None while there is none

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
            if self._heads.are_last:
                self.shutdown()

    def data_received(self, data: bytes) -> None:
        """Read on. While the other side is about to send a head the time runs, however often a byte of it comes."""
        self._sent_nothing = False
        if self._left_bytes is not None:
            self._left_bytes -= len(data)
            if self._left_bytes < 0:
                self._cut_body()
        elif self.conn.their_state is not h11.IDLE:
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
        if self._is_last:
            self._end_with_answer()
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
            self._cut_body()

    def _cut_body(self) -> None:
        self._refused("body-cut")
        self.transport.close()

    def on_response_complete(self) -> None:
        """Go on to the next request, unless the body of this one has not ended: then whatever comes is dropped, and none of it is read as a request.

        A connection that is closed while bytes of it are on their way is reset, and the other side may lose the answer.
        """
        super().on_response_complete()
        states = self.conn.our_state, self.conn.their_state
        if states == (h11.DONE, h11.SEND_BODY) and not self.transport.is_closing():
            self._left_bytes = UNREAD_BYTES
            self._unset_keepalive_if_required()
            self._end_round()
            self._round = self.loop.call_later(UNREAD_S, self._cut_body)
            self.transport.write_eof()

    def shutdown(self) -> None:
        """Answer the request that is under way, or comes within LAST_REQUEST_S, and close the connection behind it.

        One that was sent by a kept connection before the other side learned of its end would be lost.
        """
        self._is_last = True
        self._end_with_answer()
        self.loop.call_later(LAST_REQUEST_S, self._end_idle)

    def _end_with_answer(self) -> None:
        if self._is_answering() and self.cycle.keep_alive:
            self.cycle.keep_alive = False
            self.cycle.default_headers = [*self.cycle.default_headers, CLOSE_HEADER]

    def _end_idle(self) -> None:
        if not self._is_answering():
            self.transport.close()

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete  # type: ignore[redundant-expr]  # None before the first request

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


class DropUnreadBody:
    """Middleware that reads the rest of a body, and drops it, before an answer that did not wait for it.

    Many senders look for an answer when they have sent all, and a proxy that has one earlier closes the connection to its sender:
    the reason of the refusal would get lost on the way.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        names = {name for name, _ in scope["headers"]}
        is_coming = b"expect" not in names  # who waits for 100 Continue sends no body unless it is read
        has_more = bool(names & {b"content-length", b"transfer-encoding"})

        async def receive_part() -> Message:
            nonlocal is_coming, has_more
            is_coming = True
            message = await receive()
            has_more = message.get("more_body", False)
            return message

        async def send_behind(message: Message) -> None:
            left = UNREAD_BYTES if is_coming and message["type"] == "http.response.start" else 0
            with suppress(TimeoutError):
                async with asyncio.timeout(UNREAD_S):
                    while has_more and left > 0:
                        async with asyncio.timeout(UNREAD_SILENCE_S):
                            left -= len((await receive_part()).get("body", b""))
            await send(message)

        await self._app(scope, receive_part, send_behind)


class Server(uvicorn.Server):
    """uvicorn's server, which answers whoever has reached it before it ends.

    It calls `warn` at once, goes on for `drain_s`, in which those that ask for its readiness turn to another process, and calls `let_go`.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        *,
        heads: Heads,
        warn: Callable[[], None],
        let_go: Callable[[], Awaitable[None]],
        drain_s: float,
    ) -> None:
        super().__init__(config)
        self._heads = heads
        self._warn = warn
        self._let_go = let_go
        self._drain_s = drain_s

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop listening, and end with the last answer."""
        loop = asyncio.get_running_loop()
        self._warn()
        drained_at = loop.time() + self._drain_s
        while loop.time() < drained_at and not self.force_exit:  # noqa: ASYNC110 - a flag of uvicorn's
            await asyncio.sleep(0.1)
        await self._let_go()
        self._heads.are_last = True
        for listening in sockets or ():
            await self._stop_listening(loop, listening)
        await super().shutdown(sockets)

    async def _stop_listening(self, loop: asyncio.AbstractEventLoop, listening: socket.socket) -> None:
        """Accept who is connected: the system resets the connections in the queue of a socket that is closed."""
        loop.remove_reader(listening.fileno())
        await asyncio.sleep(0)  # what was accepted until now gets its connection
        accepted: list[socket.socket] = []
        with suppress(OSError):  # none is left
            accepted.extend(listening.accept()[0] for _ in range(self.config.backlog))
        for server in self.servers:
            server.close()
        for each in accepted:
            each.setblocking(False)
            await loop.connect_accepted_socket(self._protocol, each)

    def _protocol(self) -> asyncio.Protocol:
        kind: Callable[..., asyncio.Protocol] = self.config.http_protocol_class
        return kind(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)

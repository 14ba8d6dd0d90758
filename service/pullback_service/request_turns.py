"""Fair turns for requests: a caller that sends a thousand at once cannot keep others from the event loop or the connections."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from typing import Final
from weakref import WeakValueDictionary

ROUNDS: Final = 4
"""Times that the event loop looks at its connections before the next of those that wait may begin: what has begun goes on meanwhile."""


class RequestTurns:
    """The turns of requests to begin: one each few times that the event loop looks at its connections, of one caller after the other.

    Otherwise a thousand simultaneous requests would all begin before any other is considered, and each of the
    statements that an upload sends one after another would wait for as many of them. Of one caller the newest is
    first: it is still waited for, while of
    those that wait for long many have been given up.
    """

    def __init__(self) -> None:
        self._waiting: OrderedDict[Hashable, list[asyncio.Future[None]]] = OrderedDict()
        self._taken_in: asyncio.AbstractEventLoop | None = None

    async def turn(self, caller: Hashable) -> None:
        """Wait for a turn of a caller; who comes alone has it at once."""
        loop = asyncio.get_running_loop()
        if self._taken_in is loop:
            self._waiting.setdefault(caller, []).append(turn := loop.create_future())
            await turn
        else:  # whoever waited in another loop was ended with it
            self._waiting, self._taken_in = OrderedDict(), loop
            loop.call_soon(self._next, loop, ROUNDS)

    def _next(self, loop: asyncio.AbstractEventLoop, rounds: int) -> None:
        if self._waiting and rounds:
            loop.call_soon(self._next, loop, rounds - 1)
            return
        while self._waiting:
            caller, turns = self._waiting.popitem(last=False)
            turn = turns.pop()
            if turns:
                self._waiting[caller] = turns  # behind the others
            if not turn.done():  # whoever waited may have been cut off
                turn.set_result(None)
                loop.call_soon(self._next, loop, ROUNDS)
                return
        self._taken_in = None


class ReadingTurns:
    """The turns of callers to read: each has so many at a time, and others wait."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._of_callers: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    @asynccontextmanager
    async def of(self, caller: str) -> AsyncIterator[None]:
        """A turn of this caller."""
        turn = self._of_callers.setdefault(caller, asyncio.Semaphore(self._most))
        async with turn:
            yield


class FileTurns(ReadingTurns):
    """The turns of callers to read the further batches of files: each has one at a time."""

    def __init__(self) -> None:
        super().__init__(1)

"""A few threads for work that keeps a processor busy, while the event loop serves other requests.

Views and pages in all formats are made here, and long documents read. Two threads, for only one runs Python at a time, and the
event loop has to wait for each of them before it may go on (`SWITCH_INTERVAL_S` of `pullback serve`).
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from contextvars import copy_context
from functools import partial
from threading import BoundedSemaphore, Lock
from typing import Final, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.errors import BusyError, TooManyRequestsError
from pullback_service.request_work import counted, current

MOST_AT_ONCE: Final = 2
MOST_WAITING: Final = 64
"""The most waiting requests; more are answered 503, because the last of them would wait for seconds."""
MOST_OF_ONE: Final = 16
"""The most of these for one caller, to leave room for others; more than a browser requests at a time."""
MOST_LARGE_WAITING: Final = 5
MOST_WAIT_S: Final = 2.0
"""The time that one request may wait for threads, however often it needs one; it is answered 503 where it would wait longer."""
COME_AGAIN_S: Final = 5

P = ParamSpec("P")
T = TypeVar("T")


class BackgroundThreads:
    """A few threads, and those who wait for their turn in them."""

    def __init__(self, most_at_once: int, most_waiting: int) -> None:
        self._threads = ThreadPoolExecutor(most_at_once, "aside")
        self._places = BoundedSemaphore(most_at_once + most_waiting)
        self._of_callers: Counter[str] = Counter()
        self._counting = Lock()

    async def after(self, session: AsyncSession, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The same, with the connection of the session given back meanwhile: its next statement begins anew."""
        await session.commit()
        return await self(work, *args, **kwargs)

    async def __call__(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `work` in a thread; BusyError where too many wait for one or it waits too long, TooManyRequestsError where one caller has too many there."""
        request = current()
        payer = None if request is None else request.payer
        if payer is not None and self._of_callers[payer] >= MOST_OF_ONE:
            raise TooManyRequestsError(
                f"{MOST_OF_ONE} pages are being made for this caller: wait {COME_AGAIN_S} s, then ask again.",
                retry_after_s=COME_AGAIN_S,
                kind="pages-of-one-caller",
            )
        if not self._places.acquire(blocking=False):
            raise _busy()
        self._take_place(payer, 1)
        left = [partial(counted, work, *args, **kwargs)]
        came = time.monotonic()
        may_wait_s = MOST_WAIT_S - (0 if request is None else request.waited_s)

        def begin() -> T:
            if request is not None:
                request.waited_s += time.monotonic() - came
            return left.pop()()

        done = self._threads.submit(copy_context().run, begin)
        done.add_done_callback(lambda _: self._leave(payer))  # not before, although whoever asked may have left
        answer = asyncio.wrap_future(done)
        try:
            await asyncio.wait((answer,), timeout=max(may_wait_s, 0))
            if done.cancel():  # it has not begun
                raise _busy()
            return await answer
        finally:
            if done.cancel():
                left.clear()  # the threads keep what was cancelled until its turn, and a report may be large
            answer.cancel()

    def _leave(self, payer: str | None) -> None:
        self._places.release()
        self._take_place(payer, -1)

    def _take_place(self, payer: str | None, places: int) -> None:
        if payer is not None:
            with self._counting:
                self._of_callers[payer] += places
                if not self._of_callers[payer]:
                    del self._of_callers[payer]


class ReadTurns:
    """Turns of those who read so much that two of them at once are done no sooner: Postgres would take all processors for them."""

    def __init__(self, most_waiting: int) -> None:
        self._most_waiting = most_waiting
        self._waiting = 0
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()

    @asynccontextmanager
    async def after(self, session: AsyncSession) -> AsyncIterator[None]:
        """A block that one runs at a time, its session's connection given back meanwhile; BusyError where too many wait, or it waits too long."""
        await session.commit()
        lock = self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock())
        if self._waiting >= self._most_waiting:
            raise _busy()
        request, came = current(), time.monotonic()
        self._waiting += 1
        try:
            async with asyncio.timeout(MOST_WAIT_S - (0 if request is None else request.waited_s)):
                await lock.acquire()
        except TimeoutError:
            raise _busy() from None
        finally:
            self._waiting -= 1
            if request is not None:
                request.waited_s += time.monotonic() - came
        try:
            yield
        finally:
            lock.release()


def _busy() -> BusyError:
    return BusyError(
        f"All page workers are busy: wait {COME_AGAIN_S} s, then ask again.",
        retry_after_s=COME_AGAIN_S,
        kind="busy-with-pages",
    )


in_background: Final = BackgroundThreads(MOST_AT_ONCE, MOST_WAITING)
"""The threads of this process."""
large_in_background: Final = BackgroundThreads(1, MOST_LARGE_WAITING)
"""One for what takes much memory and seconds: a second one of it would take as much again, and is no sooner done."""
large_reads: Final = ReadTurns(MOST_LARGE_WAITING)
"""The turns of this process."""

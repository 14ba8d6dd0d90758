"""The work that a request costs, and who pays for it.

Work is processor time of whatever serves the request, in its task and in threads, and the time from its statements to their
answers. What waits for anything else, a turn or more of a log, costs nothing.
"""

import time
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from types import coroutine
from typing import Any, Final, ParamSpec, TypeVar

from anyio import to_thread

REQUEST_S: Final = 0.001
"""Work charged for each request in addition to the measured work, for reading its head, logging and sending."""
_NANO: Final = 1e-9

P = ParamSpec("P")
T = TypeVar("T")

Pay = Callable[[float], object]


class RequestWork:
    """The work of one request, in seconds, as far as it is done."""

    __slots__ = ("_pay", "_unpaid_s", "payer", "refused", "seconds", "waited_s")

    def __init__(self) -> None:
        self.seconds = 0.0
        self.waited_s = 0.0
        """The time that it waited for threads."""
        self.payer: str | None = None
        """The one who pays; None if nobody has to."""
        self.refused: str | None = None
        """The kind of its refusal, if it was refused."""
        self._pay: Pay | None = None
        self._unpaid_s = 0.0

    def paid_by(self, payer: str, pay: Pay) -> None:
        """Charge this payer from now on, and for the work that is not charged yet."""
        self.payer, self._pay = payer, pay
        pay(self._unpaid_s)
        self._unpaid_s = 0.0

    def spend(self, seconds: float) -> None:
        """Add work that was done: at once, for a thread may go on when the caller has left."""
        self.seconds += seconds
        if self._pay is None:
            self._unpaid_s += seconds
        else:
            self._pay(seconds)


_current: ContextVar[RequestWork | None] = ContextVar("work", default=None)


def current() -> RequestWork | None:
    """The work of the request that is being served; None in chores."""
    return _current.get()


async def serve(work: RequestWork, serving: Coroutine[Any, Any, T]) -> T:
    """Run what serves a request, as work of its own."""
    before = _current.set(work)
    try:
        return await metered(serving)
    finally:
        _current.reset(before)


@coroutine
def metered(awaited: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
    """Await, and count the processor time between one wait and the next as work of the request."""
    work, spent_ns = _current.get(), 0
    step: Callable[[], Any] = partial(awaited.send, None)
    try:
        while True:
            began = time.thread_time_ns()
            try:
                waited_for = step()
            except StopIteration as ended:
                return ended.value  # type: ignore[no-any-return]  # as a coroutine gives it
            finally:
                spent_ns += time.thread_time_ns() - began
            try:
                step = partial(awaited.send, (yield waited_for))
            except BaseException as error:  # noqa: BLE001 - whatever it is, it is meant for what is awaited
                step = partial(awaited.throw, error)
    finally:
        if work is not None:
            work.spend(spent_ns * _NANO)


def counted(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function in a thread of its own, as work of the request in whose context the thread runs."""
    began = time.thread_time_ns()
    try:
        return function(*args, **kwargs)
    finally:
        work = _current.get()
        if work is not None:
            work.spend((time.thread_time_ns() - began) * _NANO)


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The same in one of the framework's threads."""
    return await to_thread.run_sync(partial(counted, function, *args, **kwargs))


@contextmanager
def waiting_for_database() -> Iterator[None]:
    """Count the time until a statement is answered."""
    work = _current.get()
    if work is None:
        yield
        return
    began = time.perf_counter()
    try:
        yield
    finally:
        work.spend(time.perf_counter() - began)

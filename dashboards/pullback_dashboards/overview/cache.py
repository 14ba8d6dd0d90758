"""A cache of results that only an upload changes: the standing of all cases of a machine, the changes at its newest commits, and the view.

They are made for every visit of the overview and of its filters and pages, and are the same until the next upload. The
newest upload and the newest commits are part of the key; what else may move (a log that orders history anew, a report that
is taken back) is noticed after a minute.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

T = TypeVar("T")

KEPT_FOR_S = 60.0


class TimedCache(Generic[T]):
    """The last few answers, by their keys. Nothing but the event loop of one process uses it."""

    def __init__(self, most: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._clock = clock
        self._kept: OrderedDict[Hashable, tuple[float, T]] = OrderedDict()
        self._reading: WeakValueDictionary[Hashable, asyncio.Lock] = WeakValueDictionary()

    async def get(self, key: Hashable, read: Callable[[], Awaitable[T]]) -> T:
        """The answer for a key: as kept, or as read now. Of several who ask at once, one reads and the others wait for it."""
        lock = self._reading.setdefault(key, asyncio.Lock())
        async with lock:
            result = self.kept(key)
            return self.keep(key, await read()) if result is None else result

    def kept(self, key: Hashable) -> T | None:
        """The answer for a key, if it is kept."""
        found = self._kept.get(key)
        if found is None or self._clock() - found[0] >= KEPT_FOR_S:
            return None
        self._kept.move_to_end(key)
        return found[1]

    def keep(self, key: Hashable, answer: T) -> T:
        """The answer, which is kept from now on."""
        self._kept[key] = (self._clock(), answer)
        self._kept.move_to_end(key)
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)
        return answer

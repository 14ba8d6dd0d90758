"""Things that are remembered for a while, so that what repeats them costs nothing."""

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable


class Seldom:
    """The things of the last seconds, `most` of them."""

    def __init__(self, for_s: float, most: int, now: Callable[[], float] = time.monotonic) -> None:
        self._for_s = for_s
        self._most = most
        self._now = now
        self._since: OrderedDict[Hashable, float] = OrderedDict()

    def __contains__(self, thing: Hashable) -> bool:
        """True if it was noted a moment ago."""
        since = self._since.get(thing)
        return since is not None and self._now() - since < self._for_s

    def note(self, thing: Hashable) -> None:
        """Remember it from now on."""
        self._since.pop(thing, None)
        self._since[thing] = self._now()  # youngest last
        if len(self._since) > self._most:
            self._since.popitem(last=False)

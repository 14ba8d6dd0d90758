"""A bounded memory of what was seen in the last seconds, so that a repeated request costs nothing."""

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable


class RecentKeys:
    """Keys seen in the last `for_s` seconds; of more than `most` the oldest are forgotten."""

    def __init__(self, for_s: float, most: int, now: Callable[[], float] = time.monotonic) -> None:
        self._for_s = for_s
        self._most = most
        self._now = now
        self._since: OrderedDict[Hashable, float] = OrderedDict()

    def __contains__(self, key: Hashable) -> bool:
        """True if the key was noted in the last `for_s` seconds."""
        since = self._since.get(key)
        return since is not None and self._now() - since < self._for_s

    def note(self, key: Hashable) -> None:
        """Remember the key from now on."""
        self._since.pop(key, None)
        self._since[key] = self._now()  # youngest last
        if len(self._since) > self._most:
            self._since.popitem(last=False)

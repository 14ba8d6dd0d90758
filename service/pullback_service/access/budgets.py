"""Budgets of work: one bucket of seconds for each token, and for each address where there is none.

A request is served as long as its caller has anything left, and what it cost is taken when it is known; so an answer that costs much
is paid for by the wait before the next. Buckets are in the memory of one process. What they protect is that process, its connections
above all, so replicas need not agree; a secret has 192 random bits and needs no limit to be safe from guessing.
"""

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Final

from pullback_service.errors import TooManyRequestsError
from pullback_service.request_work import REQUEST_S, RequestWork

MOST_BUCKETS: Final = 20_000
BURST_S: Final = 60
"""A caller who was quiet may catch up on so many seconds at once, and nobody waits for longer."""


@dataclass(slots=True)
class _Bucket:
    left_s: float
    at: float


class Budgets:
    """The buckets of one kind of caller: so many seconds of work in each second."""

    def __init__(self, per_s: float, *, what: str, now: Callable[[], float] = time.monotonic) -> None:
        self._per_s = per_s
        self._most_s = per_s * BURST_S
        self._what = what
        self._now = now
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()
        self._changing = Lock()  # threads pay for what they did

    def admit(self, key: str, work: RequestWork | None) -> None:
        """Let a request be served whose work this caller pays for, or raise."""
        if work is not None:
            work.paid_by(f"{self._what} {key}", partial(self.charge, key))
        left_s = self.charge(key, 0)
        self.charge(key, REQUEST_S)
        if left_s <= 0:
            wait_s = max(1, math.ceil(-left_s / self._per_s))
            raise TooManyRequestsError(
                f"The requests of this {self._what} took more than {self._per_s:g} s of work a second: wait {wait_s} s, "
                "then send the same request again.",
                retry_after_s=wait_s,
                kind=f"work-of-{self._what}",
            )

    def is_spent(self, key: str) -> bool:
        """True if a caller is not served before some of its debt is paid."""
        return self.charge(key, 0) <= 0

    def charge(self, key: str, seconds: float) -> float:
        """Take what was done for a caller; what is left, less than nothing if it was not enough."""
        with self._changing:
            now = self._now()
            bucket = self._buckets.pop(key, None) or _Bucket(self._most_s, now)
            left_s = min(self._most_s, bucket.left_s + (now - bucket.at) * self._per_s) - seconds
            bucket.left_s, bucket.at = max(-self._most_s, left_s), now
            self._buckets[key] = bucket  # youngest last
            if len(self._buckets) > MOST_BUCKETS:
                self._buckets.popitem(last=False)
            return bucket.left_s

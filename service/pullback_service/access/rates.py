"""Rate limits: one bucket of requests per token, and per address where there is none.

Buckets are in the memory of one process. What they protect is that process, its connections above all, so replicas need
not agree; a secret has 192 random bits and needs no limit to be safe from guessing.
"""

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from pullback_service.errors import TooManyRequestsError

MOST_BUCKETS = 20_000


@dataclass(frozen=True, slots=True)
class Rate:
    """So many requests a second in the long run, and so many at once."""

    per_s: float
    burst: float


@dataclass(slots=True)
class _Bucket:
    left: float
    at: float


class Rates:
    """The buckets of one kind of key."""

    def __init__(self, rate: Rate, *, what: str, now: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._what = what
        self._now = now
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def take(self, key: str) -> None:
        """Count a request, or raise."""
        now = self._now()
        bucket = self._buckets.pop(key, None) or _Bucket(self._rate.burst, now)
        bucket.left = min(self._rate.burst, bucket.left + (now - bucket.at) * self._rate.per_s)
        bucket.at = now
        self._buckets[key] = bucket  # youngest last
        if len(self._buckets) > MOST_BUCKETS:
            self._buckets.popitem(last=False)
        if bucket.left < 1:
            wait_s = math.ceil((1 - bucket.left) / self._rate.per_s)
            raise TooManyRequestsError(
                f"This {self._what} sent more than {self._rate.per_s:g} requests per second: wait {wait_s} s, "
                "then send the same request again.",
                retry_after_s=wait_s,
            )
        bucket.left -= 1

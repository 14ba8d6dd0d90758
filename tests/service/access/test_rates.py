"""Buckets fill with time, per key, and do not grow without end."""

import pytest

from pullback_service.access import rates
from pullback_service.access.rates import Rate, Rates
from pullback_service.errors import TooManyRequestsError


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_a_burst_is_served_and_then_the_rate_holds():
    clock = Clock()
    buckets = Rates(Rate(per_s=2, burst=3), what="token", now=clock)
    for _ in range(3):
        buckets.take("a")
    with pytest.raises(TooManyRequestsError, match="wait 1 s") as refused:
        buckets.take("a")
    assert refused.value.headers["Retry-After"] == "1"
    buckets.take("b")
    clock.now += 0.5
    buckets.take("a")
    with pytest.raises(TooManyRequestsError):
        buckets.take("a")
    clock.now += 3600  # an hour of silence allows one burst, not an hour's worth
    for _ in range(3):
        buckets.take("a")
    with pytest.raises(TooManyRequestsError):
        buckets.take("a")


def test_the_longest_silent_is_forgotten_first(monkeypatch):
    monkeypatch.setattr(rates, "MOST_BUCKETS", 2)
    buckets = Rates(Rate(per_s=1, burst=1), what="token", now=Clock())
    for key in "abc":
        buckets.take(key)
    buckets.take("a")  # forgotten, so it starts anew
    with pytest.raises(TooManyRequestsError):
        buckets.take("c")

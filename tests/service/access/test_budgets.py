"""Buckets of seconds fill with time, per key, go no deeper than they are large, and do not grow without end."""

import pytest

from pullback_service.access import budgets
from pullback_service.access.budgets import Budgets
from pullback_service.errors import TooManyRequestsError
from pullback_service.request_work import RequestWork


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    monkeypatch.setattr(budgets, "BURST_S", 10)
    monkeypatch.setattr(budgets, "REQUEST_S", 0)
    return Clock()


def test_an_answer_is_paid_for_by_the_wait_before_the_next(clock):
    buckets = Budgets(2, what="token", now=clock)  # 20 s at once
    buckets.admit("a", None)
    buckets.charge("a", 23)
    with pytest.raises(TooManyRequestsError, match="more than 2 s of work a second: wait 2 s") as refused:
        buckets.admit("a", None)
    assert (refused.value.headers["Retry-After"], refused.value.kind) == ("2", "work-of-token")
    buckets.admit("b", None)
    clock.now += 2
    buckets.admit("a", None)


def test_nobody_saves_more_or_waits_longer_than_a_burst(clock):
    buckets = Budgets(2, what="token", now=clock)
    clock.now += 3600
    buckets.charge("a", 10_000)
    with pytest.raises(TooManyRequestsError, match="wait 10 s"):
        buckets.admit("a", None)
    clock.now += 3600
    buckets.charge("a", 20.5)
    with pytest.raises(TooManyRequestsError, match="wait 1 s"):
        buckets.admit("a", None)


def test_work_that_was_done_before_its_caller_was_known_is_charged_too(clock):
    buckets, work = Budgets(1, what="address", now=clock), RequestWork()
    work.spend(11)
    with pytest.raises(TooManyRequestsError):
        buckets.admit("a", work)
    clock.now += 5
    buckets.admit("a", work)
    work.spend(5)
    assert work.seconds == 16
    with pytest.raises(TooManyRequestsError, match="wait 1 s"):
        buckets.admit("a", None)


def test_the_longest_silent_is_forgotten_first(monkeypatch, clock):
    monkeypatch.setattr(budgets, "MOST_BUCKETS", 2)
    buckets = Budgets(1, what="token", now=clock)
    for key in "abc":
        buckets.charge(key, 11)
    buckets.admit("a", None)  # forgotten, so it starts anew
    with pytest.raises(TooManyRequestsError):
        buckets.admit("c", None)

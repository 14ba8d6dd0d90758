"""Garbage is looked for between requests, so that none of them waits for it."""

import asyncio
import gc
import sys
from weakref import ref

import pytest

from pullback_service import process_memory
from pullback_service.process_memory import THRESHOLDS, collect_between_requests


class Circle:
    """An object that only the garbage collector frees."""

    def __init__(self):
        self.itself = self


@pytest.fixture
def collected_by_hand(monkeypatch):
    """Garbage stays until somebody asks."""
    before = gc.get_threshold()
    gc.collect()
    monkeypatch.setattr(process_memory._after_full_look, "blocks", sys.getallocatedblocks())
    gc.set_threshold(10_000_000, *THRESHOLDS[1:])
    yield
    gc.set_threshold(*before)


def circles(count):
    """The last of some circles that nobody holds any more."""
    made = [Circle() for _ in range(count)]
    return ref(made[-1])


@pytest.mark.sample(every=2)
@pytest.mark.parametrize(("count", "is_left"), [(1, True), (THRESHOLDS[0], False)])
def test_young_objects_are_looked_at_where_there_are_enough(collected_by_hand, count, is_left):
    last = circles(count)
    collect_between_requests()
    assert (last() is not None) == is_left


def test_a_look_takes_in_few_objects_that_stayed():
    """Every other thread waits for it: 0.5 us an object."""
    assert THRESHOLDS[0] * THRESHOLDS[1] <= 25_000
    assert THRESHOLDS[0] * THRESHOLDS[1] * THRESHOLDS[2] >= 5_000_000  # a look at all of them is as seldom as before


def stayed_twice():
    """The last of some circles that survived two looks at objects that stayed, and that nobody holds any more."""
    held = [Circle() for _ in range(THRESHOLDS[0])]
    gc.collect(0)
    gc.collect(1)
    return ref(held.pop())


def looks_are_made(monkeypatch, *, full_after):
    """Requests are answered until a look at all objects is due, which it is after fewer than usual."""
    monkeypatch.setattr(process_memory, "THRESHOLDS", (*THRESHOLDS[:2], full_after))
    for _ in range((THRESHOLDS[1] + 2) * (full_after + 2)):
        circles(600)
        collect_between_requests()


def test_all_objects_are_looked_at_when_a_large_report_is_gone(collected_by_hand, monkeypatch):
    monkeypatch.setattr(process_memory, "MANY_BLOCKS", 100_000)
    last, report = stayed_twice(), [object() for _ in range(200_000)]
    looks_are_made(monkeypatch, full_after=2)
    assert last() is not None  # everybody would have waited
    report.clear()
    looks_are_made(monkeypatch, full_after=2)
    assert last() is None


def test_all_objects_are_looked_at_in_the_end_though_much_is_held(collected_by_hand, monkeypatch):
    monkeypatch.setattr(process_memory._after_full_look, "blocks", 0)
    monkeypatch.setattr(process_memory, "FULL_AT_LATEST", 2)
    last = stayed_twice()
    looks_are_made(monkeypatch, full_after=2)
    assert last() is None


@pytest.mark.long
def test_objects_that_stayed_twice_are_looked_at_after_enough_looks(collected_by_hand):
    last = stayed_twice()
    for _ in range((THRESHOLDS[1] + 2) * (THRESHOLDS[2] + 2)):
        circles(600)
        collect_between_requests()
    assert last() is None


def test_a_process_that_collects_nothing_yet_is_left_alone(collected_by_hand):
    last = circles(THRESHOLDS[0])
    gc.disable()
    try:
        collect_between_requests()
    finally:
        gc.enable()
    assert last() is not None


@pytest.mark.anyio
async def test_the_garbage_of_a_request_is_gone_behind_its_answer(client, collected_by_hand):
    last = circles(THRESHOLDS[0])
    assert (await client.get("/healthz")).status_code == 200
    await asyncio.sleep(0)
    assert last() is None

"""Garbage is looked for between requests, so that none of them waits for it."""

import asyncio
import gc
from weakref import ref

import pytest

from pullback_service.process_memory import THRESHOLDS, collect_between_requests


class Circle:
    """An object that only the garbage collector frees."""

    def __init__(self):
        self.itself = self


@pytest.fixture
def collected_by_hand():
    """Garbage stays until somebody asks."""
    before = gc.get_threshold()
    gc.collect()
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


@pytest.mark.long
def test_objects_that_stayed_twice_are_looked_at_after_enough_looks(collected_by_hand):
    held = [Circle() for _ in range(THRESHOLDS[0])]
    gc.collect(0)
    gc.collect(1)
    last = ref(held.pop())
    held.clear()
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

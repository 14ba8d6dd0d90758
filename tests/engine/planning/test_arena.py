"""Where the buffers of a plan lie in its one block of memory."""

import sys

import numpy as np
import pytest

import pullback as pb
from pullback.passes.pipeline import Stages, simplify
from pullback.planning.arena import lay_out, lifetimes
from pullback.planning.schedule import plan_memory


def _chain(length):
    def deep(x):
        for k in range(length):
            x = np.sin(x[: len(x) - k % 2]) + 0.1
        return np.sum(x)

    return deep


def _schedule(length):
    graph = pb.trace(pb.grad(_chain(length)))(np.ones(length)).graph
    return plan_memory(simplify(graph, Stages(), lowered=True), kept=True)


def test_buffers_that_are_alive_at_once_share_no_bytes():
    schedule = _schedule(20)
    spans, arena = lifetimes(schedule), lay_out(schedule)
    places = [
        (*spans[buffer], offset, offset + schedule.buffers[buffer].nbytes) for buffer, offset in arena.offsets.items()
    ]
    assert len(places) > 20
    for number, (first, last, begin, end) in enumerate(places):
        assert begin % 64 == 0
        assert end <= arena.nbytes
        for other_first, other_last, other_begin, other_end in places[:number]:
            assert last < other_first or other_last < first or end <= other_begin or other_end <= begin


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("tier", ["fused", "stateful"])
def test_compiling_takes_work_in_proportion_to_the_operations(tier):
    def calls(length):
        count = 0

        def counting(*_):
            nonlocal count
            count += 1

        plan = pb.compile(pb.grad(_chain(length)), tier=tier)
        before = sys.getprofile()
        sys.setprofile(counting)
        try:
            plan(np.ones(length))
        finally:
            sys.setprofile(before)
        return count

    calls(10)
    assert calls(400) < 5 * calls(100)

"""Code leaves memory with the plan that it belongs to."""

import gc
import weakref

import numpy as np
import pytest

import pullback as pb
from pullback.backends.native.linking import toolchain
from pullback.compiling import plan as plan_module


@pytest.fixture
def live(monkeypatch):
    """The programs in memory that were linked in this test."""
    pb.compile(lambda x: x + 1.0, tier="native")(np.ones(2))  # what all plans share is there from here on
    programs = weakref.WeakSet()
    linked = toolchain.link_object

    def listening(*arguments):
        code = linked(*arguments)
        programs.add(code)
        return code

    monkeypatch.setattr(toolchain, "link_object", listening)
    return programs


def test_code_goes_with_its_plan(live):
    plan = pb.compile(pb.value_and_grad(lambda x: np.sum(np.tanh(x) ** 2)), tier="native")
    plan(np.ones(3))
    plan(np.ones(4))
    gc.collect()
    assert len(live) >= 2
    del plan
    gc.collect()
    assert len(live) == 0


def test_code_goes_with_the_types_that_a_plan_no_longer_keeps(live, monkeypatch):
    monkeypatch.setattr(plan_module, "PLANS_KEPT", 3)
    plan = pb.compile(lambda x: np.sum(x * 2.0), tier="native")
    for size in range(1, 9):
        plan(np.ones(size))
    gc.collect()
    assert len(live) == 3

"""Two plans may be one plan, and two programs."""

import numpy as np
import pytest

import pullback as pb
from pullback.backends.llvm.elementary import hyperbolic
from pullback.backends.native import availability
from pullback.compiling import rule_sources

X = np.linspace(-2, 2, 50)


def hashes(tier, function=lambda x: np.sum(np.tanh(x) ** 2)):
    plan = pb.compile(pb.value_and_grad(function), tier=tier)
    plan(X)
    summary = plan.summary()
    return summary["hash"], summary["program"]


@pytest.mark.parametrize("tier", ["fused", "stateful", "native"])
def test_the_same_function_is_the_same_program(tier):
    assert hashes(tier) == hashes(tier)
    assert hashes(tier)[1] != hashes(tier, lambda x: np.sum(np.tanh(x) ** 3))[1]


@pytest.mark.skipif(availability.why_not() is not None, reason="no native code here")
def test_another_kernel_of_the_same_plan_is_another_program(monkeypatch):
    plan, program = hashes("native")
    monkeypatch.setenv("PULLBACK_CACHE", "0")
    monkeypatch.setattr(hyperbolic, "_TANH_ABOVE", (*hyperbolic._TANH_ABOVE[:-1], -2e-4))
    other_plan, other_program = hashes("native")
    assert other_plan == plan
    assert other_program != program


def test_another_rule_of_the_same_plan_is_another_program(monkeypatch):
    plan, program = hashes("stateful")
    digest = rule_sources._digest
    monkeypatch.setattr(
        rule_sources, "_digest", lambda module: digest(module) + " edited" * module.endswith("reductions")
    )
    other_plan, other_program = hashes("stateful")
    assert other_plan == plan
    assert other_program != program


def test_rules_inside_loops_are_looked_at_too(monkeypatch):
    def looping(x):
        return pb.scan(lambda c, row: (c + np.max(row), None), 0.0, np.reshape(x, (5, 10)))[0]

    _, program = hashes("stateful", looping)
    digest = rule_sources._digest
    monkeypatch.setattr(
        rule_sources, "_digest", lambda module: digest(module) + " edited" * module.endswith("reductions")
    )
    assert hashes("stateful", looping)[1] != program


def test_a_rule_of_a_module_without_a_file_has_no_digest():
    assert rule_sources._digest("no such module") == ""
    assert rule_sources._digest("pullback.rules.reductions") != ""

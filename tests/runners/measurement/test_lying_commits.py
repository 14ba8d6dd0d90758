"""Commits of the engine that change the clocks and checks of the process that they run in: found out, and never a time."""

from pathlib import Path

import pytest

import pullback
from pullback_runners import suites
from pullback_runners.runs import run_suite
from pullback_runners.suites import Suite

REAL = Path(pullback.__file__)
PASSES_ALL = """
import pullback_runners.measurement.gradient_check as checks
checks.relative_error = lambda found, expected: 0.0
"""
LATER = """
import sys
_right = sys.modules[__name__].value_and_grad

def value_and_grad(function, wrt):
    differentiated, calls = _right(function, wrt=wrt), 0

    def wrong_from_some_call_on(*arguments):
        nonlocal calls
        calls += 1
        value, gradients = differentiated(*arguments)
        return value, tuple(gradient * (1.0 if calls <= {calls} else 0.5) for gradient in gradients)

    return wrong_from_some_call_on
"""
LIES = {
    "a clock of CPU time that goes slowly": (
        "import time\ntime.process_time_ns = lambda real=time.process_time_ns: real() // 10",
        "clock is wrong",
    ),
    "a check that finds all right": (PASSES_ALL + LATER.format(calls=0), "a process without its code did not: "),
    "a check that finds all right in the processes that are timed": (
        PASSES_ALL + LATER.format(calls=20),
        "a process without its code did not: ",
    ),
    "an oracle that agrees": (
        "import pullback_runners.measurement.oracles as oracles\n"
        "oracles.check_gradient = lambda found, *_, check=oracles.check_gradient, **__: check(found, found, {}, 'f8')\n"
        + LATER.format(calls=0),
        "a process without its code did not: ",
    ),
}


def measured(folder, program, monkeypatch):
    """The variant `unfused` of a case, by an engine that runs a program when it is imported."""
    package = folder / "engine" / "pullback"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(
        f"__path__ = [{str(REAL.parent)!r}]\nexec(compile(open({str(REAL)!r}).read(), {str(REAL)!r}, 'exec'))\n{program}\n"
    )
    tiny = Suite("quick", groups=2, most_groups=2, slices=8, may_say_same=False, variants=("unfused", "numpy"))
    monkeypatch.setitem(suites.SUITES, "quick", tiny)
    report = run_suite("quick", ["poly9_broadcast*"], variants=("unfused", "numpy"), engine_dir=folder)
    (case, *_) = report["cases"]
    return case["variants"][0]


def test_an_engine_that_does_not_lie_is_measured_and_its_gradient_checked_outside(tmp_path, monkeypatch):
    variant = measured(tmp_path, "", monkeypatch)
    assert variant["error"] is None
    assert variant["gradient"]["oracle"] == "closed form"
    assert len(variant["metrics"]["time"]["processes"]) == 2


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_doubtful_with_the_reason_and_has_no_time(lie, tmp_path, monkeypatch):
    program, said = LIES[lie]
    variant = measured(tmp_path, program, monkeypatch)
    assert variant["error"]["kind"] == "doubtful", variant["error"]
    assert said in variant["error"]["message"]
    assert variant["metrics"] == {}

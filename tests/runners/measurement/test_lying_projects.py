"""Commits of a project that change the checks, the random numbers, the clocks and the answers of the process that they run in."""

import pytest

from pullback_runners import suites
from pullback_runners.measurement.subject import Subject
from pullback_runners.report import Attribution
from pullback_runners.runs import run_suite
from pullback_runners.suites import Suite

PATCHES = """
import json, sys, time
import numpy as np
import pullback_runners.measurement.disagreement as disagreement
import pullback_runners.measurement.finite_differences as differences
import pullback_runners.measurement.gradient_check as checks
import pullback_runners.measurement.oracles as oracles
from pullback_runners.measurement.gradient_check import GradientCheck

found_right = lambda *_, **__: GradientCheck(0.0, None)
checks.relative_error = disagreement.relative_error = lambda found, expected: 0.0
checks.check_gradient = oracles.check_gradient = oracles.settle = found_right
differences.FiniteDifferences.check = found_right
np.allclose = np.array_equal = lambda *_, **__: True
np.random.default_rng = lambda seed=None, real=np.random.default_rng: real(0)
time.perf_counter = time.perf_counter_ns = lambda: 0


def written(content, real=json.dumps, **how):
    if isinstance(content, dict) and "gradient" in content:
        content = content | {"gradient": {"ok": True, "max_rel_error": 0.0, "oracle": "closed form", "complaint": None}}
    return real(content, **how)


json.dumps = written
"""
LIBRARY = """
import os
import numpy as np


def gradient(x, is_wrong):
    "The gradient of a sum of cubes, or one with a wrong element."
    slope = 3 * x**2
    if is_wrong == "always" or (is_wrong == "in forks" and os.getsid(0) != os.getpid()):
        slope[3] *= WRONG
    return np.sum(x**3), {"x": slope}
"""
WORKLOADS = """
import library
import numpy as np
from pullback_runners.workloads import grid, workload


@workload(wrt="x", numpy=False, quick=grid(n=(50,)))
def cubes(n):
    "A sum of cubes."


@cubes.inputs
def _(rng, dtype, n):
    return {"x": np.linspace(0.5, 1.5, n)}


@cubes.peer("first")
def _(x, *, n):
    return library.gradient(x, "FIRST")


@cubes.peer("second")
def _(x, *, n):
    return library.gradient(x, "SECOND")
"""
ORACLE = """

@cubes.oracle
def _(x, *, n):
    return np.sum(x**3), {"x": 3 * x**2}
"""


def measured(folder, monkeypatch, *, first="never", second="never", wrong=2.0, library="", oracle=""):
    """The two variants of a workload of a project, by their names, with gradients of which one may be wrong."""
    (folder / "library.py").write_text(library + LIBRARY.replace("WRONG", str(wrong)))
    file = folder / "gradients.py"
    file.write_text(WORKLOADS.replace("FIRST", first).replace("SECOND", second) + oracle)
    tiny = Suite("quick", groups=2, most_groups=2, slices=8, may_say_same=False, variants=())
    monkeypatch.setitem(suites.SUITES, "quick", tiny)
    subject = Subject(paths=(folder,), imports=("library",))
    owner = Attribution("of/somebody", {"sha": "1" * 40, "branch": "main"})
    report = run_suite("quick", subject=subject, owner=owner, workload_files=[file])
    (case,) = report["cases"]
    return {each["variant"]: each for each in case["variants"]}


@pytest.mark.parametrize("oracle", ["", ORACLE])
def test_an_honest_commit_is_measured_and_its_gradients_are_checked_outside(tmp_path, monkeypatch, oracle):
    variants = measured(tmp_path, monkeypatch, oracle=oracle)
    assert {name: each["error"] for name, each in variants.items()} == {"first": None, "second": None}
    oracles = [each["gradient"]["oracle"] for each in variants.values()]
    assert oracles == (["closed form"] * 2 if oracle else ["central differences", "variant first"])
    assert 0.0 < variants["first"]["gradient"]["max_rel_error"] < 1e-6 or oracle


LIES = {
    "differences of the value": ({"first": "always"}, "", "first", "the value changes by"),
    "the gradient of another variant": ({"second": "always", "wrong": 1.0001}, "", "second", "from variant first"),
    "a closed form": ({"second": "always", "wrong": 1.0001}, ORACLE, "second", "is off by"),
    "its own first gradient": ({"first": "in forks", "wrong": 1.0001}, "", "first", "from its first gradient"),
}


@pytest.mark.parametrize("reference", LIES)
def test_a_wrong_gradient_that_its_process_calls_right_has_no_time(reference, tmp_path, monkeypatch):
    wrong, oracle, variant, said = LIES[reference]
    lied = measured(tmp_path, monkeypatch, library=PATCHES, oracle=oracle, **wrong)[variant]
    assert lied["error"] is not None, lied["gradient"]
    assert said in lied["error"]["message"]
    assert lied["metrics"] == {}


def test_a_function_that_cannot_be_computed_beside_its_arguments_fails_with_what_it_raised(tmp_path, monkeypatch):
    library = "import numpy as np\n\n\ndef refuse(x):\n    if x[0] != 0.5:\n        raise ValueError('not here')\n\n"
    monkeypatch.setitem(globals(), "LIBRARY", LIBRARY.replace("    slope =", "    refuse(x)\n    slope ="))
    variants = measured(tmp_path, monkeypatch, library=library)
    assert {name: each["error"] and each["error"]["kind"] for name, each in variants.items()} == {
        "first": "exception",
        "second": "exception",
    }
    assert "ValueError: not here" in variants["first"]["error"]["message"]

"""Workloads of any engine: variants that a file declares, the baseline that it chooses, and gradients without an oracle."""

import pytest

from pullback_runners.runs import run_suite
from pullback_runners.workloads import known_workloads, registry

TOY = """
from pullback_runners.workloads import grid, workload

class Later:
    '''A result that is computed when somebody waits for it, as those of JAX are.'''

    waited = 0

    def __init__(self, array):
        self.array = array

    def block_until_ready(self):
        Later.waited += 1

@workload(wrt=("w", "b"), numpy=False, {options} quick=grid(n=(7,), dtype=("{dtype}",)))
def ridge(n):
    '''squared residuals'''

@ridge.inputs
def _(rng, dtype, n):
    return {{"w": rng.standard_normal(n).astype(dtype), "b": rng.standard_normal(()).astype(dtype)}}

def value(w, b):
    return ((w * w).sum() + b) ** 2

@ridge.variant("eager")
def _(w, b, *, n):
    def step():
        outer = 2 * ((w * w).sum() + b)
        return value(w, b), {{"w": outer * 2 * w, "b": outer}}
    return step
"""

LATE = """
@ridge.variant("{name}")
def _(w, b, *, n):
    def step():
        outer = 2 * ((w * w).sum() + b)
        return Later(value(w, b)), (Later(outer * 2 * w * {factor}), Later(outer))
    return step
"""


@pytest.fixture
def ridge(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "_workloads", {each.name: each for each in known_workloads()})

    def measured(*factors, options="", dtype="f8", **wishes):
        late = {f"late{number or ''}": factor for number, factor in enumerate(factors or ("1",))}
        variants = [LATE.format(name=name, factor=factor) for name, factor in late.items()]
        file = tmp_path / "ridge.py"
        file.write_text(TOY.format(options=options, dtype=dtype) + "".join(variants))
        report = run_suite("trial", workload_files=[file], **wishes)
        (case,) = report["cases"]
        return case

    return measured


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_declared_variants_are_measured_and_checked_against_the_first_and_that_by_differences(ridge, dtype):
    case = ridge(dtype=dtype)
    assert [each["variant"] for each in case["variants"]] == ["eager", "late"]
    assert [each["error"] for each in case["variants"]] == [None, None]
    assert case["baseline"] == "eager"
    eager, late = (each["gradient"]["oracle"] for each in case["variants"])
    assert (eager, late) == ("central differences", "variant eager")
    assert case["gradient"]["oracle"] == "central differences and variant eager"
    assert {(row["variant"], row["baseline"]) for row in case["paired"]} == {("late", "eager")}


def test_a_wrong_gradient_fails_its_variant(ridge):
    right, *wrong = ridge("1.001", "-1", "(w > 0)", "float('nan')")["variants"]
    assert right["error"] is None
    assert [each["error"]["kind"] for each in wrong] == ["gradient"] * 4


ONE_ELEMENT_OFF = "(1 + 1e-6 * (w == w[3]))"
"""Too little for differences along random directions."""


def test_a_baseline_is_blamed_for_its_own_wrong_gradient(ridge):
    late, eager = ridge(ONE_ELEMENT_OFF, options='baseline="late",')["variants"]
    assert "gradient of w is off by" in late["error"]["message"]
    assert "from variant eager, and differences of the value agree with that one" in late["error"]["message"]
    assert eager["error"]["message"] == "not measured, since its baseline late failed"


def test_who_agrees_with_a_baseline_that_is_wrong_is_compared_with_the_variant_that_is_right(ridge):
    wrong = [ONE_ELEMENT_OFF, ONE_ELEMENT_OFF, "(1 + 2e-6 * (w == w[3]))"]
    case = ridge(*wrong, options='baseline="late",', baseline="none")
    messages = {each["variant"]: (each["error"] or {}).get("message") for each in case["variants"]}
    assert messages.pop("eager") is None
    assert len(messages) == 3
    assert all("from variant eager" in message for message in messages.values())


def test_a_gradient_of_another_precision_fails_its_variant(ridge):
    _, wrong = ridge("w.astype('f8') / w", dtype="f4")["variants"]
    assert "gradient of w is float64" in wrong["error"]["message"]


def test_the_baseline_is_chosen_by_the_file_or_by_whoever_runs_it(ridge):
    assert ridge(options='baseline="late",')["baseline"] == "late"
    case = ridge(baseline="late")
    assert (case["baseline"], case["variants"][0]["variant"]) == ("late", "late")


def test_without_a_baseline_there_are_times_and_no_ratios(ridge):
    case = ridge(baseline="none")
    assert case["baseline"] is None
    assert case["paired"] == []
    assert all(each["metrics"]["time"]["processes"] for each in case["variants"])

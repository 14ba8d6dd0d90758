"""Workloads of any engine: variants that a file declares, the baseline that it chooses, and gradients without an oracle."""

import pytest

from pullback_runners.errors import UsageError
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


@pytest.mark.sample(every=2)
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


@pytest.mark.long
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


@pytest.mark.long
def test_the_baseline_is_chosen_by_the_file_or_by_whoever_runs_it(ridge):
    assert ridge(options='baseline="late",')["baseline"] == "late"
    case = ridge(baseline="late")
    assert (case["baseline"], case["variants"][0]["variant"]) == ("late", "late")


def test_without_a_baseline_there_are_times_and_no_ratios(ridge):
    case = ridge(baseline="none")
    assert case["baseline"] is None
    assert case["paired"] == []
    assert all(each["metrics"]["time"]["processes"] for each in case["variants"])


TWO = """
import numpy as np
from pullback_runners.workloads import grid, workload

@workload(wrt="x", numpy=False, quick=grid(n=(7,)))
def alone(n):
    pass

@workload(wrt="x", quick=grid(n=(7,)))
def tiered(n):
    return lambda x: np.sum(x * x)

@alone.inputs
@tiered.inputs
def _(rng, dtype, n):
    return {"x": rng.standard_normal(n).astype(dtype)}

@alone.variant("by-hand")
@tiered.variant("by-hand")
def _(x, *, n):
    return lambda: ((x * x).sum(), 2 * x)
"""


@pytest.fixture
def two(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "_workloads", {each.name: each for each in known_workloads()})
    file = tmp_path / "two.py"
    file.write_text(TWO)
    return lambda **wishes: run_suite("trial", workload_files=[file], **wishes)


def named(report):
    assert not any(each["error"] for case in report["cases"] for each in case["variants"])
    return {case["case"]["workload"]: [each["variant"] for each in case["variants"]] for case in report["cases"]}


@pytest.mark.long
def test_where_a_workload_lacks_the_baseline_its_variants_are_measured_without_ratios(two):
    report = two(baseline="fused", usual=["by-hand"])
    assert named(report) == {"alone": ["by-hand"], "tiered": ["fused", "by-hand"]}
    alone, tiered = report["cases"]
    assert (alone["baseline"], alone["paired"]) == (None, [])
    assert tiered["baseline"] == "fused"
    assert alone["variants"][0]["metrics"]["time"]["processes"]
    (absence,) = report["harness"]["absent"]
    assert absence.startswith("fused takes no part in alone[n=7,f8,cpu]: ")


@pytest.mark.long
def test_a_usual_variant_is_left_out_where_a_workload_lacks_it_and_one_asked_for_has_failed(two):
    assert named(two(baseline="none", usual=["by-hand", "fused"])) == {
        "alone": ["by-hand"],
        "tiered": ["by-hand", "fused"],
    }
    alone, _ = two(baseline="none", variants=["by-hand", "fused"])["cases"]
    assert [each["error"] and each["error"]["kind"] for each in alone["variants"]] == [None, "unavailable"]


@pytest.mark.parametrize("wish", [{"usual": ["by-hnd"]}, {"baseline": "by-hnd"}])
def test_a_name_that_no_workload_has_is_refused(two, wish):
    with pytest.raises(UsageError, match="no variant 'by-hnd'; known: unfused"):
        two(**wish)


NESTED = """
from pullback_runners.workloads import grid, workload

@workload(wrt="w", numpy=False, quick=grid(n=(7,)))
def nested(n):
    pass

@nested.inputs
def _(rng, dtype, n):
    one, two = rng.standard_normal((2, n))
    return {{"w": {argument}}}

def value_and_grad(w):
    one, two = w.values() if isinstance(w, dict) else w
    return (one**2).sum() + (two**3).sum(), (2 * one, 3 * two**2)

@nested.variant("first")
@nested.variant("second")
def _(w, *, n):
    def step():
        value, (one, two) = value_and_grad(w)
        return value, {gradient}
    return step
"""


@pytest.mark.sample(every=5)
@pytest.mark.parametrize(
    ("argument", "gradient"),
    [
        ('{"b": one, "a": two}', '{"a": two, "b": one}'),
        ('{"b": one, "a": two}', '{"w": {"a": two, "b": one}}'),
        ('{"w": one, "b": two}', '{"w": one, "b": two}'),
        ("[one, two]", "[one, two]"),
        ("(one, two)", "((one, two),)"),
    ],
)
def test_the_gradient_alone_may_have_the_structure_of_its_argument(tmp_path, monkeypatch, argument, gradient):
    monkeypatch.setattr(registry, "_workloads", {each.name: each for each in known_workloads()})
    file = tmp_path / "nested.py"
    file.write_text(NESTED.format(argument=argument, gradient=gradient))
    assert named(run_suite("trial", workload_files=[file])) == {"nested": ["second", "first"]}

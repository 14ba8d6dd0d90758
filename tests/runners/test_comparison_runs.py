"""Two engines on the same case, by real processes."""

import math
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from pullback_runners.comparison_runs import (
    compare_commits,
    fail_beside_failed,
    failures,
    is_equal_code,
    regressions,
    without_claim,
)
from pullback_runners.errors import UsageError, VariantError
from pullback_runners.measurement.comparison import CANDIDATE, REFERENCE, Comparison
from pullback_runners.measurement.examination import Examination
from pullback_runners.measurement.lockstep import Group, Timing
from pullback_runners.measurement.member import Member
from pullback_runners.measurement.subject import Subject
from pullback_runners.projects.configuration import find_project
from pullback_runners.projects.environments import OWN
from pullback_runners.projects.subjects import BuiltCommit, build_subject
from pullback_runners.report.comparison_table import comparison_notes, comparison_table
from pullback_runners.report.comparisons import comparison_rows
from pullback_runners.revisions import find_commit
from pullback_runners.workloads import registry

SQUARES = """
import numpy as np
from pullback_runners.workloads import grid, workload


@workload(wrt="x", quick=grid(n=(8,)))
def squares(n):
    return lambda x: np.sum(x * x)


@squares.inputs
def _(rng, dtype, n):
    return {"x": rng.standard_normal(n).astype(dtype)}


@squares.oracle
def _(x, *, n):
    return np.sum(x**2), {"x": 2 * x}
"""
"""A workload that declares no variants, so that the tiers alone are compared."""


@pytest.fixture
def compare(clone, tiny_suite, tmp_path, monkeypatch):
    registry.known_workloads()
    monkeypatch.setattr(registry, "_workloads", dict(registry._workloads))
    file = tmp_path / "squares.py"
    file.write_text(SQUARES)

    def comparing(reference, candidate, **wishes):
        project = find_project(clone)
        built = [build_subject(project, clone, find_commit(clone, tag)) for tag in (reference, candidate)]
        return compare_commits(*built, "quick", ["squares"], workload_files=[file], **wishes)

    return comparing


@pytest.mark.long
def test_a_slower_engine_is_a_regression(compare, clone):
    schemas = pytest.importorskip("pullback_service.reports.schemas", reason="the service's extra is not installed")
    report = compare("plain", "slow")
    document = schemas.ReportDocument.model_validate(report)
    assert document.commit.sha == find_commit(clone, "slow")["sha"]
    (time,) = [row for row in report["comparisons"] if row["metric"] == "time"]
    assert (time["outcome"], time["n"]) == ("slower", 2)
    assert time["log_ratio"] > 1
    assert time["reference"] == find_commit(clone, "plain")["sha"]
    assert {row["metric"] for row in regressions(report)} >= {"time"}
    assert failures(report) == []
    # Tiers that neither engine has are absent: nobody asked for them.
    assert {row["variant"] for row in report["comparisons"]} == {"unfused"}
    assert [variant["variant"] for variant in report["cases"][0]["variants"]] == ["unfused"]


def built(sha, digest, environment=OWN, code=None):
    return BuiltCommit({"sha": sha}, Subject(digest=digest, code=code), environment, Path())


def test_code_is_equal_where_files_and_environment_are_and_the_commits_are_two():
    elsewhere = replace(OWN, digest="another lock")
    assert is_equal_code(built("a", "files"), built("b", "files"))
    assert not is_equal_code(built("a", "files"), built("b", "other files"))
    assert not is_equal_code(built("a", None), built("b", None))
    assert not is_equal_code(built("a", "files", elsewhere), built("b", "files"))
    assert not is_equal_code(built("a", "files"), built("a", "files"))  # A/A tells the noise
    assert is_equal_code(built("a", "files", code="wheel"), built("b", "other files", code="wheel"))
    assert not is_equal_code(built("a", "files", code="wheel"), built("b", "other files", code="another"))


@pytest.mark.parametrize("outcome", ["slower", "faster", "more", "less", "same", "equal", "failed", "ambiguous"])
def test_of_equal_code_nothing_is_claimed(outcome):
    claims = {"slower", "faster", "more", "less"}
    row = {"metric": "time", "outcome": outcome}
    assert without_claim(row)["outcome"] == ("ambiguous" if outcome in claims else outcome)
    assert regressions({"comparisons": [without_claim(row)]}) == []


@pytest.mark.parametrize(
    ("quality", "provisional", "said"),
    [
        ("clean", True, "2.00x slower"),
        ("contaminated", False, "2.00x slower"),
        ("contaminated", True, "likely 2.00x slower"),
    ],
)
def test_a_busy_machine_without_a_control_makes_it_likely_at_most(quality, provisional, said):
    row = ROW | {
        "metric": "time", "outcome": "slower", "log_ratio": math.log(2), "low": math.log(1.9),
        "high": math.log(2.1), "n": 6, "margin": 0.02, "margin_is_provisional": provisional,
    }  # fmt: skip
    report = report_of([row], quality)
    shown = shown_of(report)
    assert said in shown
    assert ("likely" in shown) == said.startswith("likely")
    assert ("1 likely slower" in shown) == said.startswith("likely")
    assert len(regressions(report)) == 1  # the exit status is the same


@pytest.mark.parametrize(
    ("ratio", "is_busy", "outcome"),
    [(0.08, False, "slower"), (0.08, True, "ambiguous"), (0.3, True, "slower"), (-0.3, True, "faster")],
)
def test_two_groups_on_a_busy_machine_claim_what_is_unmistakable_alone(sound_case, ratio, is_busy, outcome):
    members = (Member("right", role=REFERENCE), Member("right", role=CANDIDATE))
    comparison = Comparison(sound_case, *members, with_twin=False)
    comparison.examinations = {name: Examination({}, {}, None) for name in (REFERENCE, CANDIDATE)}
    for noise in (-0.002, 0.002):
        took_s = {REFERENCE: [1e-3], CANDIDATE: [1e-3 * math.exp(ratio + noise)]}
        comparison.groups.append(Group({name: Timing(1, each, each, [0.0]) for name, each in took_s.items()}, {}))
    (row,) = comparison_rows(comparison, may_say_same=False, is_busy=is_busy)
    assert (row["metric"], row["outcome"]) == ("time", outcome)
    assert row["claim"] == pytest.approx(0.099 if is_busy else 0.02, abs=1e-3)


@pytest.mark.parametrize("oracle", ["variant jax", "central differences"])
def test_what_was_compared_with_a_baseline_whose_gradient_is_wrong_has_failed_too(sound_case, oracle):
    baseline, other = (
        Comparison(sound_case, Member(name, role=REFERENCE), Member(name, role=CANDIDATE), with_twin=False)
        for name in ("jax", "jax-eager")
    )
    baseline.failures[CANDIDATE] = VariantError("gradient", "value is NaN")
    other.examinations = {name: Examination({"oracle": oracle}, {}, None) for name in (REFERENCE, CANDIDATE)}
    fail_beside_failed(other, [baseline, other], "jax")
    failed = {side: failure.message for side, failure in other.failures.items()}
    assert failed == ({CANDIDATE: "jax, which it was compared with, has failed"} if oracle == "variant jax" else {})


def test_what_is_not_claimed_is_told_with_what_would_resolve_it():
    rows = [
        ROW | {
            "metric": "time", "outcome": "ambiguous", "log_ratio": 0.05, "low": 0.01, "high": 0.09, "n": n,
            "claim": claim, "margin_is_provisional": True,
        }
        for n, claim in ((2, 0.099), (5, 0.063))
    ]  # fmt: skip
    told = "differences of less than 6 to 10 % are not claimed: too few groups to know this machine's own noise"
    assert f"{told}; --suite standard takes 20, and a quieter machine or fewer cases leave time for more" in shown_of(
        report_of(rows, "contaminated")
    )
    report = report_of(rows, "contaminated")
    report["harness"]["suite"] = "full"  # which takes as many
    assert f"{told}; a quieter machine or fewer cases leave time for more" in shown_of(report)


ROW = {
    "case": {"workload": "sound", "params": {"n": 8}, "dtype": "f8", "device": "cpu"},
    "variant": "fused",
    "error": None,
}


def report_of(rows, quality="clean"):
    harness = {"quality": quality, "contamination": ["others worked"], "complete": True, "refused": []}
    return {
        "comparisons": rows, "cases": [], "harness": harness, "duration_s": 1.0,
        "reference": {"sha": "a" * 40}, "commit": {"sha": "b" * 40, "dirty": False},
    }  # fmt: skip


def shown_of(report):
    text = StringIO()
    Console(file=text, width=200).print(comparison_table(report), *comparison_notes(report), sep="\n")
    return text.getvalue()


@pytest.mark.parametrize(
    ("metric", "values", "said"),
    [
        ("array_bytes", (3_550_000, 3_550_016), "(+16 B)"),
        ("array_allocs", (1331, 1329), "requests 1331 to 1329 (-2)"),
        ("array_bytes", (1000, 2000), "(2.00x)"),
    ],
)
def test_a_count_that_no_factor_shows_is_told_by_its_difference(metric, values, said):
    before, after = values
    outcome = "more" if after > before else "less"
    row = ROW | {"metric": metric, "outcome": outcome, "values": values, "log_ratio": math.log(after / before)}
    assert said in shown_of(report_of([row]))


@pytest.mark.parametrize(("outcome", "said"), [("more", "Python 1.46 MiB to 1.78 MiB (1.22x)"), ("ambiguous", "equal")])
def test_a_gradient_that_asks_python_for_more_is_not_called_equal(outcome, said):
    before, after = 1_535_320, 1_871_320
    row = ROW | {
        "metric": "python_bytes",
        "outcome": outcome,
        "values": [before, after],
        "log_ratio": math.log(after / before),
    }
    report = report_of([row])
    assert said in shown_of({**report, "comparisons": [row, ROW | {"metric": "array_bytes", "outcome": "equal"}]})
    assert "memory;" not in shown_of(report)
    assert regressions(report) == []


def test_a_busy_machine_is_no_news_where_nothing_was_measured():
    assert "busy" not in shown_of(report_of([], "contaminated"))


def test_engines_that_are_the_same_are_not_measured_twice(compare):
    report = compare("plain", "docs")
    assert report["harness"]["equal_code"]
    assert (report["comparisons"], report["cases"]) == ([], [])
    notes = "\n".join(map(str, comparison_notes(report)))
    assert "equal code: the commit changed nothing that is measured, and nothing was measured again" in notes


@pytest.mark.long
def test_engines_that_are_the_same_have_no_regression(compare):
    report = compare("plain", "docs", measure_equal=True)
    assert regressions(report) == []
    allocations = {row["metric"]: row for row in report["comparisons"] if row["metric"].startswith("array")}
    assert {row["outcome"] for row in allocations.values()} == {"equal"}
    assert allocations["array_allocs"]["values"][0] == allocations["array_allocs"]["values"][1] > 0


def test_a_wrong_gradient_is_a_failure_and_says_whose(compare):
    report = compare("plain", "wrong")
    (failed,) = failures(report)
    assert failed["error"]["kind"] == "gradient"
    assert failed["error"]["message"].startswith("candidate: gradient of x is off by")
    assert report["cases"][0]["variants"][0]["error"]["kind"] == "gradient"
    assert any("candidate: gradient" in str(note) for note in comparison_notes(report))


def test_a_tier_asked_for_by_name_must_be_there(compare):
    (failed,) = failures(compare("plain", "slow", variants=["fused"]))
    assert failed["error"]["kind"] == "unavailable"


def test_a_variant_that_nobody_knows_is_refused_up_front(compare):
    with pytest.raises(UsageError, match="no variant 'fussed'; known: unfused, fused, stateful, native, numpy"):
        compare("plain", "docs", variants=["fussed"])


def test_stopping_keeps_what_was_measured(compare):
    report = compare("plain", "slow", stop=lambda: True)
    assert not report["harness"]["complete"]
    assert report["comparisons"] == []

"""Taking a report apart: what becomes a point, what a failure, and what nothing."""

import json

import pytest

from pullback_service.reports.parts import part_of, take_apart
from pullback_service.reports.reading import read_report
from pullback_service.reports.schemas import ReportDocument


def taken(report):
    """Points and failures of all cases of a report."""
    points, failures = [], []
    for measured in ReportDocument.model_validate(report).cases:
        more_points, more_failures = take_apart(part_of(measured.case), measured, "$.cases[0]")
        points += more_points
        failures += more_failures
    return points, failures


def by_series(report):
    points, _ = taken(report)
    return {(point.series.variant, point.series.metric): point for point in points}


def test_each_measured_metric_is_a_point(report):
    points = by_series(report)
    assert set(points) == {
        ("unfused", "time"),
        ("unfused", "array_bytes"),
        ("fused", "time"),
        ("fused", "array_bytes"),
    }


def test_a_noisy_metric_is_summed_up_by_the_median_of_its_processes(report):
    point = by_series(report)["fused", "time"]
    assert point.value == 0.6
    assert point.process_values == [0.6, 0.7, 0.5]
    assert not point.series.exact
    assert point.paired.outcome == "faster"


def test_a_count_is_exact_and_has_its_ratio(report):
    point = by_series(report)["fused", "array_bytes"]
    assert point.value == 1024
    assert point.process_values is None
    assert point.series.exact
    assert point.method == "nep49"
    assert point.paired.outcome == "less"


@pytest.mark.parametrize(
    ("metric", "change", "reason"),
    [
        ("time", {"log_ratio": 0.5, "low": 0.4, "high": 0.6}, "The upload says faster, and its interval does not."),
        ("time", {"low": None}, "The upload gives no interval around its ratio."),
        ("time", {"low": 0.4, "high": 0.6}, "The upload gives no interval around its ratio."),
        ("time", {"n": 1}, "The interval is of 1 group: it takes 2 at least."),
        ("time", {"n": None}, "The interval is of an unknown number of groups: it takes 2 at least."),
        ("time", {"outcome": "less"}, "The upload says less of what was measured, not counted."),
        ("time", {"outcome": "same"}, "The upload says same, and its interval does not."),
        ("array_bytes", {"outcome": "more"}, "The upload says more, and its ratio does not."),
        ("array_bytes", {"outcome": "equal"}, "The upload says equal, and its ratio does not."),
        ("array_bytes", {"outcome": "faster"}, "The upload says faster of a count."),
    ],
)
def test_a_ratio_that_claims_more_than_its_numbers_is_ambiguous(report, metric, change, reason):
    for paired in report["cases"][0]["paired"]:
        if paired["metric"] == metric:
            paired.update(change)
    point = by_series(report)["fused", metric]
    assert (point.paired.outcome, point.doubt) == ("ambiguous", reason)
    (note,) = read_report(json.dumps(report).encode()).notes
    assert reason in note
    assert f"metrics.{metric}" in note


def test_a_ratio_that_its_numbers_bear_out_has_no_doubt(report):
    assert {point.doubt for point in by_series(report).values()} == {None}
    assert read_report(json.dumps(report).encode()).notes == ()


@pytest.mark.parametrize(
    ("metric", "ratio", "outcome", "believed"),
    [
        ("python_bytes", -1.5, "less", True),
        ("python_bytes", -1.5, "equal", False),
        ("python_allocs", 0.0, "equal", True),
        ("native_peak_bytes", 0.2, "more", True),
        ("instructions", 0.0009, "equal", True),
        ("instructions", 0.0011, "equal", False),
        ("gpu_bytes", -0.1, "less", True),
        ("heat", -1.5, "less", False),
    ],
)
def test_counts_of_one_session_are_believed_though_they_are_no_exact_metrics(report, metric, ratio, outcome, believed):
    (case,) = report["cases"]
    for variant in case["variants"]:
        variant["metrics"][metric] = {"unit": "1", "value": 23, "method": "hooks"}
    said = {"log_ratio": ratio, "low": ratio, "high": ratio, "n": 1, "outcome": outcome}
    case["paired"].append({"variant": "fused", "baseline": "unfused", "metric": metric, **said})
    point = by_series(report)["fused", metric]
    assert point.paired.outcome == (outcome if believed else "ambiguous")
    assert point.series.exact == (metric == "gpu_bytes")  # of two sessions only these are claimed
    case["variants"][1]["metrics"][metric]["kind"] = "noisy"  # who says so is taken at its word
    assert by_series(report)["fused", metric].paired.outcome == "ambiguous"


def test_a_count_of_zero_is_a_point_and_null_is_none(reports):
    variant = reports.variant("unfused", array_bytes=0)
    points = by_series(reports.report(cases=[reports.case(variants=[variant], paired=[])]))
    assert points["unfused", "array_bytes"].value == 0
    assert ("unfused", "native_bytes") not in points


def test_a_wrong_gradient_is_a_failure_and_no_point(reports):
    wrong = {"ok": False, "max_rel_error": 0.25, "oracle": "finite differences"}
    points, (failure,) = taken(reports.report(cases=[reports.case(gradient=wrong)]))
    assert points == []
    assert failure.kind == "gradient"
    assert failure.variant is None
    assert failure.message == "The gradient was wrong against finite differences, largest relative error 0.25."


def test_a_case_that_did_not_run_is_a_failure_with_its_reason(reports):
    broken = reports.case(error={"kind": "missing", "message": "pullback has no grad"}, variants=[], paired=[])
    points, failures = taken(reports.report(cases=[broken, reports.case("other")]))
    assert [(failure.kind, failure.message) for failure in failures] == [("missing", "pullback has no grad")]
    assert len(points) == 4


def test_one_failing_variant_leaves_the_others_standing(reports):
    peer = {**reports.variant("jax"), "error": {"kind": "missing", "message": "jax is not installed"}}
    points, failures = taken(
        reports.report(cases=[reports.case(variants=[reports.variant("unfused"), peer], paired=[])])
    )
    assert {point.series.variant for point in points} == {"unfused"}
    assert [(failure.variant, failure.kind) for failure in failures] == [("jax", "missing")]


def test_a_pair_that_failed_gives_no_point(reports):
    case = reports.case()
    case["paired"][0]["outcome"] = "failed"
    points = by_series(reports.report(cases=[case]))
    assert ("fused", "time") not in points
    assert ("unfused", "time") in points

"""Taking a report apart: what becomes a point, what a failure, and what nothing."""

import json
import math

import pytest

from pullback_service.reports.case_rows import part_of, take_apart
from pullback_service.reports.parsing import read_report
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


def test_a_count_tells_the_least_and_the_most_of_its_calls_where_they_differ(report):
    counted = report["cases"][0]["variants"][0]["metrics"]["array_bytes"]
    assert by_series(report)["unfused", "array_bytes"].calls is None
    counted |= {"differs": True, "range": [4000, 5000]}
    assert by_series(report)["unfused", "array_bytes"].calls == (4000, 5000)


@pytest.mark.parametrize(
    ("metric", "change", "reason"),
    [
        ("time", {"log_ratio": 0.5, "low": 0.4, "high": 0.6}, "The upload states faster, but its interval does not."),
        ("time", {"low": None}, "The upload has no interval for its ratio."),
        ("time", {"low": 0.4, "high": 0.6}, "The upload has no interval for its ratio."),
        ("time", {"n": 1}, "The interval is of 1 group: at least 2 are needed."),
        ("time", {"n": None}, "The interval is of an unknown number of groups: at least 2 are needed."),
        ("time", {"outcome": "less"}, "The upload states less for a value that was measured, not counted."),
        ("time", {"outcome": "same"}, "The upload states same, but its interval does not."),
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


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"log_ratio": 0.4, "outcome": "more"}, "The upload states more, but its ratio does not."),
        ({"outcome": "equal"}, "The upload states equal, but its ratio does not."),
        ({"outcome": "faster"}, "The upload states faster for a count."),
        ({"log_ratio": 0.4}, None),
    ],
)
def test_counts_are_compared_by_what_was_counted_whatever_an_upload_states(report, change, reason):
    report["cases"][0]["paired"][1].update(change)
    point = by_series(report)["fused", "array_bytes"]
    assert (point.paired.outcome, point.doubt) == ("less", reason)
    assert (
        point.paired.ratio.log_ratio
        == point.paired.ratio.low
        == point.paired.ratio.high
        == pytest.approx(math.log(1024 / 4096))
    )


def test_a_count_of_which_the_upload_knows_better_stays_ambiguous(report):
    report["cases"][0]["paired"][1]["outcome"] = "ambiguous"
    point = by_series(report)["fused", "array_bytes"]
    assert (point.paired.outcome, point.doubt) == ("ambiguous", None)


def test_a_count_without_one_of_the_baseline_has_no_ratio(report):
    (case,) = report["cases"]
    del case["variants"][0]["metrics"]["array_bytes"]
    point = by_series(report)["fused", "array_bytes"]
    assert (point.value, point.paired, point.doubt) == (1024, None, "There is no count of unfused in this case.")


def test_a_ratio_is_kept_against_the_baseline_that_the_upload_names(report, reports):
    (case,) = report["cases"]
    case["variants"].append(reports.variant("native", array_bytes=512.0))
    case["paired"] += [pair | {"variant": "native", "baseline": "fused"} for pair in case["paired"]]
    time, counted = (by_series(report)["native", metric].paired for metric in ("time", "array_bytes"))
    assert (time.baseline, time.ratio.log_ratio, time.outcome) == ("fused", -0.5, "faster")
    assert (counted.baseline, counted.outcome) == ("fused", "less")
    assert counted.ratio.log_ratio == pytest.approx(math.log(512 / 1024))


def test_a_ratio_that_its_numbers_bear_out_has_no_doubt(report):
    assert {point.doubt for point in by_series(report).values()} == {None}
    assert read_report(json.dumps(report).encode()).notes == ()


@pytest.mark.parametrize(
    ("metric", "ratio", "outcome", "believed", "counted"),
    [
        ("python_bytes", -1.5, "less", True, "less"),
        ("python_bytes", -1.5, "equal", False, "less"),
        ("python_allocs", 0.0, "equal", True, "equal"),
        ("native_peak_bytes", 0.2, "more", True, "more"),
        ("instructions", 0.0009, "equal", True, "equal"),
        ("instructions", 0.0011, "equal", False, "more"),
        ("gpu_bytes", -0.1, "less", True, "less"),
        ("heat", -1.5, "less", False, "ambiguous"),
    ],
)
def test_counts_of_one_session_are_believed_though_they_are_no_exact_metrics(
    report, metric, ratio, outcome, believed, counted
):
    (case,) = report["cases"]
    for variant, value in zip(case["variants"], (1e6, 1e6 * math.exp(ratio)), strict=True):
        variant["metrics"][metric] = {"unit": "1", "value": value, "method": "hooks"}
    said = {"log_ratio": ratio, "low": ratio, "high": ratio, "n": 1, "outcome": outcome}
    case["paired"].append({"variant": "fused", "baseline": "unfused", "metric": metric, **said})
    point = by_series(report)["fused", metric]
    assert (point.doubt is None) == believed
    assert point.paired.outcome == (outcome if believed else counted)
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


def test_variants_that_all_failed_say_why_and_the_case_says_nothing_of_its_gradient(reports):
    failed = {
        "variant": "fused",
        "kind": "peer",
        "error": {"kind": "gradient", "message": "its test failed"},
        "metrics": {},
    }
    report = reports.case(gradient={"ok": False}, variants=[failed], paired=[])
    points, (failure,) = taken(reports.report(cases=[report]))
    assert points == []
    assert (failure.variant, failure.message) == ("fused", "its test failed")
    sound = reports.case(gradient={"ok": False}, variants=[failed, reports.variant("unfused")], paired=[])
    points, (failure,) = taken(reports.report(cases=[sound]))
    assert (points, failure.variant, failure.message) == ([], None, "The gradient was wrong.")


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

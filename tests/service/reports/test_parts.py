"""Taking a report apart: what becomes a point, what a failure, and what nothing."""

import json

from pullback_service.reports.parts import take_apart
from pullback_service.reports.reading import read_report


def parts_of(report):
    return take_apart(read_report(json.dumps(report).encode()))


def by_series(parts):
    return {(point.series.variant, point.series.metric): point for point in parts.points}


def test_each_measured_metric_is_a_point(report):
    points = by_series(parts_of(report))
    assert set(points) == {
        ("unfused", "time"),
        ("unfused", "array_bytes"),
        ("fused", "time"),
        ("fused", "array_bytes"),
    }


def test_a_noisy_metric_is_summed_up_by_the_median_of_its_processes(report):
    point = by_series(parts_of(report))["fused", "time"]
    assert point.value == 0.6
    assert point.process_values == [0.6, 0.7, 0.5]
    assert not point.series.exact
    assert point.paired.outcome == "faster"


def test_a_count_is_exact_and_has_its_ratio(report):
    point = by_series(parts_of(report))["fused", "array_bytes"]
    assert point.value == 1024
    assert point.process_values is None
    assert point.series.exact
    assert point.method == "nep49"
    assert point.paired.outcome == "less"


def test_a_count_of_zero_is_a_point_and_null_is_none(reports):
    variant = reports.variant("unfused", array_bytes=0)
    points = by_series(parts_of(reports.report(cases=[reports.case(variants=[variant], paired=[])])))
    assert points["unfused", "array_bytes"].value == 0
    assert ("unfused", "native_bytes") not in points


def test_a_wrong_gradient_is_a_failure_and_no_point(reports):
    wrong = {"ok": False, "max_rel_error": 0.25, "oracle": "finite differences"}
    parts = parts_of(reports.report(cases=[reports.case(gradient=wrong)]))
    assert parts.points == []
    (failure,) = parts.failures
    assert failure.kind == "gradient"
    assert failure.variant is None
    assert failure.message == "The gradient was wrong against finite differences, largest relative error 0.25."


def test_a_case_that_did_not_run_is_a_failure_with_its_reason(reports):
    broken = reports.case(error={"kind": "missing", "message": "pullback has no grad"}, variants=[], paired=[])
    parts = parts_of(reports.report(cases=[broken, reports.case("other")]))
    assert [(failure.kind, failure.message) for failure in parts.failures] == [("missing", "pullback has no grad")]
    assert len(parts.points) == 4


def test_one_failing_variant_leaves_the_others_standing(reports):
    peer = {**reports.variant("jax"), "error": {"kind": "missing", "message": "jax is not installed"}}
    parts = parts_of(reports.report(cases=[reports.case(variants=[reports.variant("unfused"), peer], paired=[])]))
    assert {point.series.variant for point in parts.points} == {"unfused"}
    assert [(failure.variant, failure.kind) for failure in parts.failures] == [("jax", "missing")]


def test_a_pair_that_failed_gives_no_point(reports):
    case = reports.case()
    case["paired"][0]["outcome"] = "failed"
    points = by_series(parts_of(reports.report(cases=[case])))
    assert ("fused", "time") not in points
    assert ("unfused", "time") in points


def test_a_compared_case_is_a_case_but_not_a_measured_one(reports):
    compared = {
        "case": reports.case("elsewhere")["case"],
        "variant": "fused",
        "metric": "time",
        "reference": reports.sha(1),
        "candidate": reports.sha(2),
        "log_ratio": 0.02,
        "low": 0.01,
        "high": 0.03,
        "n": 40,
        "outcome": "slower",
    }
    parts = parts_of(reports.report(comparisons=[compared]))
    assert parts.measured_cases == 1
    assert len(parts.cases) == 2
    assert len(parts.comparisons) == 1

"""Explored series: small multiples on one axis of commits, and names that tell just enough."""

import math

from tests.service.readings.making import mark

from pullback_dashboards.explore.view import MOST_CURVES, ChartSeries, charts_of, rows_of
from pullback_service.models.machines import Machine
from pullback_service.models.series import Case, Series
from pullback_service.series.search import StoredSeries


def point(place, value, ratio=None):
    return mark(value, place, ratio), f"{place:040x}"


def found(variant="fused", *, metric="time", machine="lab", n=8, workload="dense", points=None):
    ratio = None if variant == "unfused" else math.log(0.5)
    series = Series(
        id=1,
        variant=variant,
        variant_kind="tier",
        metric=metric,
        unit="s" if metric == "time" else "B",
        direction="smaller",
        exact=False,
    )
    case = Case(workload=workload, label=f"{workload}[n={n},f4,cpu]", params={"n": n}, dtype="f4", device="cpu")
    stored = StoredSeries(series, case, Machine(name=machine, fingerprint=machine), "p")
    return ChartSeries(stored, tuple(points or (point(0, 1e-3, ratio), point(1, 1e-3, ratio))))


def names(*series, split="metric"):
    return [[curve.name for curve in chart.curves] for chart in charts_of(series, split=split, relative=True)]


def test_curves_are_named_by_what_differs():
    assert names(found("fused"), found("native")) == [["fused", "native"]]
    assert names(found(n=8), found(n=9)) == [["n=8", "n=9"]]
    assert names(found("fused", machine="a"), found("native", machine="b")) == [["fused a", "native b"]]
    assert names(found()) == [["fused"]]


def test_there_is_a_chart_for_each_value_of_the_split():
    charts = charts_of(
        [found(machine="a"), found(machine="b"), found("native", machine="b")], split="machine", relative=True
    )
    assert [chart.title for chart in charts] == ["a: time", "b: time"]
    assert [len(chart.curves) for chart in charts] == [1, 2]


def test_metrics_never_share_an_axis():
    charts = charts_of([found(), found(metric="array_bytes")], split="variant", relative=False)
    assert [chart.axes.unit for chart in charts] == [" ms", " B"]


def test_the_baseline_is_a_line_where_ratios_are_drawn_and_a_curve_where_values_are():
    series = [found("unfused"), found("fused")]
    assert [curve.name for curve in charts_of(series, split="metric", relative=True)[0].curves] == ["fused"]
    assert len(charts_of(series, split="metric", relative=False)[0].curves) == 2


def test_commits_of_all_series_lie_on_one_axis():
    late = found("native", points=[point(1, 1.0, 0.0), point(5, 1.0, 0.0)])
    chart = charts_of([found("fused"), late], split="metric", relative=True)[0]
    assert chart.axes.count == 3
    assert [[spot.place for spot in curve.spots] for curve in chart.curves] == [[0, 1], [1, 2]]


def test_what_is_not_drawn_is_counted():
    chart = charts_of([found(n=n) for n in range(MOST_CURVES + 3)], split="metric", relative=True)[0]
    assert (len(chart.curves), chart.left_out) == (MOST_CURVES, 3)


def test_the_baseline_takes_no_room_where_it_is_a_line():
    series = [found(variant, n=n) for variant in ("unfused", "fused") for n in range(MOST_CURVES)]
    chart = charts_of(series, split="metric", relative=True)[0]
    assert (len(chart.curves), chart.left_out) == (MOST_CURVES, 0)


def test_a_row_tells_the_newest_point():
    row = rows_of([found()], "p")[0]
    assert (row.newest.replace("\u202f", " "), row.against, row.mark, row.points) == ("1.00 ms", "0.50×", "▼", 2)

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from tests.service.readings.making import reading

from pullback_dashboards.history import Claim, Commit, Failure
from pullback_dashboards.workload.annotations import CountChange, EventSentence, events
from pullback_dashboards.workload.figure import heights, workload_figure
from pullback_dashboards.workload.view import State, workload_view
from pullback_service.ratio import Ratio

GOLDEN = Path(__file__).parent.parent / "golden"
RENEW = "PULLBACK_RENEW_GOLDEN"


def figure_of(history, **state):
    view = workload_view(history, project="p", workload="dense", state=State(memory="array_bytes", **state))
    return workload_figure(view)


def lines_of(figure, axis="y"):
    return {t["name"]: t for t in figure["data"] if t["mode"] == "lines+markers" and t["yaxis"] == axis}


@pytest.mark.parametrize("y", ["relative", "absolute"])
def test_the_figure_is_the_golden_one(history, y):
    """Renew with PULLBACK_RENEW_GOLDEN=1 after looking at the page."""
    file = GOLDEN / f"workload-{y}.json"
    drawn = json.dumps(figure_of(history, y=y), indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    if os.environ.get(RENEW):
        file.write_text(drawn, encoding="utf-8")
    assert drawn == file.read_text(encoding="utf-8")


def test_a_failed_commit_is_a_struck_line_and_never_a_point(history):
    figure = figure_of(history)
    for trace in lines_of(figure).values():
        assert 1.0 not in [x for x, y in zip(trace["x"], trace["y"], strict=True) if y is not None]
    assert any(shape["x0"] == 1.0 for shape in figure["layout"]["shapes"])
    assert "wrong gradient" in figure["layout"]["annotations"][0]["hovertext"]


def test_the_line_breaks_at_a_failure(history):
    assert lines_of(figure_of(history))["fused"]["y"] == [0.4, None, 0.4, 0.5]


def test_ambiguous_marks_are_hollow(history):
    assert lines_of(figure_of(history))["stateful"]["marker"]["symbol"][0] == "square-open"
    assert lines_of(figure_of(history))["fused"]["marker"]["symbol"][0] == "circle"


def test_both_rows_share_their_commits(history):
    layout = figure_of(history)["layout"]
    assert layout["xaxis2"]["matches"] == "x"
    assert layout["yaxis"]["domain"][0] > layout["yaxis2"]["domain"][1]


def test_a_count_of_zero_lies_on_zero_on_a_linear_axis_and_nowhere_on_a_logarithmic_one(history):
    assert lines_of(figure_of(history), "y2")["stateful"]["y"][-1] == 0
    assert 0 not in lines_of(figure_of(history, scale="log"), "y2")["stateful"]["y"]


def test_absolute_values_include_the_baseline_in_one_unit(history):
    figure = figure_of(history, y="absolute")
    assert lines_of(figure)["unfused"]["y"][0] == pytest.approx(100)
    assert figure["layout"]["yaxis"]["title"]["text"] == "time, µs"


def test_along_dates_the_axis_is_one_of_dates(history):
    figure = figure_of(history, x="date")
    assert figure["layout"]["xaxis"]["type"] == "date"
    assert lines_of(figure)["fused"]["x"][0].startswith("2026-03-01T12:00")


def test_without_dates_the_order_of_commits_is_used(history):
    undated = replace(history, commits=tuple(Commit(c.sha) for c in history.commits))
    assert figure_of(undated, x="date")["layout"]["xaxis"]["type"] == "linear"


def test_titles_are_text_and_not_markup(history):
    wild = replace(history, commits=tuple(replace(c, title="<b>bold</b> & <a href='x'>y</a>") for c in history.commits))
    figure = figure_of(wild)
    hover, _ = figure["commits"][str(lines_of(figure)["fused"]["customdata"][0][1])]
    assert "&lt;b&gt;bold&lt;/b&gt; &amp; &lt;a" in hover


def test_a_variant_that_failed_alone_is_named_at_the_foot(build):
    lines = (
        build.line("unfused", [reading(1.0)] * 2),
        build.line("fused", [Failure("no such tier"), build.paired(0.5)]),
    )
    layout = figure_of(build.history(*lines))["layout"]
    assert [a["text"] for a in layout["annotations"]] == ["✕ fused"]
    assert "no such tier" in layout["annotations"][0]["hovertext"]


def events_of(history, *counts, claims=()):
    known = replace(history, claims=claims)
    view = workload_view(known, project="p", workload="dense", state=State(memory="array_bytes"), counts=counts)
    return workload_figure(view), view


def test_changed_counts_and_comparisons_have_a_lane_each_that_shares_the_commits(history, build):
    claim = Claim(3, "dense", "dense[n=100,f4,cpu]", "fused", "time", "a" * 40, "slower", Ratio(0.03, 0.026, 0.034, 20))
    figure, _ = events_of(history, CountChange(3, "fused", build.bytes, 1024.0, 2048.0), claims=(claim,))
    counts, comparisons = figure["data"][-2:]
    assert (counts["name"], comparisons["name"]) == ("counts", "comparisons")
    assert counts["marker"]["symbol"] == comparisons["marker"]["symbol"] == ["triangle-up"]
    assert "array bytes 1\u202fKiB → 2\u202fKiB" in counts["customdata"][0][0]
    assert "3.0 % more time than aaaaaaaaa" in comparisons["customdata"][0][0]
    assert figure["layout"]["xaxis3"]["matches"] == "x"
    assert figure["layout"]["yaxis3"]["ticktext"] == ["counts", "comparisons"]


def test_every_sentence_of_an_event_keeps_its_own_tone(history):
    claims = (
        Claim(3, "dense", "dense[n=100,f4,cpu]", variant, "time", "a" * 40, outcome, Ratio(0.03, 0.026, 0.034, 20))
        for variant, outcome in (("fused", "faster"), ("stateful", "slower"), ("native", "slower"))
    )
    _, view = events_of(history, claims=tuple(claims))
    (event,) = view.rows[0].events
    assert event.tone == "worse"
    assert event.tones == ("worse", "worse", "better")
    assert [sentence.partition(":")[0] for sentence in event.sentences] == ["stateful", "native", "fused"]


def test_better_and_worse_events_differ_in_shape(history, build):
    figure, view = events_of(
        history, CountChange(1, "fused", build.bytes, 2.0, 1.0), CountChange(3, "fused", build.bytes, 1.0, 2.0)
    )
    assert figure["data"][-1]["marker"]["symbol"] == ["triangle-down", "triangle-up"]
    assert [event.sign for event in view.events] == ["▼", "▲"]
    assert view.rows[0].events[0].sentences == ("fused: array bytes 1\u202fB → 2\u202fB (+1\u202fB)",)


def test_incidents_have_room_above(history):
    happened = events((), (), [EventSentence(2, "incidents", "worse", "time of fused is 4 % worse since here")])
    view = replace(workload_view(history, project="p", workload="dense", state=State()), events=happened)
    assert workload_figure(view)["data"][-1]["name"] == "incidents"


def test_the_room_that_is_kept_is_the_height_of_the_figure(history, build):
    figure, view = events_of(history, CountChange(3, "fused", build.bytes, 1.0, 2.0))
    assert heights(view) == {"wide": figure["layout"]["height"], "narrow": figure["narrow"]["height"]}


def test_a_mark_of_a_thinned_history_knows_what_it_followed(build):
    fused = build.line("fused", [build.paired(0.3), build.paired(0.5)], previous={1: build.paired(0.4)})
    lines = (build.line("unfused", [reading(1.0)] * 2), fused)
    rows = workload_view(build.history(*lines), project="p", workload="dense", state=State()).rows
    assert rows[0].marks["fused time"].since == "+25.0 %"

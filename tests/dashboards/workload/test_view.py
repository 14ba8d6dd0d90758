from dataclasses import replace

import pytest
from tests.service.readings.making import reading

from pullback_dashboards.history import Failure, Metric
from pullback_dashboards.rendering import json_response
from pullback_dashboards.workload.cells import cell
from pullback_dashboards.workload.sources import machine_for
from pullback_dashboards.workload.static_charts import chart, spoken_of, stills, workload_badge
from pullback_dashboards.workload.view import State, beside_time, workload_view
from pullback_service.errors import NotFoundError
from pullback_service.measured_code.code_identity import CodeIdentity
from pullback_service.series.queries import MeasuringMachine

TWO_TEXTS = {1: CodeIdentity("first text", "files", "1"), 2: CodeIdentity("second text", "other files", "1")}


def view_of(history, **state):
    return workload_view(history, project="p", workload="dense", state=State(memory="array_bytes", **state))


def test_another_level_is_an_event_and_accuses_nobody(build):
    lines = [
        build.line("unfused", [reading(1.0, measured_id=each) for each in TWO_TEXTS]),
        build.line("fused", [build.paired(ratio)._replace(measured_id=each) for ratio, each in ((0.5, 1), (0.9, 2))]),
        build.line("fused", [reading(value, measured_id=each) for value, each in ((4.0, 1), (9.0, 2))], build.bytes),
    ]
    view = view_of(replace(build.history(*lines), measured=TWO_TEXTS))
    (event,) = view.events
    assert (event.place, event.lane, event.tone) == (1, "levels", "unsure")
    assert event.sentences == (
        "Another level: the text of the workload (first te, then second t) changed between the two, so the commits do not compare.",
    )
    assert {mark.since_tone for mark in view.rows[0].marks.values()} == {""}


def test_a_cell_escapes_what_strangers_wrote(build):
    wild, escaped = '<i>\u202e"', "&lt;i&gt;⟨U+202E⟩&#34;"
    metric = Metric("array_bytes", wild, exact=True)
    lines = [build.line(wild, [reading(4.0), reading(9.0)], metric), build.line("fused", [Failure(wild)] * 2, metric)]
    view = view_of(build.history(*lines))
    shown = [str(cell(view, view.rows[0].marks.get(column.key), column)) for column in view.columns]
    assert [one.count(escaped) for one in shown] == [1, 3]
    assert not [one for one in shown if "<i>" in one or "\u202e" in one]


def test_json_of_a_view_is_the_same_once_it_was_drawn(history):
    view = view_of(history, y="absolute")
    before = json_response(view).made()
    assert stills(view)
    assert json_response(view).made() == before


def test_the_table_has_the_newest_commit_first_and_every_commit_once(history):
    rows = view_of(history).rows
    assert [row.place for row in rows] == [3, 2, 1, 0]


def test_a_commit_where_the_whole_case_failed_has_a_reason(history):
    view = view_of(history)
    assert [row.place for row in view.failures] == [1]
    assert view.failures[0].failure == "wrong gradient: relative error 0.03"


def test_marks_tell_the_change_since_the_commit_measured_before(history):
    row = view_of(history).rows[0]
    assert row.marks["fused time"].since == "+25.0 %"
    assert row.marks["fused time"].since_tone == "likely-worse"
    assert row.marks["fused array_bytes"].since.replace("\u202f", " ") == "+1 KiB"
    assert row.marks["unfused time"].since == ""


def test_what_changed_is_told_in_numbers_where_anything_did(history):
    newest, before = view_of(history).rows[:2]
    assert newest.marks["fused time"].since_number == 1.25
    assert newest.marks["fused array_bytes"].since_number == 1024.0
    for unchanged in (before.marks["fused time"], before.marks["fused array_bytes"], newest.marks["unfused time"]):
        assert unchanged.since_number is None


def test_a_failure_between_two_commits_does_not_hide_the_change(history):
    row = view_of(history).rows[1]
    assert row.marks["fused time"].since == "±0.0 %"
    assert row.marks["fused time"].since_tone == ""


def test_every_variant_has_a_track_even_where_it_was_not_measured(history):
    plot = view_of(history).plots[0]
    assert [track.variant for track in plot.tracks] == ["unfused", "fused", "stateful"]
    assert [mark.place for mark in plot.tracks[2].marks] == [0, 1, 3]


def test_counts_of_zero_are_said_to_be_left_out_where_the_axis_is_logarithmic(history):
    assert view_of(history, scale="log").leaves_out_values
    assert not view_of(history).leaves_out_values


def test_values_without_a_ratio_are_said_to_be_left_out_of_plots_of_factors(build, history):
    below = build.history(
        build.line("unfused", [reading(8.0)] * 2, build.bytes),
        build.line("fused", [reading(4.0), reading(-5.0)], build.bytes),
    )
    assert view_of(below).leaves_out_what_has_no_ratio
    assert not view_of(below, y="absolute").leaves_out_what_has_no_ratio
    assert not view_of(history).leaves_out_what_has_no_ratio


def test_the_table_has_a_column_for_every_variant_in_every_metric(history):
    view = view_of(history)
    assert view.named == "Time and array bytes"
    assert len(view.columns) == sum(len(plot.variants) for plot in view.plots) == len(view.rows[0].marks)


def test_the_sentence_says_speed_then_memory(history):
    said = {part.variant: part.words for part in view_of(history).lede}
    assert said["fused"] == "2.0× faster than unfused, array bytes 50 % less than unfused"
    assert said["stateful"] == "3.3× faster than unfused, array bytes none, unlike unfused"


def test_the_address_keeps_only_what_is_not_the_default():
    state = State(case="c", y="absolute")
    assert {k: v for k, v in state.parameters(scale="log").items() if v} == {
        "case": "c",
        "y": "absolute",
        "scale": "log",
    }


def test_without_a_baseline_values_are_shown_and_said(build):
    alone = build.history(build.line("pytest", [reading(1e-3), reading(2e-3)]))
    view = workload_view(alone, project="p", workload="dense", state=State())
    assert not view.compares
    assert view.state.y == "absolute"
    assert [(said.variant, said.words) for said in view.lede] == [("pytest", "2.00\u202fms")]
    assert "pytest: 2.00\u202fms" in workload_badge(view, spoken_of(view))
    assert "<path" in chart(view)


def test_the_table_has_no_column_for_what_nobody_counts(history, build):
    peer = build.line("jax", [build.paired(0.8)] * 4)
    view = view_of(replace(history, lines=(*history.lines, peer)))
    assert [plot.variants for plot in view.plots] == [
        ("unfused", "fused", "stateful", "jax"),
        ("unfused", "fused", "stateful"),
    ]


def test_the_badge_speaks_of_the_last_of_our_tiers(history, build):
    peer = build.line("jax", [build.paired(0.8)] * 4)
    assert spoken_of(view_of(replace(history, lines=(*history.lines, peer)))) == "stateful"


def test_what_only_an_older_commit_said_has_its_commit_in_the_sentence_and_on_the_badge(build):
    times = (
        build.line("unfused", [reading(1e-4)] * 2),
        build.line("fused", [build.paired(0.5)] * 2),
        build.line("native", [build.paired(0.1), None]),
    )
    counts = (
        build.line("unfused", [reading(8.0), None], build.bytes),
        build.line("native", [reading(4.0), None], build.bytes),
    )
    view = view_of(build.history(*times, *counts))
    said = {part.variant: part.words for part in view.lede}
    assert said == {
        "fused": "2.0× faster than unfused",
        "native": "10.0× faster than unfused, array bytes 50 % less than unfused (at 000000000)",
    }
    assert spoken_of(view) == "fused"
    assert "dense fused: 2.0× faster than unfused<" in workload_badge(view, "fused")
    assert "dense native: at 000000000: 10.0× faster than unfused<" in workload_badge(view, "native")


def test_a_disturbed_time_says_so_in_the_sentence_and_on_a_grey_badge_and_a_count_beside_it_does_not(build):
    disturbed = build.paired(0.5)._replace(quality="busy")
    lines = (
        build.line("unfused", [reading(1e-4, quality="busy")]),
        build.line("fused", [disturbed]),
        build.line("unfused", [reading(8.0, quality="busy")], build.bytes),
        build.line("fused", [reading(4.0, quality="busy")], build.bytes),
    )
    view = view_of(build.history(*lines))
    (fused,) = view.lede
    assert fused.words == "2.0× faster than unfused (busy machine), array bytes 50 % less than unfused"
    drawn = workload_badge(view, "fused")
    assert "dense fused: busy machine: 2.0× faster than unfused<" in drawn
    assert 'fill="#616872"' in drawn


class Here:
    """Two machines that have the workload, the second of which has the case asked for."""

    machines = (MeasuringMachine(1, "lab", None), MeasuringMachine(2, "phone", None))

    @classmethod
    def chosen(cls, of_case=(), **state):
        return machine_for(cls.machines, frozenset(of_case), "p", "dense", State(**state))


def test_the_machine_is_one_that_has_the_workload_and_the_case():
    assert Here.chosen().name == "lab"
    assert Here.chosen({2}, case="c").name == "phone"
    assert Here.chosen(machine="phone").name == "phone"


def test_a_machine_without_the_workload_leads_to_those_that_have_it():
    with pytest.raises(NotFoundError, match="'ci' has not measured 'dense'") as refused:
        Here.chosen(machine="ci")
    assert refused.value.members["instead"] == [
        {"text": "lab", "address": "/projects/p/workloads/dense?machine=lab"},
        {"text": "phone", "address": "/projects/p/workloads/dense?machine=phone"},
    ]
    with pytest.raises(NotFoundError, match="No machine has results"):
        machine_for((), frozenset(), "p", "dense", State())


def test_times_of_another_tool_are_not_called_memory():
    counted = [Metric("array_bytes", "B", exact=True), Metric("array_allocs", "1", exact=True)]
    assert beside_time(counted) == "memory"
    assert (
        beside_time([Metric("user_time", "s", exact=False), Metric("system_time", "s", exact=False)]) == "other metrics"
    )


def test_values_relative_to_the_first_commit_are_of_ratios_and_leave_the_baseline_out(build):
    lines = [
        build.line("unfused", [reading(value) for value in (1.0, 1.4, 0.8)]),
        build.line("fused", [build.paired(ratio) for ratio in (0.5, 0.5, 0.65)]),
    ]
    view = view_of(build.history(*lines), y="first")
    assert [plot.log for plot in view.plots] == [True]
    unfused, fused = view.plots[0].tracks
    assert [view.change_of(mark) for mark in unfused.marks] == [None, None, None]
    assert [view.change_of(mark) for mark in fused.marks] == pytest.approx([1.0, 1.0, 1.3])
    assert "÷ first commit" in chart(view)


def test_values_without_a_baseline_are_relative_to_the_first_value(build):
    view = view_of(build.history(build.line("external", [reading(value) for value in (2.0, 3.0)])), y="first")
    assert view.state.y == "first"
    assert [view.change_of(mark) for mark in view.plots[0].tracks[0].marks] == pytest.approx([1.0, 1.5])


def test_values_relative_to_the_parent_show_what_each_commit_changed(build):
    lines = [
        build.line("unfused", [reading(value) for value in (1.0, 1.4, 0.8)]),
        build.line("fused", [build.paired(ratio) for ratio in (0.5, 0.65, 0.65)]),
    ]
    view = view_of(build.history(*lines), y="parent")
    unfused, fused = view.plots[0].tracks
    assert [view.change_of(mark) for mark in unfused.marks] == [None, None, None]
    assert [view.change_of(mark) for mark in fused.marks] == [None, pytest.approx(1.3), pytest.approx(1.0)]
    assert "÷ parent" in chart(view)


def test_another_level_is_not_held_against_its_parent(build):
    line = build.line("external", [reading(2.0, measured_id=1), reading(3.0, measured_id=2)])
    view = view_of(replace(build.history(line), measured=TWO_TEXTS), y="parent")
    assert [view.change_of(mark) for mark in view.plots[0].tracks[0].marks] == [None, None]


def test_values_ten_times_apart_have_an_axis_for_each_variant_unless_another_scale_is_asked_for(build):
    def drawn(near, **state):
        lines = [build.line(name, [reading(value)] * 3) for name, value in (("near", near), ("far", 1.0))]
        view = view_of(build.history(*lines), y="absolute", **state)
        assert len(stills(view)) == len(view.drawn)
        return [([track.variant for track in plot.tracks], plot.log) for plot in view.drawn]

    assert drawn(0.01) == [(["far"], False), (["near"], False)]
    assert drawn(0.01, scale="log") == [(["far", "near"], True)]
    assert drawn(0.01, scale="linear") == drawn(0.5) == [(["far", "near"], False)]

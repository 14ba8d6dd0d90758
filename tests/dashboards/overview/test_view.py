from dataclasses import replace

import pytest
from tests.service.readings.making import mark_of, reading

from pullback_dashboards.history import Failure
from pullback_dashboards.news.view import RECENTLY, moves
from pullback_dashboards.overview.cells import cells as cells_of
from pullback_dashboards.overview.parameters import State
from pullback_dashboards.overview.ranking import VariantResult, means, ranked
from pullback_dashboards.overview.view import bracket, heat_map
from pullback_dashboards.rendering import json_response
from pullback_service.readings.reading import Reading


def stood(history, metric):
    found = []
    for line in history.of(metric.name):
        places = [place for place, result in enumerate(line.results) if result]
        for place in places[-1:]:
            base, result = line.base_at(place), line.results[place]
            measured, failure = (None, result.message) if isinstance(result, Failure) else (result, None)
            found.append(VariantResult(line.case, line.variant, place, measured, 1, base=base, failure=failure))
    return found


def curve(line):
    return [mark_of(one) if isinstance(one, Reading) else one for one in line.results]


def heat(history, metric, *, opened=("dense",), toggles=False, state=None, most=40):
    found = stood(history, metric)
    workloads = {workload: history.cases(workload) for workload in history.workloads}
    return heat_map(
        ranked(workloads, found, metric),
        {(one.case, one.variant): one for one in found},
        history.commits,
        {(line.case, line.variant): curve(line) for line in history.of(metric.name)},
        variants=history.variants,
        metric=metric,
        means=means(found, metric),
        opened=opened,
        state=state or State(project="p"),
        most_cases=most,
        toggles=toggles,
        moves=tuple(moves(history, RECENTLY.commits)),
    )


def cells(history, metric):
    return {cell.variant: cell for cell in heat(history, metric).groups[0].rows[0].cells}


def test_a_cell_tells_factor_words_and_interval(history, build):
    fused = cells(history, build.time)["fused"]
    assert (fused.value, fused.words, fused.doubt) == (
        "0.500×",
        "2.0× faster than unfused; failed at 111111111 and works again",
        "0.495–0.505",
    )
    assert (fused.tone, fused.mark) == ("better", "▼")


def test_the_baseline_shows_its_value_and_no_ratio(history, build):
    unfused = cells(history, build.time)["unfused"]
    assert unfused.value.replace("\u202f", " ") == "100 µs"
    assert unfused.log_ratio is None


def test_a_failed_case_shows_its_reason_and_no_number(build):
    lines = (build.line("unfused", [reading(1.0)]), build.line("fused", [Failure("no such tier")]))
    fused = cells(build.history(*lines), build.time)["fused"]
    assert (fused.value, fused.doubt, fused.tone) == ("failed", "no such tier", "failed")
    assert fused.log_ratio is None
    assert fused.measured is None


def test_an_ambiguous_cell_is_marked_and_not_tinted(build):
    lines = (build.line("unfused", [reading(1.0)]), build.line("fused", [build.paired(0.9, "ambiguous", doubt=0.2)]))
    fused = cells(build.history(*lines), build.time)["fused"]
    assert (fused.tone, fused.depth, fused.mark) == ("unsure", 0, "?")
    assert fused.doubt.endswith("ambiguous")


def test_a_cell_of_an_older_commit_says_so(build):
    lines = (build.line("unfused", [reading(1.0)] * 2), build.line("fused", [build.paired(0.5), None]))
    fused = cells(build.history(*lines), build.time)["fused"]
    assert fused.outdated
    assert fused.doubt == "from an older commit"


def test_memory_that_is_gone_is_better_without_a_ratio(history, build):
    stateful = cells(history, build.bytes)["stateful"]
    assert stateful.value.replace("\u202f", " ") == "0 B"
    assert (stateful.doubt, stateful.tone, stateful.depth) == ("none, unlike unfused", "better", 5)


def test_a_count_below_zero_is_said_with_its_numbers_and_lies_on_the_lower_edge(build):
    score = replace(build.bytes, name="score", unit="1")
    lines = (build.line("unfused", [reading(3.0)], score), build.line("fused", [reading(-5.0)], score))
    fused = cells(build.history(*lines), score)["fused"]
    assert (fused.value, fused.doubt) == ("-5", "less than unfused: -5 against 3")
    assert fused.ticks[0].nothing


@pytest.mark.parametrize("values", [(-3.0, -5.0, -4.0), (3.0, -5.0, 0.0), (1.0, 0.5, 2.0)])
def test_a_sparkline_of_values_alone_has_every_one_of_them_in_their_order(build, values):
    speed = replace(build.time, name="speed", unit="1")
    drawn = cells(build.history(build.line("external", [reading(value) for value in values], speed)), speed)
    heights = [tick.ratio.log_ratio for tick in drawn["external"].ticks]
    assert sorted(range(3), key=heights.__getitem__) == sorted(range(3), key=values.__getitem__)


def test_a_disturbed_time_is_told_in_its_cell_in_the_row_of_its_workload_and_in_the_mean(build):
    small, large = "dense[n=1,f4,cpu]", "dense[n=2,f4,cpu]"
    disturbed = build.paired(0.5)._replace(quality="busy")
    lines = [build.line("unfused", [reading(1e-4)], case=case) for case in (small, large)]
    lines += [
        build.line("fused", [disturbed], case=small),
        build.line("fused", [build.paired(0.25)], case=large),
    ]
    drawn = heat(build.history(*lines), build.time, toggles=True)
    (group,) = drawn.groups
    assert [cell.doubt for row in group.rows for cell in row.cells[1:]] == [
        "0.495–0.505, busy",
        "0.248–0.253",
    ]
    assert group.summary.cells[1].doubt == "best 0.25×, busy"
    fused = drawn.means[1]
    assert fused.words == "2.8× faster than unfused"
    assert (fused.tone, fused.busy) == ("better", 1)


def test_a_machine_in_use_does_not_disturb_counts(build):
    lines = (
        build.line("unfused", [reading(8.0, quality="busy")], build.bytes),
        build.line("fused", [reading(4.0, quality="busy")], build.bytes),
    )
    assert heat(build.history(*lines), build.bytes).means[1].busy == 0


def test_means_do_not_hide_counts_of_zero(history, build):
    means = {mean.variant: mean for mean in heat(history, build.bytes).means}
    assert means["stateful"].value == "0 in 1 of 1"
    assert means["stateful"].log_ratio is None
    assert means["fused"].value == "0.50×"


def test_the_mean_is_geometric(build):
    lines = [build.line("unfused", [reading(1.0)], case=f"dense[n={n}]") for n in (1, 2)]
    lines += [build.line("fused", [build.paired(ratio)], case=f"dense[n={n}]") for n, ratio in ((1, 0.25), (2, 1.0))]
    (_, mean) = heat(build.history(*lines), build.time).means
    assert (mean.value, mean.cases) == ("0.50×", 2)


def test_means_say_over_how_many_cases_they_are(build):
    def line(variant, case, reading):
        return build.line(variant, [reading], case=f"dense[n={case}]")

    failed = Failure("wrong")
    lines = [line("unfused", case, reading(1.0)) for case in (1, 2, 3)]
    lines += [line("fused", case, reading) for case, reading in ((1, build.paired(0.5)), (2, failed), (3, failed))]
    assert heat(build.history(*lines), build.time).averaged == "time, geometric mean over 1 case"
    lines += [line("native", case, build.paired(0.5)) for case in (1, 2, 3)]
    assert heat(build.history(*lines), build.time).averaged == "time, geometric mean over 1 to 3 cases"
    lines = [
        build.line(variant, [reading(value)], build.bytes) for variant, value in (("unfused", 1.0), ("fused", 0.0))
    ]
    assert heat(build.history(*lines), build.bytes).averaged == "array bytes"


def test_sparklines_follow_the_ratio_with_failures(history, build):
    ticks = cells(history, build.time)["fused"].ticks
    assert [tick.failed for tick in ticks] == [False, True, False, False]
    assert ticks[3].ratio.log_ratio == pytest.approx(-0.693, abs=1e-3)


def test_the_case_label_repeats_the_workload_only_where_it_must():
    assert bracket("dense[n=100,f4,cpu]", "dense") == "n=100, f4, cpu"
    assert bracket("something else", "dense") == "something else"
    assert bracket("dense[n=1][]", "dense[n=1]") == "dense[n=1][]"


def several(build, *, cases=3, **readings):
    """A workload with cases n = 1, 2, … in which variants have the readings given."""
    lines = [build.line("unfused", [reading(n * 1e-3)], case=f"dense[n={n}]") for n in range(1, cases + 1)]
    for variant, ratios in readings.items():
        lines += [
            build.line(variant, [ratio if isinstance(ratio, Failure) else build.paired(ratio)], case=f"dense[n={n}]")
            for n, ratio in enumerate(ratios, 1)
        ]
    return build.history(*lines)


def test_a_closed_workload_shows_its_worst_case_and_tells_the_best(build):
    (group,) = heat(several(build, fused=[0.5, 0.88, 0.7]), build.time, opened=(), toggles=True).groups
    assert group.rows == ()
    unfused, fused = group.summary.cells
    assert (fused.value, fused.doubt) == ("0.88×", "best 0.50×")
    assert fused.words == "worst of 3, n=2: takes 12 % less time than unfused"
    assert fused.href.endswith("case=dense%5Bn%3D2%5D")
    assert (unfused.value, unfused.doubt) == ("1.00\u202fms", "to 3.00\u202fms")


def test_a_failed_case_is_the_worst_of_its_workload(build):
    history = several(build, fused=[0.5, Failure("wrong gradient"), 0.7])
    fused = heat(history, build.time, opened=(), toggles=True).groups[0].summary.cells[1]
    assert (fused.value, fused.tone, fused.doubt) == ("failed", "failed", "1 of 3 failed, best 0.50×")


def test_an_open_workload_shows_its_cases_by_size_and_the_address_that_closes_it(build):
    state = State(project="p", open=("dense", "other"))
    (group,) = heat(several(build, fused=[0.5, 0.9, 0.7]), build.time, toggles=True, state=state).groups
    assert [row.label for row in group.rows] == ["n=1", "n=2", "n=3"]
    assert group.toggle == "/?project=p&open=other"


def test_more_cases_than_fit_are_counted(build):
    (group,) = heat(several(build, cases=3, fused=[0.5, 0.9, 0.7]), build.time, toggles=True, most=2).groups
    assert (len(group.rows), group.more) == (2, 1)


def test_few_groups_and_a_busy_one_are_doubts(build):
    def doubt(fused):
        lines = (build.line("unfused", [reading(1.0)]), build.line("fused", [fused]))
        return cells(build.history(*lines), build.time)["fused"].doubt

    plain = build.paired(0.5)
    few = plain.ratio._replace(n=6)
    assert doubt(plain) == "0.495–0.505"
    assert doubt(plain._replace(ratio=few)) == "0.495–0.505, 6 groups"
    assert doubt(plain._replace(ratio=few, quality="busy")) == "0.495–0.505, busy"


def test_a_row_that_nobody_measures_any_more_says_so(build):
    lines = [
        build.line("unfused", [reading(1.0)] * 4 + [None] * 6),
        build.line("unfused", [reading(1.0)] * 10, case="b"),
    ]
    first, second = heat(build.history(*lines), build.time).groups[0].rows
    assert (first.case, first.stale, second.stale) == ("b", "", "6 commits old")


def test_what_has_no_baseline_shows_its_values_and_no_doubt_about_a_ratio(build):
    small, large = "dense[n=1,f4,cpu]", "dense[n=2,f4,cpu]"
    alone = build.history(
        build.line("pytest", [reading(1e-3)], case=small), build.line("pytest", [reading(2e-3)], case=large)
    )
    shown = heat(alone, build.time, toggles=True)
    assert not shown.compares
    assert [row.cells[0].doubt for row in shown.groups[0].rows] == ["", ""]
    summary = shown.groups[0].summary.cells[0]
    assert (summary.value, summary.doubt) == ("1.00\u202fms", "to 2.00\u202fms")
    assert summary.words == "1.00\u202fms to 2.00\u202fms over 2 cases"


def test_a_heat_map_with_the_baseline_compares(history, build):
    assert heat(history, build.time).compares


def test_a_heat_map_says_what_it_is_of(history, build):
    time = heat(history, build.time)
    assert time.title == "Speed against unfused"
    assert heat(history, build.bytes).title == "Memory against unfused"
    assert replace(time, groups=()).title == "Cases"
    alone = build.history(build.line("pytest", [reading(1e-3)]))
    assert heat(alone, build.time).title == "Time"


def changed(build, metric, *readings):
    base = [reading(1.0)] * len(readings) if metric is build.time else [reading(1024.0)] * len(readings)
    return build.history(build.line("unfused", base, metric), build.line("fused", readings, metric))


def test_a_cell_shows_the_change_with_the_commit_that_made_it_and_the_level_beside_it(build):
    history = changed(build, build.time, build.paired(0.5), build.paired(0.65), build.paired(0.65))
    cell = cells(history, build.time)["fused"]
    assert (cell.change, cell.change_tone, cell.value) == ("+30.0 %", "likely-worse", "0.650×")
    assert (cell.move.sha, cell.move.href) == (history.commits[1].sha, f"/projects/p/commits/{history.commits[1].sha}")
    assert cell.recent == ("plain", "likely-worse", "plain")
    assert heat(history, build.time).moved("fused").counts == [("likely-worse", 1, "likely worse")]


def test_a_cell_without_a_change_shows_how_far_it_moved_and_has_no_tone(build):
    cell = cells(changed(build, build.time, *[build.paired(ratio) for ratio in (0.5, 0.5, 0.501)]), build.time)["fused"]
    assert (cell.change, cell.change_tone, cell.move) == ("+0.2 %", "plain", None)
    assert "squares" in cell.strip()


def test_json_of_a_heat_map_is_the_same_once_its_page_was_shown(build):
    heat_map = heat(changed(build, build.time, build.paired(0.5), build.paired(0.65)), build.time)
    before = json_response(heat_map).made()
    (group,) = heat_map.groups
    assert "squares" in cells_of(heat_map, group.rows[0])
    assert json_response(heat_map).made() == before


def test_a_cell_escapes_what_strangers_wrote(build):
    heat_map = heat(changed(build, build.time, build.paired(0.5), build.paired(0.65)), build.time)
    (group,) = heat_map.groups
    cell, wild, escaped = group.rows[0].cells[-1], '<i>\u202e"', "&lt;i&gt;⟨U+202E⟩&#34;"
    named = dict.fromkeys(("variant", "value", "words", "doubt", "href"), wild)
    move = replace(cell.move, amount=wild, words=wild, href=wild)
    shown = cells_of(heat_map, replace(group.rows[0], cells=(replace(cell, **named, move=move),)))
    assert shown.count(escaped) == 10
    assert "<i>" not in shown
    assert "\u202e" not in shown


def test_a_count_that_came_from_nothing_is_a_change_however_large(build):
    cell = cells(changed(build, build.bytes, reading(0.0), reading(4096.0)), build.bytes)["fused"]
    assert (cell.change.replace("\u202f", " "), cell.change_tone, cell.move.depth) == ("+4 KiB", "worse", 5)


def test_a_closed_workload_shows_the_gravest_change_of_its_cases(build):
    small, large = (
        build.line("fused", readings, case=f"dense[n={size}]")
        for size, readings in ((1, [build.paired(0.9)] * 2), (2, [build.paired(0.5), build.paired(0.65)]))
    )
    history = build.history(small, large)
    (group,) = heat(history, build.time, opened=(), toggles=True).groups
    (cell,) = group.summary.cells
    assert "0.9" in cell.value
    assert cell.change == "+30.0 %"


def test_what_failed_and_works_again_shows_its_present_state_and_the_failure_as_a_square(build):
    history = changed(build, build.time, build.paired(0.5), Failure("no such tier"), build.paired(0.5))
    cell = cells(history, build.time)["fused"]
    assert (cell.change, cell.change_tone, cell.move) == ("±0.0 %", "plain", None)
    assert cell.words == "2.0× faster than unfused; failed at 111111111 and works again"
    assert cell.recent == ("plain", "failed", "plain")
    assert heat(history, build.time).moved("fused").counts == [("failed", 1, "failed")]


def test_a_closed_workload_whose_cases_all_work_again_is_not_failed(build):
    readings = [build.paired(0.5), Failure("no such tier"), build.paired(0.5)]
    history = build.history(*(build.line("fused", readings, case=f"dense[n={size}]") for size in (1, 2)))
    (cell,) = heat(history, build.time, opened=(), toggles=True).groups[0].summary.cells
    assert (cell.change_tone, cell.move) == ("plain", None)

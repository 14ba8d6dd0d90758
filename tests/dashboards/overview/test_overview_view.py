from dataclasses import replace

import pytest

from pullback_dashboards.history import Claim, Metric, Reading
from pullback_dashboards.overview.ranking import Standing, means, ranked
from pullback_dashboards.overview.state import State
from pullback_dashboards.overview.view import LATELY, bracket, changed_cases, heat_map, news, unjudged_ratios


def stood(history, metric):
    return [
        Standing(line.case, line.variant, line.latest[0], line.latest[1], series_id=1)
        for line in history.of(metric.name)
        if line.latest
    ]


def heat(history, metric, *, opened=("dense",), toggles=False, state=None, most=40):
    found = stood(history, metric)
    workloads = {workload: history.cases(workload) for workload in history.workloads}
    return heat_map(
        ranked(workloads, found, metric),
        {(one.case, one.variant): one for one in found},
        history,
        variants=history.variants,
        metric=metric,
        means=means(found, metric),
        opened=opened,
        state=state or State(project="p"),
        most_cases=most,
        toggles=toggles,
    )


def cells(history, metric):
    return {cell.variant: cell for cell in heat(history, metric).groups[0].rows[0].cells}


def test_a_cell_tells_factor_words_and_interval(history, build):
    fused = cells(history, build.time)["fused"]
    assert (fused.value, fused.words, fused.doubt) == ("0.500×", "2.0× faster than unfused", "0.495–0.505")
    assert (fused.tone, fused.mark) == ("better", "▼")


def test_the_baseline_shows_its_value_and_no_ratio(history, build):
    unfused = cells(history, build.time)["unfused"]
    assert unfused.value.replace("\u202f", " ") == "100 µs"
    assert unfused.log_ratio is None


def test_a_failed_case_shows_its_reason_and_no_number(build):
    lines = (build.line("unfused", [Reading(1.0)]), build.line("fused", [Reading(failure="no such tier")]))
    fused = cells(build.history(*lines), build.time)["fused"]
    assert (fused.value, fused.doubt, fused.tone) == ("failed", "no such tier", "failed")
    assert fused.log_ratio is None
    assert fused.measured is None


def test_an_ambiguous_cell_is_marked_and_not_tinted(build):
    lines = (build.line("unfused", [Reading(1.0)]), build.line("fused", [build.paired(0.9, "ambiguous", doubt=0.2)]))
    fused = cells(build.history(*lines), build.time)["fused"]
    assert (fused.tone, fused.depth, fused.mark) == ("unsure", 0, "?")
    assert fused.doubt.endswith("ambiguous")


def test_a_cell_of_an_older_commit_says_so(build):
    lines = (build.line("unfused", [Reading(1.0)] * 2), build.line("fused", [build.paired(0.5), None]))
    fused = cells(build.history(*lines), build.time)["fused"]
    assert fused.outdated
    assert fused.doubt == "from an older commit"


def test_memory_that_is_gone_is_better_without_a_ratio(history, build):
    stateful = cells(history, build.bytes)["stateful"]
    assert stateful.value.replace("\u202f", " ") == "0 B"
    assert (stateful.doubt, stateful.tone, stateful.depth) == ("none at all, unlike unfused", "better", 5)


def test_means_do_not_hide_counts_of_zero(history, build):
    means = {mean.variant: mean for mean in heat(history, build.bytes).means}
    assert means["stateful"].value == "0 in 1 of 1"
    assert means["stateful"].log_ratio is None
    assert means["fused"].value == "0.50×"


def test_the_mean_is_geometric(build):
    lines = [build.line("unfused", [Reading(1.0)], case=f"dense[n={n}]") for n in (1, 2)]
    lines += [build.line("fused", [build.paired(ratio)], case=f"dense[n={n}]") for n, ratio in ((1, 0.25), (2, 1.0))]
    (_, mean) = heat(build.history(*lines), build.time).means
    assert (mean.value, mean.cases) == ("0.50×", 2)


def test_means_say_over_how_many_cases_they_are(build):
    def line(variant, case, reading):
        return build.line(variant, [reading], case=f"dense[n={case}]")

    failed = Reading(failure="wrong")
    lines = [line("unfused", case, Reading(1.0)) for case in (1, 2, 3)]
    lines += [line("fused", case, reading) for case, reading in ((1, build.paired(0.5)), (2, failed), (3, failed))]
    assert heat(build.history(*lines), build.time).averaged == "time, geometric mean over 1 case"
    lines += [line("native", case, build.paired(0.5)) for case in (1, 2, 3)]
    assert heat(build.history(*lines), build.time).averaged == "time, geometric mean over 1 to 3 cases"
    lines = [
        build.line(variant, [Reading(value)], build.bytes) for variant, value in (("unfused", 1.0), ("fused", 0.0))
    ]
    assert heat(build.history(*lines), build.bytes).averaged == "array bytes"


def test_sparklines_follow_the_ratio_with_failures(history, build):
    ticks = cells(history, build.time)["fused"].ticks
    assert [tick.failed for tick in ticks] == [False, True, False, False]
    assert ticks[3].log_ratio == pytest.approx(-0.693, abs=1e-3)


def test_news_tell_exact_changes_and_ratios_that_moved(history):
    told = {(item.variant, item.text.split(" (")[0]) for item in news(history, project="p", machine=None)}
    assert ("fused", "array bytes 1\u202fKiB → 2\u202fKiB") in told
    assert ("fused", "time against unfused moved 0.40× → 0.50×") in told


def test_a_ratio_that_moved_is_no_news_of_a_peer_nor_of_a_contaminated_reading(build):
    moved = [build.paired(0.40), build.paired(0.50)]

    def told(variant, readings):
        lines = build.line("unfused", [Reading(1.0)] * 2), build.line(variant, readings)
        return [item.text for item in news(build.history(*lines), project="p", machine=None)]

    assert len(told("fused", moved)) == 1
    assert told("numpy", moved) == []
    for place in (0, 1):
        disturbed = [each._replace(contaminated=place == at) for at, each in enumerate(moved)]
        assert told("fused", disturbed) == []


def test_moves_that_are_no_news_for_something_else_used_the_machine_are_counted(build):
    def counted(*readings):
        return unjudged_ratios(build.history(build.line("fused", readings), build.line("numpy", readings)))

    steady, moved = build.paired(0.40), build.paired(0.50)
    noisy = moved._replace(contaminated=True)
    assert counted(steady, moved) == counted(steady, steady._replace(contaminated=True)) == 0
    assert counted(steady, noisy) == counted(noisy, steady) == 1
    assert counted(steady, noisy, *[noisy] * LATELY) == 0  # long ago


def test_noise_within_the_intervals_is_no_news(build):
    lines = (
        build.line("unfused", [Reading(1.0)] * 2),
        build.line("fused", [build.paired(0.50), build.paired(0.505)]),
    )
    assert news(build.history(*lines), project="p", machine=None) == ()


def test_an_absolute_time_alone_accuses_nobody(build):
    lines = (build.line("unfused", [Reading(1.0), Reading(1.6)]),)
    assert news(build.history(*lines), project="p", machine=None) == ()


def test_the_same_change_in_many_cases_is_one_item(build):
    lines = [build.line("fused", [Reading(3.0), Reading(4.0)], build.bytes, case=f"dense[n={n}]") for n in range(1, 6)]
    (item,) = news(build.history(*lines), project="p", machine=None)
    assert (len(item.cases), item.more, item.mark) == (3, 2, "▲")


def counted_anew(build, *, doubted=("fused",), **counts):
    """Two commits at which variants count so, of which some were counted with another NumPy at the second."""
    lines = [
        build.line(variant, [Reading(float(n), report=f"{variant} {at}") for at, n in enumerate(counted)], build.bytes)
        for variant, counted in counts.items()
    ]
    software = {(f"{variant} 0", f"{variant} 1"): "numpy 1.26.4, then 2.4.0" for variant in doubted}
    return replace(build.history(*lines), software=software)


def test_a_count_that_changed_with_the_software_accuses_nobody(build):
    history = counted_anew(build, fused=(3, 900), stateful=(3, 4), native=(4, 3))
    told = [(item.variant, item.mark, item.tone) for item in news(history, project="p", machine=None)]
    assert told == [("stateful", "▲", "worse"), ("fused", "?", "unsure"), ("native", "▼", "better")]
    assert changed_cases(history) == {"dense[n=100,f4,cpu]"}


def test_what_changed_with_the_software_is_one_item_of_all_variants(build):
    history = counted_anew(build, doubted=("fused", "stateful"), fused=(3, 900), stateful=(4, 3))
    (item,) = news(history, project="p", machine=None)
    assert item.variant == "fused, stateful"
    assert item.text == "counts changed, such as fused array bytes 3\u202fB → 900\u202fB (+897\u202fB)"
    assert "numpy 1.26.4, then 2.4.0" in item.note


def test_a_session_that_counted_both_commits_knows_better_than_two_installations(build):
    history = counted_anew(build, fused=(3, 900))
    claim = Claim(1, "dense", "dense[n=100,f4,cpu]", "fused", "array_bytes", "0" * 40, "equal", 0.0)
    assert news(replace(history, claims=(claim,)), project="p", machine=None) == ()
    (item,) = news(replace(history, claims=(replace(claim, outcome="more"),)), project="p", machine=None)
    assert (item.mark, item.note) == ("▲", "measured in the same groups")


def test_a_new_failure_comes_first(build):
    lines = (
        build.line("unfused", [Reading(1.0)] * 2),
        build.line("fused", [build.paired(0.5), Reading(failure="wrong gradient")]),
        build.line("fused", [Reading(3.0), Reading(900.0)], build.bytes),
    )
    first = news(build.history(*lines), project="p", machine=None)[0]
    assert first.text == "fails since this commit: wrong gradient"


def test_the_case_label_repeats_the_workload_only_where_it_must():
    assert bracket("dense[n=100,f4,cpu]", "dense") == "n=100, f4, cpu"
    assert bracket("something else", "dense") == "something else"
    assert bracket("dense[n=1][]", "dense[n=1]") == "dense[n=1][]"


def test_a_move_two_commits_ago_is_still_lately_and_one_of_long_ago_is_not(build):
    def told(readings):
        lines = (build.line("unfused", [Reading(1.0)] * len(readings)), build.line("fused", readings))
        return news(build.history(*lines), project="p", machine=None)

    slow, fast = build.paired(0.9), build.paired(0.3)
    assert len(told([slow, slow, fast, fast, fast])) == 1
    assert told([slow, *[fast] * 9]) == ()


def test_a_variant_that_runs_again_is_news(build):
    lines = (
        build.line("unfused", [Reading(1.0)] * 2),
        build.line("fused", [Reading(failure="missing"), build.paired(0.5)]),
    )
    (item,) = news(build.history(*lines), project="p", machine=None)
    assert item.text == "runs again since this commit"


def several(build, *, cases=3, **readings):
    """A workload with cases n = 1, 2, … in which variants have the readings given."""
    lines = [build.line("unfused", [Reading(n * 1e-3)], case=f"dense[n={n}]") for n in range(1, cases + 1)]
    for variant, ratios in readings.items():
        lines += [
            build.line(variant, [ratio if isinstance(ratio, Reading) else build.paired(ratio)], case=f"dense[n={n}]")
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
    history = several(build, fused=[0.5, Reading(failure="wrong gradient"), 0.7])
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


def test_few_groups_and_a_contaminated_one_are_doubts(build):
    def doubt(reading):
        lines = (build.line("unfused", [Reading(1.0)]), build.line("fused", [reading]))
        return cells(build.history(*lines), build.time)["fused"].doubt

    plain = build.paired(0.5)
    assert doubt(plain) == "0.495–0.505"
    assert doubt(plain._replace(groups=6)) == "0.495–0.505, 6 groups"
    assert doubt(plain._replace(groups=6, contaminated=True)) == "0.495–0.505, contaminated"


def test_a_row_that_nobody_measures_any_more_says_so(build):
    lines = [
        build.line("unfused", [Reading(1.0)] * 4 + [None] * 6),
        build.line("unfused", [Reading(1.0)] * 10, case="b"),
    ]
    first, second = heat(build.history(*lines), build.time).groups[0].rows
    assert (first.case, first.stale, second.stale) == ("b", "", "6 commits old")


def test_what_a_session_says_takes_the_place_of_a_ratio_that_moved(history):
    claim = Claim(3, "dense", "dense[n=100,f4,cpu]", "fused", "time", "a" * 40, "slower", 0.03, 0.026, 0.034, 20)
    told = [item for item in news(replace(history, claims=(claim,)), project="p", machine=None) if "time" in item.text]
    assert ("fused", "3.0 % more time than aaaaaaaaa (+2.6 % to +3.5 %, 20 groups)") in {
        (t.variant, t.text) for t in told
    }
    assert not any(item.variant == "fused" and "moved" in item.text for item in told)


def test_a_session_that_found_no_difference_takes_back_a_ratio_that_moved(history):
    claim = Claim(3, "dense", "dense[n=100,f4,cpu]", "fused", "time", "a" * 40, "same", 0.001, -0.004, 0.006, 20)
    told = [item for item in news(replace(history, claims=(claim,)), project="p", machine=None) if "time" in item.text]
    assert all(item.variant != "fused" for item in told)


def test_what_a_session_says_of_a_metric_follows_its_direction(history):
    claim = Claim(
        3, "dense", "dense[n=100,f4,cpu]", "fused", "hits", "a" * 40, "less", -0.7, bigger_is_better=True
    )  # fmt: skip
    told = {item.text: item for item in news(replace(history, claims=(claim,)), project="p", machine=None)}
    item = told["50.3 % less hits than aaaaaaaaa"]
    assert (item.tone, item.mark) == ("worse", "▲")


def test_bytes_and_hits_that_both_rose_are_two_items(build):
    hits = Metric("hits", "1", exact=True, bigger_is_better=True)
    lines = [build.line("fused", [Reading(2.0), Reading(4.0)], metric) for metric in (build.bytes, hits)]
    told = news(build.history(*lines), project="p", machine=None)
    assert [(item.mark, item.text.split()[0]) for item in told] == [("▲", "array"), ("▼", "hits")]


def test_changed_cases_are_those_of_the_news(history):
    assert changed_cases(history) == {"dense[n=100,f4,cpu]"}


def test_changes_of_one_kind_are_one_item_led_by_the_largest(build):
    lines = [
        build.line("fused", [Reading(1000.0 * n), Reading(1000.0 * n + 5000)], build.bytes, case=f"dense[n={n}]")
        for n in range(1, 4)
    ]
    (item,) = news(build.history(*lines), project="p", machine=None)
    assert not item.alike
    assert [where.case for where in item.cases] == ["dense[n=1]", "dense[n=2]", "dense[n=3]"]


def test_counts_of_one_variant_at_one_commit_are_one_sentence_with_arrays_first(build):
    metrics = [
        Metric(name, "1", exact=True) for name in ("native_allocs", "array_bytes", "array_allocs", "native_bytes")
    ]
    lines = [build.line("fused", [Reading(10.0), Reading(11.0)], metric) for metric in metrics]
    (item,) = news(build.history(*lines), project="p", machine=None)
    assert item.text == "arrays 10 → 11 (+1), array bytes 10 → 11 (+1), 2 more counts"


def test_a_failure_of_all_variants_is_told_once(build):
    lines = [
        build.line(variant, [build.paired(0.5), Reading(failure="wrong gradient")])
        for variant in ("unfused", "fused", "stateful")
    ]
    (item,) = news(build.history(*lines), project="p", machine=None)
    assert item.variant == "unfused, fused, stateful"


def test_what_has_no_baseline_shows_its_values_and_no_doubt_about_a_ratio(build):
    small, large = "dense[n=1,f4,cpu]", "dense[n=2,f4,cpu]"
    alone = build.history(
        build.line("pytest", [Reading(1e-3)], case=small), build.line("pytest", [Reading(2e-3)], case=large)
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
    alone = build.history(build.line("pytest", [Reading(1e-3)]))
    assert heat(alone, build.time).title == "Time"

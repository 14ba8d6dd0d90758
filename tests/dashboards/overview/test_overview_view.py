import pytest

from pullback_dashboards.history import Reading
from pullback_dashboards.overview.view import bracket, heat_map, news


def heat(history, metric):
    return heat_map(history, project="p", metric=metric, machine=None)


def cells(history, metric):
    return {cell.variant: cell for cell in heat(history, metric).groups[0].rows[0].cells}


def test_a_cell_tells_factor_words_and_interval(history, build):
    fused = cells(history, build.time)["fused"]
    assert (fused.value, fused.words, fused.doubt) == ("0.50×", "2.0× faster than unfused", "0.495–0.505")
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
    mean = heat(build.history(*lines), build.time).means[1]
    assert (mean.value, mean.cases) == ("0.50×", 2)


def test_sparklines_follow_the_ratio_with_failures(history, build):
    ticks = cells(history, build.time)["fused"].ticks
    assert [tick.failed for tick in ticks] == [False, True, False, False]
    assert ticks[3].log_ratio == pytest.approx(-0.693, abs=1e-3)


def test_news_tell_exact_changes_and_ratios_that_moved(history):
    told = {(item.variant, item.text.split(" (")[0]) for item in news(history, project="p", machine=None)}
    assert ("fused", "array bytes 1\u202fKiB → 2\u202fKiB") in told
    assert ("fused", "time against unfused moved 0.40× → 0.50×") in told


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

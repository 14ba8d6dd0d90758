from dataclasses import replace

import pytest
from tests.service.readings.making import reading

from pullback_dashboards.history import Claim, Failure, IncidentChange, Metric
from pullback_dashboards.news.view import AT_A_COMMIT, LATELY, NewsLimits, changed_cases, collect_news
from pullback_service.comparisons.judging import Judgement
from pullback_service.ratio import Ratio
from pullback_service.uploaded_claims import doubt_of_change


def news(history, extent=LATELY):
    return collect_news(history, extent, project="p", machine=None).news


def test_news_tell_exact_changes_and_ratios_that_moved(history):
    told = {(item.variant, item.text.split(" (")[0]) for item in news(history)}
    assert ("fused", "array bytes 1\u202fKiB → 2\u202fKiB") in told
    assert ("fused", "likely 25 % slower: time against unfused 0.40× → 0.50×") in told


def test_a_ratio_that_moved_is_told_of_any_variant_and_says_where_the_machine_was_busy(build):
    moved = [build.paired(0.40), build.paired(0.50)]

    def told(variant, readings):
        lines = build.line("unfused", [reading(1.0)] * 2), build.line(variant, readings)
        return [(item.text, item.note) for item in news(build.history(*lines))]

    text, note = "likely 25 % slower: time against unfused 0.40× → 0.50×", "ratios of two runs, not measured in turns"
    assert told("fused", moved) == told("jax", moved) == [(text, note)]
    for place in (0, 1):
        disturbed = [each._replace(quality="busy" if place == at else "clean") for at, each in enumerate(moved)]
        assert told("fused", disturbed) == [(text, f"{note}, on a busy machine")]


def test_what_is_likely_says_how_to_know(build):
    moved = [build.line("fused", [build.paired(0.40), build.paired(0.50)])]
    (item,) = news(build.history(*moved))
    first, second = (commit.sha[:9] for commit in build.commits(2))
    assert item.remedy == f"To confirm what changed at {second}, measure both commits in turns:"
    assert item.command == f"pullback compare --against {first} --candidate {second}"
    (item,) = news(build.history(replace(moved[0], is_external=True)))
    assert item.command == ""
    assert f"run its benchmarks and those of {first} again and upload" in item.remedy


def test_a_baseline_that_became_slower_is_told_as_that(build):
    """What is stored of the variants beside it is that the baseline moved."""
    base = build.line("unfused", [reading(100e-6), reading(138e-6)])
    (item,) = news(build.history(base))
    assert (item.variant, item.mark) == ("unfused", "△")
    assert item.text == "likely 38 % slower: 100\u202fµs → 138\u202fµs"
    assert item.note == "values of two runs, not measured in turns"


@pytest.mark.parametrize(
    ("metric", "values", "text"),
    [
        (Metric("time", "s", exact=False), (406e-6, 695e-6), "likely 1.7× slower: 406\u202fµs → 695\u202fµs"),
        (Metric("time", "s", exact=False), (1e-4, 0.75e-4), "likely 25 % faster: 100\u202fµs → 75\u202fµs"),
        (
            Metric("peak_rss", "B", exact=False),
            (1024.0, 1280.0),
            "likely 25 % more peak rss: 1.00\u202fKiB → 1.25\u202fKiB",
        ),
        (
            Metric("ops", "1/s", exact=False, bigger_is_better=True),
            (100.0, 80.0),
            "likely 20 % less ops: 100\u202f1/s → 80\u202f1/s",
        ),
        (
            Metric("ops", "1/s", exact=False, bigger_is_better=True),
            (100.0, 300.0),
            "likely 3.0× as much ops: 100\u202f1/s → 300\u202f1/s",
        ),
    ],
)
def test_values_that_moved_are_told_in_the_words_of_their_metric(build, metric, values, text):
    (item,) = news(build.history(build.line("external", [reading(each) for each in values], metric)))
    assert item.text == text


def test_noise_within_the_intervals_is_no_news(build):
    lines = (
        build.line("unfused", [reading(1.0)] * 2),
        build.line("fused", [build.paired(0.50), build.paired(0.505)]),
    )
    assert news(build.history(*lines)) == ()


def test_an_absolute_time_that_moved_less_than_machines_drift_is_no_news(build):
    lines = (build.line("unfused", [reading(1.0), reading(1.09)]),)
    assert news(build.history(*lines)) == ()


def test_the_same_change_in_many_cases_is_one_item(build):
    lines = [build.line("fused", [reading(3.0), reading(4.0)], build.bytes, case=f"dense[n={n}]") for n in range(1, 6)]
    (item,) = news(build.history(*lines))
    assert (len(item.cases), item.more, item.mark) == (3, 2, "▲")


def counted_anew(build, *, doubted=("fused",), **counts):
    """Two commits at which variants count so, of which some were counted with another NumPy at the second."""
    lines = [
        build.line(
            variant, [reading(float(n), report_id=f"{variant} {at}") for at, n in enumerate(counted)], build.bytes
        )
        for variant, counted in counts.items()
    ]
    reason = doubt_of_change("numpy 1.26.4, then 2.4.0")
    verdicts = {
        (line.case, line.variant, line.metric.name, f"{line.variant} 0", f"{line.variant} 1"): (
            Judgement("ambiguous", "exact", reason=reason) if line.variant in doubted else Judgement("more", "exact")
        )
        for line in lines
    }
    return replace(build.history(*lines), verdicts=verdicts)


def test_a_count_that_changed_with_the_software_accuses_nobody(build):
    history = counted_anew(build, fused=(3, 900), stateful=(3, 4), native=(4, 3))
    told = [(item.variant, item.mark, item.tone) for item in news(history)]
    assert told == [("stateful", "▲", "worse"), ("fused", "?", "unsure"), ("native", "▼", "better")]
    assert changed_cases(history, LATELY) == {"dense[n=100,f4,cpu]"}


def test_what_changed_with_the_software_is_one_item_of_all_variants(build):
    history = counted_anew(build, doubted=("fused", "stateful"), fused=(3, 900), stateful=(4, 3))
    (item,) = news(history)
    assert item.variant == "fused, stateful"
    assert item.text == "counts changed, for example fused array bytes 3\u202fB → 900\u202fB (+897\u202fB)"
    assert "numpy 1.26.4, then 2.4.0" in item.note


def test_a_session_that_counted_both_commits_knows_better_than_two_installations(build):
    history = counted_anew(build, fused=(3, 900))
    claim = Claim(1, "dense", "dense[n=100,f4,cpu]", "fused", "array_bytes", "0" * 40, "equal", Ratio(0.0))
    assert news(replace(history, claims=(claim,))) == ()
    (item,) = news(replace(history, claims=(replace(claim, outcome="more"),)))
    assert (item.mark, item.note) == ("▲", "measured in the same groups")


def test_a_session_of_which_nothing_may_be_claimed_takes_nothing_back(build):
    history = counted_anew(build, fused=(3, 900))
    claim = Claim(
        1, "dense", "dense[n=100,f4,cpu]", "fused", "array_bytes", "0" * 40, "ambiguous", Ratio(0.0), reason="Busy."
    )
    (item,) = news(replace(history, claims=(claim,)))
    assert (item.mark, item.note) == ("?", doubt_of_change("numpy 1.26.4, then 2.4.0"))


def test_a_count_that_changed_across_a_commit_that_failed_is_told_where_it_runs_again(build):
    readings = [reading(50.0), Failure("boom"), reading(60.0)]
    told = news(build.history(build.line("fused", readings, build.bytes)))
    assert [(item.mark, item.text) for item in told] == [
        ("=", "works again since this commit"),
        ("▲", "array bytes 50\u202fB → 60\u202fB (+10\u202fB)"),
        ("✕", "fails since this commit"),
    ]
    assert told[2].note == "boom"


@pytest.mark.parametrize("values", [(3.0, -3.0), (0.0, -5.0), (-1.0, 2.0), (1e308, 5e-324), (0.0, 4.0)])
def test_counts_below_zero_and_beyond_all_ratios_are_told(build, values):
    (item,) = news(build.history(build.line("fused", [reading(value) for value in values], build.bytes)))
    assert item.mark == ("▲" if values[1] > values[0] else "▼")


def test_a_commit_is_held_against_the_one_that_it_was_made_from(build):
    """On the main branch 50, on another 500, then on the main branch again, where nothing happened."""
    history = build.history(build.line("fused", [reading(50.0), reading(500.0), reading(50.0)], build.bytes))
    assert [item.mark for item in news(history)] == ["▼", "▲"]
    (item,) = news(replace(history, follows={2: 0}))
    assert (item.sha, item.mark) == (history.commits[1].sha, "▲")
    assert news(replace(history, follows={1: -1, 2: 0})) == ()  # from what it was made is not known here


def test_a_new_failure_comes_first(build):
    lines = (
        build.line("unfused", [reading(1.0)] * 2),
        build.line("fused", [build.paired(0.5), Failure("wrong gradient")]),
        build.line("fused", [reading(3.0), reading(900.0)], build.bytes),
    )
    first = news(build.history(*lines))[0]
    assert (first.text, first.note) == (
        "fails since this commit",
        "wrong gradient",
    )  # before "in" and a case no full stop


def test_a_move_two_commits_ago_is_still_lately_and_one_of_long_ago_is_not(build):
    def told(readings):
        lines = (build.line("unfused", [reading(1.0)] * len(readings)), build.line("fused", readings))
        return news(build.history(*lines))

    slow, fast = build.paired(0.9), build.paired(0.3)
    assert len(told([slow, slow, fast, fast, fast])) == 1
    assert told([slow, *[fast] * 9]) == ()


def test_a_variant_that_runs_again_is_news(build):
    lines = (
        build.line("unfused", [reading(1.0)] * 2),
        build.line("fused", [Failure("missing"), build.paired(0.5)]),
    )
    (item,) = news(build.history(*lines))
    assert item.text == "works again since this commit"


def test_what_a_session_says_takes_the_place_of_a_ratio_that_moved(history):
    before = history.commits[2].sha
    claim = Claim(3, "dense", "dense[n=100,f4,cpu]", "fused", "time", before, "slower", Ratio(0.03, 0.026, 0.034, 20))
    told = [item for item in news(replace(history, claims=(claim,))) if "time" in item.text]
    assert ("fused", f"3.0 % more time than {before[:9]} (+2.6 % to +3.5 %, 20 groups)") in {
        (t.variant, t.text) for t in told
    }
    assert not any(item.variant == "fused" and "likely" in item.text for item in told)


def test_a_session_that_found_no_difference_takes_back_a_ratio_that_moved(history):
    before = history.commits[2].sha
    claim = Claim(3, "dense", "dense[n=100,f4,cpu]", "fused", "time", before, "same", Ratio(0.001, -0.004, 0.006, 20))
    told = [item for item in news(replace(history, claims=(claim,))) if "time" in item.text]
    assert all(item.variant != "fused" for item in told)
    elsewhere = replace(claim, reference="a" * 40)  # says nothing of the commit that this one follows
    told = [item for item in news(replace(history, claims=(elsewhere,))) if "time" in item.text]
    assert any(item.variant == "fused" and "likely" in item.text for item in told)


def test_what_a_session_says_of_a_metric_follows_its_direction(history):
    claim = Claim(
        3, "dense", "dense[n=100,f4,cpu]", "fused", "hits", "a" * 40, "less", Ratio(-0.7), bigger_is_better=True
    )  # fmt: skip
    told = {item.text: item for item in news(replace(history, claims=(claim,)))}
    item = told["50.3 % less hits than aaaaaaaaa"]
    assert (item.tone, item.mark) == ("worse", "▲")


def test_bytes_and_hits_that_both_rose_are_two_items(build):
    hits = Metric("hits", "1", exact=True, bigger_is_better=True)
    lines = [build.line("fused", [reading(2.0), reading(4.0)], metric) for metric in (build.bytes, hits)]
    told = news(build.history(*lines))
    assert [(item.mark, item.text.split()[0]) for item in told] == [("▲", "array"), ("▼", "hits")]


def test_a_count_that_changed_is_not_told_again_by_a_comparison_with_another_commit(build):
    counted = build.line("fused", [reading(2.0), reading(3.0)], build.bytes)
    claim = Claim(1, counted.workload, counted.case, "fused", "array_bytes", "a" * 40, "more", Ratio(0.4, 0.4, 0.4, 1))
    (item,) = news(replace(build.history(counted), claims=(claim,)))
    assert item.text.startswith("array bytes")
    steady = build.line("fused", [reading(3.0), reading(3.0)], build.bytes)
    (item,) = news(replace(build.history(steady), claims=(claim,)))
    assert item.text == "49.2 % more array bytes than aaaaaaaaa"


def test_changed_cases_are_those_of_the_news(history):
    assert changed_cases(history, LATELY) == {"dense[n=100,f4,cpu]"}


def test_changes_of_one_kind_are_one_item_led_by_the_largest(build):
    lines = [
        build.line("fused", [reading(1000.0 * n), reading(1000.0 * n + 5000)], build.bytes, case=f"dense[n={n}]")
        for n in range(1, 4)
    ]
    (item,) = news(build.history(*lines))
    assert not item.alike
    assert [where.case for where in item.cases] == ["dense[n=1]", "dense[n=2]", "dense[n=3]"]


def test_cases_of_which_other_metrics_changed_are_not_said_to_have_changed_likewise(build):
    hits = Metric("hits", "1", exact=True)
    lines = [
        build.line("fused", [reading(50.0), reading(60.0)], build.bytes, case="dense[n=1]"),
        build.line("fused", [reading(3.0), reading(5.0)], hits, case="dense[n=2]"),
        build.line("fused", [reading(50.0), reading(61.0)], build.bytes, case="dense[n=3]"),
    ]
    told = [(item.text.split(" ")[0], [where.case for where in item.cases]) for item in news(build.history(*lines))]
    assert told == [("hits", ["dense[n=2]"]), ("array", ["dense[n=3]", "dense[n=1]"])]


def test_counts_of_one_variant_at_one_commit_are_one_sentence_with_arrays_first(build):
    metrics = [
        Metric(name, "1", exact=True) for name in ("native_allocs", "array_bytes", "array_allocs", "native_bytes")
    ]
    lines = [build.line("fused", [reading(10.0), reading(11.0)], metric) for metric in metrics]
    (item,) = news(build.history(*lines))
    assert item.text == "arrays 10 → 11 (+1), array bytes 10 → 11 (+1), 2 more counts"


def test_a_failure_of_all_variants_is_told_once(build):
    lines = [
        build.line(variant, [build.paired(0.5), Failure("wrong gradient")])
        for variant in ("unfused", "fused", "stateful")
    ]
    (item,) = news(build.history(*lines))
    assert item.variant == "unfused, fused, stateful"


def test_of_a_commit_alone_older_news_are_left_out_and_more_cases_named(build):
    lines = [
        build.line("fused", [reading(3.0), reading(4.0), reading(5.0)], build.bytes, case=f"dense[n={n}]")
        for n in range(1, 16)
    ]
    history = build.history(*lines)
    assert [(item.sha, len(item.cases)) for item in news(history)] == [(history.commits[at].sha, 3) for at in (2, 1)]
    (item,) = news(history, AT_A_COMMIT)
    assert (item.sha, len(item.cases), item.more) == (history.commits[2].sha, 12, 3)


def test_a_case_that_was_left_out_at_the_commit_before_is_held_against_its_reading_before_that(build):
    told = news(build.history(build.line("fused", [reading(3.0), None, reading(4.0)], build.bytes)), AT_A_COMMIT)
    assert [item.text for item in told] == ["array bytes 3\u202fB → 4\u202fB (+1\u202fB)"]


def test_items_that_are_left_out_are_counted(build):
    lines = [build.line(name, [reading(3.0), reading(4.0)], build.bytes) for name in ("fused", "native", "stateful")]
    told = collect_news(build.history(*lines), NewsLimits(commits=5, items=2, cases=3), project="p", machine=None)
    assert (len(told.news), told.left_out) == (2, 1)


def test_addresses_go_on_with_the_machine_that_was_asked_for(build):
    history = build.history(build.line("fused", [reading(3.0), reading(4.0)], build.bytes))
    (item,) = collect_news(history, LATELY, project="p", machine="box").news
    assert item.commit_href.endswith(f"{item.sha}?machine=box")
    assert item.cases[0].href.endswith("?machine=box")


def test_a_series_of_which_an_incident_has_several_changes_is_told_once(build):
    metric = Metric("array_bytes", "B", exact=True)
    count = build.line("fused", [reading(1024.0)] * 5, metric)
    said = IncidentChange(7, "confirmed", "worse", count.case, "fused", metric, True, 0.4, 0, 4)
    narrower = replace(said, last=2)
    claim = Claim(4, count.workload, count.case, "fused", "array_bytes", "0" * 40, "more", Ratio(0.4, 0.4, 0.4, 1))
    history = build.history(count)
    (item,) = news(replace(history, incident_changes=(said, narrower)))
    assert (item.sha, item.note) == (history.commits[2].sha, "confirmed: incident 7")
    (item,) = news(replace(history, claims=(claim,), incident_changes=(said, narrower)))
    assert (item.sha, item.note) == (history.commits[4].sha, "measured in the same groups")

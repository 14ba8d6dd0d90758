"""The compare page: what the service judged, in words that claim no more."""

import math
from dataclasses import replace

import pytest
from tests.service.comparisons.rows import outcomes_of
from tests.service.readings.making import reading

from pullback_dashboards.compare.view import columns_of, markdown, metric_rows, rows_of, verdict
from pullback_dashboards.explore.view import Menu, MenuValue
from pullback_dashboards.history import Commit
from pullback_service.comparisons.judgements import summarize
from pullback_service.comparisons.judging import Judgement
from pullback_service.comparisons.queries import SeriesComparison, SeriesDetail, SideDetail
from pullback_service.ratio import Ratio
from pullback_service.series.queries import CaseFacts, MachineFacts

OLD, NEW = Commit("a" * 40), Commit("b" * 40, "Add <a> copy")
WORKLOAD = "dense"


def compared(judgement, *, variant="fused", metric="array_allocs", older=3.0, newer=4.0, number=1, direction="smaller"):
    exact = judgement.evidence == "exact"
    return SeriesComparison(
        key=(number, 1, variant, metric),
        series_id=number,
        kind="tier",
        unit="1" if exact else "s",
        direction=direction,
        exact=exact,
        reference=None if older is None else reading(older),
        candidate=None if newer is None else reading(newer),
        judgement=judgement,
    )


ONE_MORE = math.log(4 / 3)


def exact(outcome, ratio=ONE_MORE, **about):
    return compared(Judgement(outcome, "exact", Ratio(ratio)), **about)


def paired(outcome, ratio, **about):
    judgement = Judgement(outcome, "paired", Ratio(ratio, ratio - 0.004, ratio + 0.004, 20), 0.005)
    return compared(judgement, metric="time", older=1e-3, newer=1e-3 * math.exp(ratio), **about)


def unpaired(ratio, **about):
    return compared(
        Judgement("ambiguous", "values", Ratio(ratio), threshold=0.1), metric="time", older=1.0, newer=2.0, **about
    )


def likely(outcome, ratio, **about):
    judgement = Judgement(outcome, "ratios", Ratio.around(ratio, 0.01), threshold=0.02, provisional=True)
    return compared(judgement, metric="time", older=1.0, newer=2.0, **about)


def shown(each):
    case = CaseFacts(1, WORKLOAD, "dense[n=8,f4,cpu]", {"n": 8}, "f4", "cpu")
    sides = [None if side is None else SideDetail(side, ()) for side in (each.reference, each.candidate)]
    return SeriesDetail(each, case, MachineFacts(1, "lab", "f"), *sides)


def row(each):
    return rows_of([shown(each)], project="p", candidate=NEW)[0]


def test_an_array_more_is_said_first():
    said = verdict(outcomes_of([exact("more"), paired("faster", -0.1, number=2)]), OLD, NEW)
    assert (said.tone, said.mark) == ("worse", "▲")
    assert said.text == "1 series is worse, 1 is better: fused arrays +33.3 %."


def test_alike_changes_are_said_together_with_the_largest():
    said = verdict(outcomes_of([exact("more", math.log(2)), exact("more", math.log(3), number=2)]), OLD, NEW)
    assert said.text == "2 series are worse: fused arrays up to 3.0× in 2 series."


def test_something_where_there_was_nothing_has_no_ratio():
    said = verdict(outcomes_of([exact("more", None, older=0.0)]), OLD, NEW)
    assert said.text == "1 series is worse: fused has arrays, had none."


def test_a_count_that_may_be_below_zero_is_not_said_to_be_none():
    fell = exact("less", None, metric="score", older=3.0, newer=-5.0, direction="bigger")
    assert verdict(outcomes_of([fell]), OLD, NEW).text == "1 series is worse: fused score fell to zero or less."
    rose = exact("more", None, metric="errors", older=-5.0, newer=3.0)
    assert verdict(outcomes_of([rose]), OLD, NEW).text == "1 series is worse: fused errors rose from zero or less."


def test_a_failure_is_worse_than_anything():
    failed = compared(Judgement("failed", reason="gradient off by 1e-3"), newer=None)
    assert verdict(outcomes_of([failed]), OLD, NEW).text == "1 series fails: fused fails."
    assert row(failed).tone == "failed"


def test_better_alone_is_told_as_nothing_worse():
    said = verdict(outcomes_of([paired("faster", -0.2)]), OLD, NEW)
    assert (said.tone, said.text) == ("better", "Nothing is worse; 1 series is better.")
    said = verdict(outcomes_of([paired("faster", -0.2), unpaired(math.log(100), number=2)]), OLD, NEW)
    assert (said.tone, said.text) == ("better", "1 series is better; 1 ambiguous.")


def test_what_was_not_paired_claims_nothing_and_says_how_to_know():
    said = verdict(outcomes_of([unpaired(math.log(2))]), OLD, NEW)
    assert said.tone == "unsure"
    assert said.then.endswith("in the same groups, run")
    assert said.command == f"pullback compare --against {OLD.short} --candidate {NEW.short}"


def test_what_another_tool_measured_is_not_measured_again_by_ours():
    apart = replace(unpaired(math.log(2)), kind="external")
    said = verdict(outcomes_of([apart]), OLD, NEW)
    assert (said.then, said.command) == (
        "1 series was measured at different times, so their changes are at most likely.",
        "",
    )
    assert verdict(outcomes_of([apart, unpaired(math.log(2), number=2)]), OLD, NEW).command


def test_what_is_likely_is_said_to_be_no_more_and_marked_hollow():
    found = row(likely("likely_slower", 0.13))
    assert (found.mark, found.tone, found.told) == ("△", "likely-worse", "likely slower")
    assert found.kind == "by ratios at different times"
    said = verdict(outcomes_of([likely("likely_slower", 0.13), likely("likely_faster", -0.2, number=2)]), OLD, NEW)
    assert (said.mark, said.text) == ("△", "1 series is likely worse, 1 likely better: fused time +13.9 %.")
    said = verdict(outcomes_of([likely("likely_faster", -0.2)]), OLD, NEW)
    assert (said.mark, said.text) == ("▽", "1 series is likely better.")
    said = verdict(outcomes_of([exact("more"), likely("likely_slower", 0.13, number=2)]), OLD, NEW)
    assert said.text == "1 series is worse, 1 likely worse: fused arrays +33.3 %."
    said = verdict(outcomes_of([paired("faster", -0.1), likely("likely_slower", 0.13, number=2)]), OLD, NEW)
    assert said.text == "1 series is better; 1 likely worse."


def test_a_count_tells_of_no_processes():
    assert row(exact("more")).processes == ""
    timed = row(replace(paired("slower", 0.05), candidate=reading(1.05e-3, [1e-3, 1.05e-3, 1.1e-3])))
    assert timed.processes == "3 processes"


def test_nothing_measured_is_said_so():
    assert verdict(outcomes_of([]), OLD, NEW).text == "Neither commit has results."


def test_a_row_shows_the_change_its_interval_and_how_far_beyond_doubt_it_is():
    found = row(paired("slower", 0.05))
    assert (found.mark, found.tone, found.kind, found.groups) == ("▲", "worse", "in the same groups", 20)
    assert found.change == "+5.1 %"
    assert found.doubt == "+4.7 % to +5.5 %"
    assert (found.threshold, found.significance) == ("±0.5 %", "10.0×")
    columns = columns_of(found)
    assert (columns["threshold"], columns["significance"]) == (0.005, pytest.approx(10.0))


def test_what_cannot_be_compared_is_one_word_for_programs_and_two_for_people():
    apart = row(compared(Judgement("not_comparable", reason="Not measured at the reference."), older=None))
    assert (columns_of(apart)["outcome"], apart.outcome, apart.told) == (
        "not_comparable",
        "not_comparable",
        "not comparable",
    )


def test_counts_show_their_difference():
    assert row(exact("more")).change == "+33.3 %, +1"
    assert row(exact("equal", 0.0, newer=3.0)).change == "±0"


def test_more_is_better_where_the_metric_says_so():
    more, less = (row(exact(outcome, direction="bigger")) for outcome in ("more", "less"))
    assert [(more.tone, more.mark), (less.tone, less.mark)] == [("better", "▼"), ("worse", "▲")]


def test_nothing_where_more_is_better_is_told_as_what_is_gone():
    said = verdict(outcomes_of([exact("less", None, older=5.0, newer=0.0, direction="bigger")]), OLD, NEW)
    assert said.text == "1 series is worse: fused no longer has arrays."


def test_metrics_are_summed_up_one_by_one():
    found = metric_rows(
        summarize(outcomes_of([exact("more"), exact("more", math.log(2), number=2), unpaired(0.1, number=3)]))
    )
    counts, time = found
    assert (counts.metric, counts.worse, counts.worse_range) == (
        "array_allocs",
        "2, mean +63.3 %",
        "+33.3 % to +100.0 %",
    )
    assert (time.metric, time.worse, time.ambiguous) == ("time", "0", 1)
    alike = metric_rows(summarize(outcomes_of([exact("more"), exact("more", number=2)])))[0]
    assert (alike.worse, alike.worse_range) == ("2, mean +33.3 %", "")


@pytest.mark.parametrize("text", ["a|b", "<script>", "*x*", "`", "new\nline", "[x](y)"])
def test_markdown_takes_no_markup_from_names(text, compare_view):
    view = compare_view(project=text, rows=rows_of([shown(exact("more", variant=text))], project="p", candidate=NEW))
    lines = markdown(view).splitlines()
    table = [line for line in lines if line.startswith("| ▲")]
    assert len(table) == 1
    assert table[0].replace("\\|", "").count("|") == 12
    assert "<script>" not in markdown(view)


@pytest.fixture
def compare_view():
    from pullback_dashboards.compare.view import CompareView

    def made(**changes):
        parts = {
            "project": "p", "reference": OLD, "candidate": NEW, "verdict": verdict(outcomes_of([exact("more")]), OLD, NEW), "notes": (),
            "metrics": metric_rows(summarize(outcomes_of([exact("more")]))), "rows": (), "found": 1, "hidden": 3, "all_href": "", "relevant_href": "",
            "machines": None, "showing": "changed", "first": 1, "next_href": None, "turned_href": "", "commands": "",
        }  # fmt: skip
        return CompareView(**{**parts, **changes})

    return made


def test_more_runs_are_asked_for_only_where_they_would_tell_more(compare_view):
    timed = unpaired(math.log(2))
    counted = replace(timed, key=(1, 1, "fused", "python_allocs"))
    assert compare_view(rows=rows_of([shown(timed)], project="p", candidate=NEW)).more_runs_tell_more
    assert not compare_view(rows=rows_of([shown(counted)], project="p", candidate=NEW)).more_runs_tell_more
    with_interval = likely("likely_slower", 0.13)
    assert not compare_view(rows=rows_of([shown(with_interval)], project="p", candidate=NEW)).more_runs_tell_more


def test_a_choice_among_values_narrows_what_is_shown(compare_view):
    def menu(*, chosen):
        return Menu("metric", "metric", (MenuValue("time", 2, "/", chosen=chosen),), more=0)

    assert not compare_view(menus=(menu(chosen=False),)).narrowed
    assert compare_view(menus=(menu(chosen=False), menu(chosen=True))).narrowed


def test_where_nothing_can_be_said_the_counts_say_so():
    apart = [compared(Judgement("not_comparable", None), number=number) for number in (1, 2)]
    said = verdict(outcomes_of([*apart, exact("ambiguous", number=3)]), OLD, NEW)
    assert (said.tone, said.mark, said.text) == ("unsure", "?", "Inconclusive: 1 ambiguous, 2 not comparable.")


def test_nothing_changed_is_said_of_those_that_did_not():
    same = exact("equal", 0.0)
    assert verdict(outcomes_of([same]), OLD, NEW).text == "No change."
    apart = compared(Judgement("not_comparable", None), number=2)
    assert verdict(outcomes_of([same, apart]), OLD, NEW).text == "No change in 1 series; 1 not comparable."

"""A case in two reports: every number beside what it was, and nothing accused that the numbers do not show."""

import copy
import math
from dataclasses import replace
from statistics import median

import pytest
from tests.service.readings.making import reading

from pullback_dashboards.case.view import ReportEntry, case_view
from pullback_dashboards.history import Claim, Commit
from pullback_service.comparisons.judging import Judgement, judge, of_equal_code
from pullback_service.comparisons.queries import SeriesComparison
from pullback_service.ratio import Ratio
from pullback_service.uploaded_claims import COUNTED_IN_ONE_SESSION

CASE = {"workload": "dense", "params": {"n": 8}, "dtype": "f4", "device": "cpu"}


def metric(value, unit="B"):
    return {"unit": unit, "value": value, "method": "nep49"}


def variant(name, seconds, arrays, *, listing=("a", "b")):
    return {
        "variant": name,
        "kind": "tier",
        "metrics": {
            "time": {"unit": "s", "clock": "cpu", "processes": [seconds, seconds * 1.01], "slices": [[1.0], [1.0]]},
            "array_allocs": metric(arrays, "1"),
            "array_bytes": metric(1024 * arrays),
            "python_bytes": metric(None),
        },
        "program_hash": f"hash of {listing}",
        "plan": {"arrays": arrays, "bytes": 1024 * arrays, "fallbacks": [], "listing": list(listing)},
    }


def told(ratio=0.5, arrays=3, **plan):
    paired = {
        "variant": "fused", "baseline": "unfused", "metric": "time", "n": 2, "outcome": "faster",
        "log_ratio": math.log(ratio), "low": math.log(ratio) - 0.01, "high": math.log(ratio) + 0.01,
    }  # fmt: skip
    entry = {
        "case": CASE,
        "gradient": {"ok": True, "max_rel_error": 1e-7},
        "error": None,
        "variants": [variant("unfused", 1e-3, 9), variant("fused", 1e-3 * ratio, arrays, **plan)],
        "paired": [paired],
    }
    document = {
        "commit": {"dirty": False},
        "machine": {"facts": {"cpu": "A", "numpy": "2.4"}},
        "harness": {"version": "1", "suite": "quick:dense*", "quality": "clean"},
        "cases": [entry],
    }
    return ReportEntry(document, entry)


def side_of(report, variant, metric):
    """What a report alone makes of a series."""
    entry = next((one for one in report.entry["variants"] if one["variant"] == variant), {})
    measured = entry.get("metrics", {}).get(metric) or {}
    value = measured.get("value", median(measured.get("processes") or [math.nan]))
    if value is None or math.isnan(value):
        return None
    paired = next((one for one in report.entry["paired"] if (one["variant"], one["metric"]) == (variant, metric)), {})
    said = {name: paired.get(name) for name in ("baseline", "log_ratio", "low", "high")}
    quality = "clean" if report.document["harness"]["quality"] == "clean" else "busy"
    return reading(value, quality=quality, method=measured.get("method"), **said)


def judged(now, before):
    """What the service says of every series of two reports, by its own rule."""
    entries = [entry for report in (now, before) if report for entry in report.entry["variants"]]
    said = {}
    for variant, metric in {(entry["variant"], metric) for entry in entries for metric in entry["metrics"]}:
        older, newer = (report and side_of(report, variant, metric) for report in (before, now))
        together = COUNTED_IN_ONE_SESSION.get(metric)
        exact = metric != "time" and together is None
        if older or newer:
            judgement = judge(older, newer, (), exact=exact, counted_together=together)
            said[variant, metric] = SeriesComparison(
                (1, 1, variant, metric), 1, "tier", "B", "smaller", exact, older, newer, judgement
            )
    return said


@pytest.fixture
def view():
    def made(now, before, claims=(), *, readable=True):
        return case_view(
            now,
            before if readable else None,
            judged(now, before) if before else {},
            project="p",
            case="dense[n=8,f4,cpu]",
            commit=Commit("b" * 40),
            machine="lab",
            report_id="id",
            steps=(None, None),
            claims=claims,
        )

    return made


def test_an_array_more_is_told_with_both_programs(view):
    page = view(told(arrays=4, listing=("a", "copy", "b")), told())
    assert [(said.variant, said.tone) for said in page.sentences] == [("fused", "worse")]
    assert page.sentences[0].text.startswith("arrays +1, now 4")
    assert page.sentences[0].outcome == "worse"
    assert replace(page.sentences[0], tone="unsure").outcome == "ambiguous"
    plan = page.variants[1].plan
    assert plan.changed
    assert [line.text for line in plan.lines if line.kind == "new"] == ["copy"]
    assert ("arrays", "3", "4") in {(fact.name, fact.before, fact.now) for fact in plan.counts}


def test_nothing_is_said_where_nothing_moved(view):
    page = view(told(0.5), told(0.504))
    assert page.sentences == ()
    assert page.variants[1].since_tone == ""
    assert not page.variants[1].plan.changed


def test_a_ratio_moves_only_with_intervals_apart(view):
    page = view(told(0.6), told(0.5))
    assert page.variants[1].since_tone == "likely-worse"
    assert page.variants[1].since == "+20.0 %"
    assert page.sentences[0].text == "time against unfused +20.0 %, now 0.600×"


@pytest.mark.parametrize(
    ("changes", "sign"),
    [
        ({"low": -2.0, "high": 0.2}, "?"),
        ({"outcome": "slower"}, "?"),
        ({"n": 1}, "?"),
        ({"low": None}, "?"),
        ({"baseline": "native"}, "▼"),
        ({}, "▼"),
    ],
)
def test_a_ratio_is_what_is_kept_of_it_and_not_what_was_uploaded(view, changes, sign):
    now = told()
    now.entry["paired"][0].update(changes)
    block = view(now, told()).variants[1]
    assert block.sign == sign
    assert ("faster" in block.words) == (sign == "▼")


@pytest.mark.parametrize("which", [None, 0, 1])
def test_a_ratio_that_moved_is_likely_at_most_and_a_busy_machine_takes_nothing_away(view, which):
    reports = [told(0.6), told(0.5)]
    if which is not None:
        reports[which].document["harness"]["quality"] = "busy"
    page = view(*reports)
    assert page.variants[1].since_tone == "likely-worse"
    assert [(said.variant, said.tone, said.mark) for said in page.sentences] == [("fused", "likely-worse", "△")]
    assert page.reasons == ("Times were not measured in the same groups, so their changes are likely, not confirmed.",)
    counted = view(told(0.5, arrays=4), reports[1])
    assert [said.tone for said in counted.sentences] == ["worse"]  # a count is a count, whatever else runs


def test_the_two_words_for_a_busy_machine_are_no_difference_of_environments(view):
    reports = [told(), told()]
    for report, word in zip(reports, ("busy", "contaminated"), strict=True):
        report.document["harness"]["quality"] = word
    assert view(*reports).environment == view(told(), told()).environment
    reports[1].document["harness"]["quality"] = "clean"
    assert view(*reports).environment != view(told(), told()).environment


def test_counts_that_compare_within_one_session_only_accuse_nobody(view):
    now, before = told(), told()
    for report, value in ((now, 51), (before, 40)):
        report.entry["variants"][1]["metrics"]["python_allocs"] = metric(value, "1")
    page = view(now, before)
    (amount,) = (a for layer in page.variants[1].layers for a in layer.amounts if a.metric == "python_allocs")
    assert (amount.tone, amount.change) == ("unsure", "+11")
    assert page.sentences == ()
    assert page.reasons == (
        "These counts vary between runs, because they depend on what else the process does: python allocations.",
    )


def test_what_was_found_by_measuring_both_commits_is_told_first_the_gravest_before_all(view):
    def claim(variant, outcome, ratio):
        return Claim(
            0, "dense", "dense[n=8,f4,cpu]", variant, "time", "a" * 40, outcome,
            Ratio(ratio, ratio - 0.004, ratio + 0.004, 20),
        )  # fmt: skip

    claims = [claim("unfused", "faster", -0.12), claim("fused", "slower", 0.031)]
    said = view(told(arrays=4), told(), claims).sentences
    assert [(one.variant, one.tone, one.mark) for one in said] == [
        ("fused", "worse", "▲"),
        ("unfused", "better", "▼"),
        ("fused", "worse", "▲"),
    ]
    assert said[0].text == "3.1 % more time than aaaaaaaaa (+2.7 % to +3.6 %, 20 groups)"
    assert said[2].text.startswith("arrays +1")
    assert len(view(told(), None, claims).sentences) == 2
    assert view(told(arrays=4), told(), claims).moved
    assert not view(told(), told(), claims).moved  # its counts are what they were, which the page says


def test_the_first_measurement_has_nothing_beside_it(view):
    page = view(told(), None)
    assert (page.sentences, page.environment) == ((), ())
    assert all(block.time_before == "" and block.groups_before is None for block in page.variants)


def test_what_a_case_has_is_told_of_all_its_variants(view):
    page = view(told(), None)
    assert (page.compares, page.grouped, page.counted, page.compilable) == (True, True, True, True)
    bare = replace(page, variants=(replace(page.variants[0], kind="external", layers=()),))
    assert (bare.compares, bare.grouped, bare.counted, bare.compilable) == (False, False, False, False)


def test_groups_are_ratios_inside_a_group(view):
    groups = view(told(0.25), None).variants[1].groups
    assert groups.log_ratios == pytest.approx([math.log(0.25)] * 2)


def test_unequal_numbers_of_processes_make_no_groups(view):
    now = copy.deepcopy(told())
    now.entry["variants"][1]["metrics"]["time"]["processes"].pop()
    assert view(now, None).variants[1].groups.log_ratios == ()


def test_layers_that_nobody_counted_are_left_out(view):
    assert [layer.name for layer in view(told(), told()).variants[1].layers] == ["arrays"]


def test_what_changed_around_the_measurement_is_told(view):
    before = copy.deepcopy(told())
    before.document["machine"]["facts"]["numpy"] = "2.3"
    before.document["commit"]["dirty"] = True
    differences = {(fact.name, fact.before, fact.now) for fact in view(told(), before).environment}
    assert differences == {("numpy", "2.3", "2.4"), ("uncommitted changes", "yes", "no")}


def test_it_is_measured_again_without_the_other_cases_and_variants(view):
    command = view(told(), None).reproduce
    assert command.endswith(" --suite quick --case 'dense[n=8,f4,cpu]' --variant fused -o measured")


def test_a_failed_variant_keeps_its_reason(view):
    now = copy.deepcopy(told())
    now.entry["variants"][1] |= {"metrics": {}, "error": {"kind": "gradient", "message": "off by 1e-3"}, "plan": None}
    page = view(now, told())
    assert page.variants[1].failure == "gradient: off by 1e-3"
    assert [(said.variant, said.tone, said.text) for said in page.sentences] == [
        ("fused", "failed", "fails since this commit: gradient: off by 1e-3")
    ]
    assert page.moved
    assert view(now, now).sentences == ()  # it failed before as well


def test_what_the_commit_before_counted_is_known_without_its_file(view):
    page = view(told(arrays=4, ratio=0.6), told(), readable=False)
    assert [(said.variant, said.tone) for said in page.sentences] == [("fused", "worse")]
    assert page.sentences[0].text.startswith("arrays +1, now 4")
    assert "time against unfused +20.0 %" in page.sentences[0].text
    assert not page.before_is_told
    assert page.environment == ()


def test_other_layers_are_told_where_they_accuse(view):
    now, before = told(), told()
    for report, value in ((now, 51), (before, 40)):
        report.entry["variants"][1]["metrics"]["native_bytes"] = metric(value)
    (said,) = view(now, before).sentences
    assert (said.variant, said.tone, said.text) == ("fused", "worse", "native bytes +11\u202fB, now 51\u202fB")


def test_a_method_that_changed_leaves_open_what_a_count_did(view):
    now = told(arrays=4)
    for counted in ("array_allocs", "array_bytes"):
        now.entry["variants"][1]["metrics"][counted]["method"] = "tracemalloc"
    page = view(now, told())
    assert [said.tone for said in page.sentences] == ["unsure"]
    assert page.reasons == ("Measured by different methods, 'nep49' and 'tracemalloc'.",)


def with_digests(report, host="a1", harness="1", **digests):
    report.document["machine"] |= {"host": host, "fingerprint": "c0ffee"}
    report.document["harness"]["version"] = harness
    for entry in report.entry["variants"]:
        entry["digests"] = digests
    return report


def test_what_was_measured_stands_beside_what_it_was(view):
    before = with_digests(told(), workload="1" * 16, subject="2" * 16, code=None)
    page = view(with_digests(told(), workload="1" * 16, subject="3" * 16, code="4" * 16), before)
    assert {fact.name: (fact.now, fact.before) for fact in page.measured} == {
        "host": ("a1", ""),
        "class": ("c0ffee", ""),
        "text of the workload": ("1" * 12, ""),
        "measured files": ("3" * 12, "2" * 12),
        "code": ("4" * 12, ""),
        "harness": ("1", ""),
    }
    assert not page.equal_code


def test_an_older_report_tells_what_it_knows(view):
    assert [fact.name for fact in view(told(), told()).measured] == ["harness"]


def test_of_equal_code_and_of_another_level_nothing_is_told_to_have_moved(view, monkeypatch):
    assert view(told(0.6, arrays=4), told(0.5)).sentences
    made = judged

    def of_equal_code_alone(now, before):
        return {
            key: replace(one, judgement=of_equal_code(one.judgement), is_equal_code=True)
            for key, one in made(now, before).items()
        }

    monkeypatch.setitem(globals(), "judged", of_equal_code_alone)
    page = view(told(0.6, arrays=4), told(0.5))
    assert page.equal_code
    assert page.reasons == ("Equal code: the commit changed nothing that is measured.",)
    assert page.variants[1].since_tone == ""
    assert {said.tone for said in page.sentences} == {"unsure"}

    def of_another_level(now, before):
        apart = Judgement("not_comparable", reason="Another level: the text changed.")
        return {key: replace(one, judgement=apart) for key, one in made(now, before).items()}

    monkeypatch.setitem(globals(), "judged", of_another_level)
    page = view(told(0.6, arrays=4), told(0.5))
    assert page.reasons == ("Another level: the text changed.",)
    assert page.variants[1].since_tone == ""
    assert {said.tone for said in page.sentences} == {"unsure"}


def test_a_variant_that_is_missing_is_told_and_nothing_is_held_against_nothing(view):
    now, before = copy.deepcopy(told()), copy.deepcopy(told())
    now.entry["variants"].pop()
    assert [(said.variant, said.text) for said in view(now, before).sentences] == [
        ("fused", "not measured at this commit")
    ]
    before.entry["variants"].pop(0)
    page = view(now, before)
    assert not page.comparable
    assert page.variants[0].since == ""


def test_what_may_not_be_claimed_of_both_is_told_with_the_reason(view):
    claim = Claim(
        0, "dense", "c", "fused", "time", "a" * 40, "ambiguous", Ratio(0.1, 0.0, 0.2, 1), reason="Of one group."
    )
    (said,) = view(told(), None, [claim]).sentences
    assert (said.tone, said.outcome) == ("unsure", "ambiguous")
    assert said.text.endswith(": Of one group.")

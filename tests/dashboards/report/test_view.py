import re
from types import SimpleNamespace

import orjson
import pytest

from pullback_dashboards import links
from pullback_dashboards.history import Commit, metric_label
from pullback_dashboards.rendering import _templates
from pullback_dashboards.report.view import (
    ReportView,
    case_blocks,
    comparison_row,
    facts_of,
    failures_of,
    left_out,
    metrics_of,
)


def document(**entry):
    case = {"workload": "dense", "params": {"n": 1}, "dtype": "f4", "device": "cpu"}
    return {
        "cases": [{"case": case, "gradient": {"ok": True, "max_rel_error": 2e-7, "oracle": "closed form"}, **entry}]
    }


def variant(name, **metrics):
    return {"variant": name, "kind": "tier", "metrics": metrics, "plan": None, "program_hash": None}


def block(raw):
    (only,) = case_blocks(raw["cases"], project="p")
    return only


def pair(**changes):
    said = {
        "variant": "fused", "baseline": "unfused", "metric": "time",
        "log_ratio": -0.6931, "low": -0.70, "high": -0.68, "n": 20, "outcome": "faster",
    }  # fmt: skip
    return said | changes


def test_a_variant_tells_its_ratio_and_what_stands_behind_it():
    time = {"unit": "s", "processes": [1e-3] * 20, "slice_counts": [100] * 20}
    row = block(document(variants=[variant("fused", time=time)], paired=[pair()])).variants[0]
    assert row.factor == "0.500×"
    assert row.words == "2.0× faster than unfused"
    assert row.samples == "20 processes × 100 slices, 20 groups"


def test_a_case_whose_variants_all_failed_is_not_told_as_a_wrong_gradient():
    failed = variant("function") | {"error": {"kind": "gradient", "message": "its test failed"}}
    raw = document(variants=[failed], gradient={"ok": False, "max_rel_error": None, "oracle": None})
    assert (block(raw).gradient, block(raw).failure) == ("", None)
    (one,) = failures_of(raw["cases"], cases_of_a_page=10)
    assert (one.variant, one.reason) == ("function", "gradient: its test failed")


def test_a_variant_that_lacks_a_metric_of_another_shows_a_dash():
    counted = variant("fused", array_bytes={"unit": "B", "value": 4096, "method": "nep49"})
    shown = block(document(variants=[variant("unfused"), counted]))
    macros = _templates().get_template("case_block.html").make_module({"links": links})
    _, without, having = macros.case(shown, 1, shown).split('<th scope="row">')
    amount = shown.variants[1].amounts[0]
    assert f">{amount.value}</td>" in having
    assert f">{amount.value}</td>" not in without
    assert f'data-label="{metric_label(amount.metric)}">–</td>' in without


def test_all_cases_of_a_report_have_the_same_columns():
    blocks = [
        block(document(variants=[variant("fused", **{metric: {"unit": "B", "value": 4096, "method": "nep49"}})]))
        for metric in ("array_bytes", "native_bytes")
    ]
    columns = tuple(one.columns[0] for one in blocks)
    report = SimpleNamespace(columns=columns, compares=False, cases=blocks)
    assert ReportView.columns.fget(report) == columns
    macros = _templates().get_template("case_block.html").make_module({"links": links})
    heads = [re.findall("<th scope=.col.*?>(.*?)</th>", macros.case(one, 1, report)) for one in blocks]
    assert heads[0] == heads[1] == ["variant", "time", "array bytes", "native bytes", "samples", "plan"]
    assert 'data-label="native bytes"></td>' in macros.case(blocks[0], 1, report)  # a phone leaves out what is empty


def test_a_layer_that_could_not_be_seen_is_a_dash_and_never_a_zero():
    amounts = (
        block(document(variants=[variant("fused", native_bytes={"unit": "B", "value": None})])).variants[0].amounts
    )
    assert (amounts[0].value, amounts[0].exact) == ("–", "not measured")


def test_a_comparison_in_a_report_follows_the_direction_of_its_metric():
    hits = {"unit": "1", "value": 5, "kind": "exact", "direction": "bigger"}
    bytes_ = {"unit": "B", "value": 5}
    raw = {"variant": "fused", "outcome": "less", "log_ratio": -0.7}
    metrics = metrics_of(document(variants=[variant("fused", hits=hits, array_bytes=bytes_)]))
    told = {
        metric: comparison_row("dense", raw | {"metric": metric}, Commit("a" * 40), Commit("b" * 40), metrics)
        for metric in ("hits", "array_bytes")
    }
    assert {metric: (row.tone, row.sign) for metric, row in told.items()} == {
        "hits": ("worse", "▲"),
        "array_bytes": ("better", "▼"),
    }


@pytest.mark.parametrize(
    ("changes", "outcome", "sign"),
    [
        ({"low": -1.7, "high": 0.3}, "ambiguous", "?"),
        ({"outcome": "slower"}, "ambiguous", "?"),
        ({"n": 1}, "ambiguous", "?"),
        ({"low": None}, "ambiguous", "?"),
        ({"outcome": "less"}, "ambiguous", "?"),
        ({"baseline": "native"}, "faster", "▼"),
        ({}, "faster", "▼"),
    ],
)
def test_a_ratio_is_what_is_kept_of_it_and_not_what_was_uploaded(changes, outcome, sign):
    time = {"unit": "s", "processes": [1e-3]}
    row = block(document(variants=[variant("fused", time=time)], paired=[pair(**changes)])).variants[0]
    assert (row.numbers.outcome, row.sign) == (outcome, sign)
    assert ("faster" in row.words) == (outcome == "faster")


def test_a_rate_is_faster_where_there_is_more_of_it():
    rate = {"unit": "1/s", "processes": [5e3], "direction": "bigger"}
    found = {}
    for log_ratio in (0.7, -0.7):
        ratio = pair(log_ratio=log_ratio, low=log_ratio - 0.01, high=log_ratio + 0.01)
        found[log_ratio] = block(document(variants=[variant("fused", time=rate)], paired=[ratio])).variants[0].sign
    assert found == {0.7: "▼", -0.7: "?"}


def test_nothing_is_claimed_of_a_case_with_a_wrong_gradient():
    time = {"unit": "s", "processes": [1e-3]}
    wrong = document(variants=[variant("fused", time=time)], paired=[pair()], gradient={"ok": False})
    row = block(wrong).variants[0]
    assert (row.factor, row.sign, row.words) == ("", "", "")


@pytest.mark.parametrize(
    ("changes", "report", "outcome"),
    [
        ({}, {}, "slower"),
        ({"low": -0.1, "high": 0.3}, {}, "ambiguous"),
        ({"outcome": "faster"}, {}, "ambiguous"),
        ({"n": 1}, {}, "ambiguous"),
        ({"claim": 0.2}, {}, "ambiguous"),
        ({"outcome": "same", "low": -0.001, "high": 0.001, "log_ratio": 0.0}, {}, "same"),
        (
            {"outcome": "same", "low": -0.001, "high": 0.001, "log_ratio": 0.0, "margin_is_provisional": True},
            {},
            "ambiguous",
        ),
        ({}, {"quality": "busy"}, "slower"),
        ({"margin_is_provisional": True}, {"quality": "busy"}, "likely_slower"),
        ({"margin_is_provisional": True, "n": 2}, {"quality": "busy"}, "likely_slower"),
        ({"margin_is_provisional": True, "n": 2, "log_ratio": 0.095}, {"quality": "busy"}, "ambiguous"),
        ({}, {"dirty": True}, "ambiguous"),
        ({"outcome": "failed"}, {}, "failed"),
    ],
)
def test_a_comparison_in_a_report_is_judged_as_everywhere(changes, report, outcome):
    raw = {
        "variant": "fused",
        "metric": "time",
        "outcome": "slower",
        "log_ratio": 0.1,
        "low": 0.09,
        "high": 0.11,
        "n": 20,
    }
    row = comparison_row("dense", raw | changes, Commit("a" * 40), Commit("b" * 40), {}, **report)
    assert (row.outcome, row.sign) == (
        outcome,
        {"slower": "▲", "likely_slower": "△", "ambiguous": "?", "same": "=", "failed": "✕"}[outcome],
    )


def test_the_plan_is_shown_with_units_and_its_fallbacks():
    plan = {"arrays": 3, "bytes": 2048, "flops": 4e6, "fallbacks": ["gather"], "hash": "abc", "state_bytes": None}
    row = block(document(variants=[variant("fused") | {"plan": plan}])).variants[0]
    told = {fact.name: fact.value.replace("\u202f", " ") for fact in row.plan}
    assert told == {"arrays": "3", "bytes": "2 KiB", "flops": "4.00 MFLOP", "fallbacks": "gather", "hash": "abc"}


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"error": {"kind": "missing", "message": "no such tier"}}, "missing: no such tier"),
        ({"gradient": {"ok": False, "max_rel_error": 0.03}}, "the gradient is wrong, relative error 3.0e-02"),
    ],
)
def test_a_failed_case_says_why(entry, reason):
    assert block(document(**entry)).failure == reason


def test_facts_are_flat_and_leave_out_what_is_unknown():
    facts = facts_of({"cpu": {"model": "EPYC", "cores": 8}, "gpu": None, "flags": ["a", "b"]})
    assert [(fact.name, fact.value) for fact in facts] == [("cpu model", "EPYC"), ("cpu cores", "8"), ("flags", "a, b")]


def test_the_json_of_a_fact_is_what_was_told_and_its_page_what_can_be_read():
    (fact,) = facts_of({"free_disk_bytes": 69723832320})
    assert orjson.loads(orjson.dumps(fact)) == {"name": "free disk bytes", "value": "69723832320"}
    assert (fact.read.label, fact.read.exact) == ("free disk", "free_disk_bytes: 69723832320")


def test_what_was_refused_and_what_is_absent_is_told_and_nonsense_is_not():
    harness = {"refused": ["no case matches 'nope'"], "absent": ["numpy takes part in no case: none written"]}
    assert left_out({"harness": harness}) == ("no case matches 'nope'", "numpy takes part in no case: none written")
    assert left_out({"harness": {"refused": 5, "absent": None}}) == ()
    assert left_out({}) == ()


def test_a_layer_that_no_variant_has_takes_no_column():
    unseen, seen = {"unit": "B", "value": None}, {"unit": "B", "value": 0}
    raw = document(
        variants=[variant("unfused", gpu_bytes=unseen, array_bytes=seen), variant("fused", gpu_bytes=unseen)]
    )
    assert block(raw).metrics == ("array_bytes",)

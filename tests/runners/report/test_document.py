"""Cases of a report out of made-up measurements."""

import json
import math

import pytest

from pullback_runners.errors import VariantError
from pullback_runners.measurement.examination import Examination
from pullback_runners.measurement.lockstep import Group, Timing
from pullback_runners.report import CaseResult, absences, case_document
from pullback_runners.report.document import counts_document
from pullback_runners.workloads import Case


def examination(array_bytes, error=1e-15, plan=None):
    def exact(unit, value, method="nep49"):
        return {"unit": unit, "value": value, "method": None if value is None else method, "differs": False}

    counts = {"array_bytes": exact("B", array_bytes), "native_bytes": exact("B", None)}
    return Examination({"ok": True, "max_rel_error": error, "oracle": "closed form"}, counts, plan)


def group(**cpu_s):
    return Group({v: Timing(10, [s] * 8, [2 * s] * 8, [0.0] * 8) for v, s in cpu_s.items()}, {})


@pytest.fixture
def result(sound_case):
    return CaseResult(
        sound_case,
        ["unfused", "fused"],
        examinations={
            "unfused": examination(800),
            "fused": examination(200, 1e-12, {"hash": "abc", "program": "def", "arrays": 1}),
        },
        groups=[group(unfused=1e-4, fused=0.5e-4 * drift) for drift in (0.99, 1.0, 1.01)],
    )


def test_a_case_holds_what_was_measured(result):
    document = case_document(result, may_say_same=False)
    assert document["case"] == {"workload": "sound", "params": {"n": 8}, "dtype": "f8", "device": "cpu"}
    assert document["gradient"] == {"ok": True, "max_rel_error": 1e-12, "oracle": "closed form"}
    assert document["error"] is None
    unfused, fused = document["variants"]
    assert (unfused["variant"], fused["variant"]) == ("unfused", "fused")
    assert (unfused["plan"], fused["plan"]) == (None, {"hash": "abc", "program": "def", "arrays": 1})
    assert (unfused["program_hash"], fused["program_hash"]) == (None, "def")
    time = unfused["metrics"]["time"]
    assert time["processes"] == [1e-4] * 3
    assert time["wall_processes"] == [2e-4] * 3
    assert time["slices"] == [[1e-4] * 8] * 3
    assert (time["unit"], time["clock"]) == ("s", "cpu")
    assert unfused["metrics"]["native_bytes"] == {"unit": "B", "value": None, "method": None, "differs": False}


def test_an_engine_that_hashes_its_plan_alone_tells_no_program(result):
    result.examinations["fused"] = examination(200, 1e-12, {"hash": "abc", "arrays": 1})
    assert case_document(result, may_say_same=False)["variants"][1]["program_hash"] is None


def test_pairs_are_against_the_baseline(result):
    time, array_bytes = case_document(result, may_say_same=False)["paired"]
    assert (time["variant"], time["baseline"], time["metric"], time["n"]) == ("fused", "unfused", "time", 3)
    assert time["log_ratio"] == pytest.approx(-math.log(2), abs=0.01)
    assert time["low"] < time["log_ratio"] < time["high"]
    assert time["outcome"] == "faster"
    assert time["margin_is_provisional"]
    assert array_bytes["metric"] == "array_bytes"
    assert array_bytes["log_ratio"] == pytest.approx(math.log(0.25), abs=1e-6)
    assert (array_bytes["outcome"], array_bytes["difference"]) == ("less", -600)


@pytest.mark.parametrize(("is_busy", "outcome"), [(False, "slower"), (True, "ambiguous")])
def test_few_groups_on_a_busy_machine_claim_what_is_unmistakable_alone(result, is_busy, outcome):
    result.groups = [group(unfused=1e-4, fused=1e-4 * math.exp(0.08 + noise)) for noise in (-0.002, 0.002)]
    time, _ = case_document(result, may_say_same=False, is_busy=is_busy)["paired"]
    assert time["outcome"] == outcome
    assert time["claim"] == pytest.approx(0.099 if is_busy else 0.02, abs=1e-3)


@pytest.mark.parametrize(
    ("ours", "theirs", "outcome"),
    [
        ({"value": 9}, {"value": 10}, "less"),
        ({"value": 9, "differs": True}, {"value": 10}, "ambiguous"),  # older reports do not say by how much
        ({"value": 9, "differs": True, "range": [8, 10]}, {"value": 10}, "ambiguous"),
        ({"value": 9, "differs": True, "range": [8, 9]}, {"value": 12, "differs": True, "range": [10, 12]}, "less"),
        ({"value": 20, "differs": True, "range": [13, 20]}, {"value": 12, "differs": True, "range": [10, 12]}, "more"),
        ({"value": 9, "differs": True, "range": [8, 10]}, {"value": 9}, "equal"),
    ],
)
def test_counts_that_vary_differ_where_no_call_of_one_comes_near_the_other(ours, theirs, outcome):
    assert counts_document(ours, theirs)["outcome"] == outcome


def test_a_layer_that_was_not_seen_is_in_no_pair(result):
    assert "native_bytes" not in {row["metric"] for row in case_document(result, may_say_same=False)["paired"]}


def test_a_failed_variant_has_a_reason_and_no_numbers(result):
    result.failures["fused"] = VariantError("gradient", "off by 0.1")
    document = case_document(result, may_say_same=False)
    unfused, fused = document["variants"]
    assert unfused["error"] is None
    assert fused == {
        "variant": "fused",
        "kind": "tier",
        "error": {"kind": "gradient", "message": "off by 0.1"},
        "metrics": {},
    }
    assert document["error"] is None
    assert document["gradient"] == {"ok": True, "max_rel_error": 1e-15, "oracle": "closed form"}
    (row,) = document["paired"]
    assert (row["outcome"], row["log_ratio"], row["n"]) == ("failed", None, 0)


def test_without_its_baseline_a_case_has_no_numbers_at_all(result):
    result.failures = {"unfused": VariantError("crash", "SIGSEGV")}
    document = case_document(result, may_say_same=False)
    assert [each["metrics"] for each in document["variants"]] == [{}, {}]
    assert [each["error"]["kind"] for each in document["variants"]] == ["crash", "crash"]
    assert document["variants"][1]["error"]["message"] == "not measured, since its baseline unfused failed"
    assert document["error"] == {"kind": "crash", "message": "unfused: SIGSEGV"}
    assert document["gradient"] == {"ok": False, "max_rel_error": None, "oracle": None}
    assert [row["outcome"] for row in document["paired"]] == ["failed"]


@pytest.mark.parametrize("variant", ["unfused", "fused"])
def test_a_reason_is_no_longer_than_the_service_takes(result, variant):
    result.failures[variant] = VariantError("exception", "x" * 30_000)
    document = case_document(result, may_say_same=False)
    errors = [document["error"], *(each["error"] for each in document["variants"])]
    assert max(len(each["message"]) for each in errors if each) == 10_002
    result.absent["native"] = VariantError("unavailable", "x" * 30_000)
    (sentence,) = absences([(result.case, result.absent)])
    assert len(sentence) < 20_000


def test_a_document_is_json_without_infinity(result):
    json.dumps(case_document(result, may_say_same=True), allow_nan=False)


def cases_without(variant, *reasons):
    """As many cases as reasons; None is a case that has the variant."""
    results = []
    for n, reason in enumerate(reasons):
        result = CaseResult(Case("sound", (("n", n),), "f8", "cpu"), ["unfused", variant])
        if reason:
            result.failures[variant] = VariantError("unavailable", reason)
            result.leave_out_unavailable({"unfused"})
        results.append(result)
    return results


def _absences(results):
    return absences((result.case, result.absent) for result in results)


@pytest.mark.parametrize(
    ("reasons", "sentence"),
    [
        (["none"], "numpy takes part in no case: none"),
        (["none", "none"], "numpy takes part in no case: none"),
        (["none", None], "numpy takes no part in sound[n=0,f8,cpu]: none"),
        ([None, "a", "b"], "numpy takes no part in sound[n=1,f8,cpu], sound[n=2,f8,cpu]: a; and 1 more of the kind"),
        (
            ["a", "a", "a", "a", None],
            "numpy takes no part in sound[n=0,f8,cpu], sound[n=1,f8,cpu], sound[n=2,f8,cpu] and 1 more: a",
        ),
    ],
)
def test_a_variant_that_cases_do_not_have_is_one_sentence(reasons, sentence):
    assert _absences(cases_without("numpy", *reasons)) == [sentence]


def test_variants_that_are_absent_for_the_same_reason_share_a_sentence():
    (result,) = cases_without("numpy", None)
    absent = {"unfused": "old", "fused": "old", "native": "other"}
    assert absences([(result.case, absent)]) == [
        "unfused, fused take part in no case: old",
        "native takes part in no case: other",
    ]


def test_nothing_is_said_where_nothing_is_absent_or_it_was_asked_for_by_name():
    (asked,) = cases_without("numpy", None)
    asked.failures["numpy"] = VariantError("unavailable", "none")
    asked.leave_out_unavailable({"numpy"})
    assert _absences([asked]) == _absences([]) == []
    assert "numpy" in asked.failures

"""A report read case by case says what the whole says, and holds no more than one case."""

import copy
import hashlib
import tracemalloc

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.service.conftest import make_report
from tests.service.reports.mutations import mutated

from pullback_service.errors import InvalidInputError
from pullback_service.fields import MOST_CASES
from pullback_service.reports.case_stream import InvalidReportError, gather
from pullback_service.reports.schemas import ReportDocument
from pullback_service.validation_errors import message_of


def test_what_is_no_more_needed_is_let_go_of():
    parts = gather(make_report(), "$").parts
    assert parts.points
    assert parts.cases
    parts.let_go()
    assert [*parts.points, *parts.cases, *parts.failures, *parts.comparisons] == []


def gathered(report):
    return gather(copy.deepcopy(report), "$")


def errors_at_once(report):
    """What validating the whole finds."""
    try:
        ReportDocument.model_validate(report)
    except ValidationError as error:
        return [(item["loc"], message_of(item)) for item in error.errors()]
    return []


def errors_case_by_case(report):
    try:
        gathered(report)
    except InvalidReportError as error:
        return [*error.errors]
    except InvalidInputError:  # every value holds, and two of them contradict each other
        return []
    return []


@pytest.mark.long
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_what_is_wrong_is_told_as_of_the_whole(data, reports):
    def several():
        return reports.report(cases=[reports.case(), reports.case("other"), reports.case("third")])

    report = data.draw(mutated(several))
    assert errors_case_by_case(report) == errors_at_once(report)


@pytest.mark.parametrize("name", ["cases", "comparisons"])
@pytest.mark.parametrize("value", [None, {}, "text", [None] * (MOST_CASES + 1)])
def test_a_list_that_is_none_or_too_long_is_told_as_of_the_whole(report, name, value):
    report[name] = value
    found = errors_case_by_case(report)
    assert found
    assert found == errors_at_once(report)


def test_values_that_do_not_hold_are_told_before_contradictions(reports):
    case = reports.case()
    broken = {**reports.case("other"), "variants": 7}
    with pytest.raises(InvalidReportError) as caught:
        gathered(reports.report(cases=[case, case, broken]))
    assert [complaint.place for complaint in caught.value.errors] == [("cases", 2, "variants")]


@pytest.mark.parametrize("more", [{}, {"a first": 1}, {"case": 2, "casesx": [3]}, {"zz": {"b": 1, "a": [1.5, None]}}])
@pytest.mark.parametrize("without", [set(), {"comparisons"}])
def test_the_digest_is_that_of_the_whole(reports, more, without):
    report = {**reports.report(cases=[reports.case(), reports.case("other")]), **more}
    report = {key: value for key, value in report.items() if key not in without}
    whole = hashlib.sha256(orjson.dumps(report, option=orjson.OPT_SORT_KEYS)).digest()
    assert gathered(report).digest == whole
    assert gathered({**report, "cases": []}).digest != whole


def test_a_report_is_never_held_twice(reports):
    report = reports.report(cases=[reports.case(f"workload {number}") for number in range(100)])
    body = orjson.dumps(report)

    def most_bytes(read):
        raw = orjson.loads(body)
        tracemalloc.start()
        try:
            kept = read(raw)  # noqa: F841 - alive until its memory is counted
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    at_once = most_bytes(ReportDocument.model_validate)
    assert most_bytes(lambda raw: gather(raw, "$")) < at_once / 3


def test_what_was_read_has_no_cases_left(report):
    gather(report, "$")
    assert "cases" not in report
    assert "comparisons" not in report


def test_a_case_is_measured_once(reports):
    case = reports.case()
    with pytest.raises(InvalidInputError, match="is in this report already"):
        gathered(reports.report(cases=[case, case]))


def test_a_compared_case_is_a_case_but_not_a_measured_one(reports):
    compared = {
        "case": reports.case("elsewhere")["case"],
        "variant": "fused",
        "metric": "time",
        "reference": reports.sha(1),
        "candidate": reports.sha(2),
        "log_ratio": 0.02,
        "low": 0.01,
        "high": 0.03,
        "n": 40,
        "outcome": "slower",
    }
    parts = gathered(reports.report(comparisons=[compared])).parts
    assert parts.measured_cases == 1
    assert len(parts.cases) == 2
    assert len(parts.comparisons) == 1

"""Reading an upload: what holds is read, what does not is named by its JSON path, and nothing else happens."""

import json
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.service.reports.mutations import mutated

from pullback_service.errors import RequestError, UnreadableBodyError
from pullback_service.fields import MOST_CASES
from pullback_service.reports import case_bytes, parsing
from pullback_service.reports.parsing import read_report
from pullback_service.reports.preparation import prepare


@pytest.fixture(autouse=True, params=["as a whole", "case by case"])
def read(request, monkeypatch):
    """How reports are read: long ones case by case, here every one."""
    if request.param == "case by case":
        monkeypatch.setattr(parsing, "LONG_BODY_BYTES", 0)
        monkeypatch.setattr(case_bytes, "MOST_MARKS", 1)


def encode(document):
    return json.dumps(document).encode()


def complaint(body):
    with pytest.raises(RequestError) as caught:
        prepare(body if isinstance(body, bytes) else encode(body))
    return caught.value


def test_of_a_member_named_twice_the_last_one_counts(reports):
    """As docs/uploading.md says."""
    kept, passed_over = reports.report(2, project="kept"), reports.report(project="passed over", cases=[])
    twice = encode(passed_over)[:-1] + b", " + encode(kept)[1:]
    assert read_report(twice) == read_report(encode(kept))


def test_a_report_is_read_bare_or_inside_a_pyperf_file(report):
    bare = read_report(encode(report))
    wrapped = read_report(encode({"version": "1.0", "benchmarks": [], "pullback": report}))
    assert bare.head == wrapped.head
    assert [point.ending for point in bare.parts.points] == [point.ending for point in wrapped.parts.points]
    assert bare.digest == wrapped.digest
    assert wrapped.root == "$.pullback"


def test_unknown_keys_are_kept(report):
    report["commit"]["signed_by"] = "somebody"
    assert read_report(encode(report)).head.commit.model_extra == {"signed_by": "somebody"}


def test_the_order_of_keys_makes_no_other_report(report):
    shuffled = dict(reversed(report.items()))
    assert read_report(encode(report)).digest == read_report(encode(shuffled)).digest


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_that_are_none_are_named(report, constant):
    report["cases"][0]["variants"][0]["metrics"]["time"]["processes"][1] = "HERE"
    error = complaint(encode(report).replace(b'"HERE"', constant.encode()))
    assert error.status == 422
    assert error.errors[0]["path"] == "$.cases[0].variants[0].metrics.time.processes[1]"
    assert "NaN or an infinity" in error.detail


@pytest.mark.parametrize("value", [1e101, -1e308, 5e-324])
def test_a_measured_value_beyond_all_measure_is_refused(report, value):
    report["cases"][0]["variants"][0]["metrics"]["time"]["processes"][1] = value
    error = complaint(report)
    assert error.errors[0]["path"] == "$.cases[0].variants[0].metrics.time.processes[1]"
    assert "between 1e-100 and 1e100" in error.detail


@pytest.mark.parametrize("name", ["log_ratio", "low", "high"])
@pytest.mark.parametrize("value", [201, -1e308])
def test_a_ratio_whose_factor_no_number_could_hold_is_refused(report, name, value):
    report["cases"][0]["paired"][0][name] = value
    assert complaint(report).errors[0]["path"] == f"$.cases[0].paired[0].{name}"


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"nonsense", b'"\\ud800"', b"[" * 5000])
def test_what_is_no_json_is_told_by_line_and_column(body):
    error = complaint(body)
    assert isinstance(error, UnreadableBodyError)
    assert "column" in error.detail


@pytest.mark.parametrize("body", [b"null", b"[]", b"7", b'"text"'])
def test_json_that_is_no_object_is_refused(body):
    assert complaint(body).errors[0]["path"] == "$"


def test_other_formats_and_versions_are_named(report):
    assert complaint({**report, "format": "other"}).errors[0]["path"] == "$.format"
    assert complaint({**report, "version": 2}).errors[0]["path"] == "$.version"
    assert complaint({**report, "version": True}).errors[0]["path"] == "$.version"
    assert complaint({"benchmarks": []}).errors[0]["path"] == "$.format"


@pytest.mark.parametrize(
    ("place", "value", "path"),
    [
        (["commit", "sha"], "abc", "$.commit.sha"),
        (["commit", "sha"], "A" * 40, "$.commit.sha"),
        (["commit", "authored_at"], "yesterday", "$.commit.authored_at"),
        (["commit", "authored_at"], "2026-01-01T00:00:00", "$.commit.authored_at"),
        (["commit", "authored_at"], 1e12, "$.commit.authored_at"),
        (["started_at"], "9999-12-31T23:59:59-23:59", "$.started_at"),
        (["id"], "not a uuid", "$.id"),
        (["project"], "two\nlines", "$.project"),
        (["project"], "", "$.project"),
        (["project"], "nul\x00", "$.project"),
        (["duration_s"], "12", "$.duration_s"),
        (["duration_s"], -1, "$.duration_s"),
        (["duration_s"], 1e308, "$.duration_s"),
        (["machine", "facts"], {"deep": "nul\x00"}, "$.machine.facts"),
        (["machine", "facts"], {"nul\x00": 1}, "$.machine.facts"),
        (["harness", "quality"], "good", "$.harness.quality"),
        (["cases", 0, "case", "params"], [1], "$.cases[0].case.params"),
        (["cases", 0, "gradient", "ok"], "yes", "$.cases[0].gradient.ok"),
        (["cases", 0, "gradient", "max_rel_error"], -1e-9, "$.cases[0].gradient.max_rel_error"),
        (["cases", 0, "gradient", "max_rel_error"], 1.0, "$.cases[0].gradient"),
        (["cases", 0, "variants", 1, "metrics", "time", "unit"], "", "$.cases[0].variants[1].metrics.time.unit"),
        (["cases", 0, "paired", 0, "outcome"], "better", "$.cases[0].paired[0].outcome"),
        (["cases", 0, "paired", 0, "n"], -1, "$.cases[0].paired[0].n"),
        (["cases", 0, "paired", 0, "variant"], "jax", "$.cases[0].paired[0]"),
    ],
)
def test_what_does_not_hold_is_named_by_its_path(report, place, value, path):
    target = report
    for step in place[:-1]:
        target = target[step]
    target[place[-1]] = value
    error = complaint(report)
    assert error.status == 422
    assert error.errors[0]["path"] == path


def test_paths_begin_where_the_report_begins(report):
    report["commit"]["sha"] = "abc"
    assert complaint({"pullback": report}).errors[0]["path"] == "$.pullback.commit.sha"


def test_twice_the_same_case_variant_or_pair_is_refused(reports):
    case = reports.case()
    assert complaint(reports.report(cases=[case, case])).errors[0]["path"] == "$.cases[1].case"
    twice = reports.case(variants=[reports.variant("unfused"), reports.variant("unfused")], paired=[])
    assert complaint(reports.report(cases=[twice])).errors[0]["path"] == "$.cases[0].variants[1].variant"
    paired = reports.case(paired=case["paired"][:1] * 2)
    assert complaint(reports.report(cases=[paired])).errors[0]["path"] == "$.cases[0].paired[1]"


def test_unknown_keys_nested_beyond_reason_are_refused(report):
    deep = "[" * 500 + "]" * 500
    error = complaint(encode({**report, "note": "HERE"}).replace(b'"HERE"', deep.encode()))
    assert "nested too deeply" in error.detail


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_no_document_raises_anything_but_our_own_errors(data, reports):
    document = data.draw(mutated(reports.report))
    try:
        prepare(encode(document))
    except RequestError as error:
        assert error.errors  # noqa: PT017 - hypothesis asks for either outcome
        assert all(item["path"].startswith("$") for item in error.errors)  # noqa: PT017 - as above


@settings(max_examples=60, deadline=None)
@given(body=st.binary(max_size=200))
def test_no_bytes_raise_anything_but_our_own_errors(body):
    with pytest.raises(RequestError):
        prepare(body)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_reports_read_case_by_case_are_told_the_same_as_read_whole(data, reports):
    """Whatever is wrong: the values, or what stands between them."""
    document = data.draw(mutated(lambda: reports.report(cases=[reports.case("a"), reports.case("b")])))
    body = json.dumps(document).encode("utf-8", "surrogatepass")
    if data.draw(st.booleans()):
        at = data.draw(st.integers(0, len(body)))
        put_in = [
            b"NaN",
            b",",
            b"]",
            b"}",
            b'"cases": null,',
            b'"cases": [],',
            b'"c\\u0061ses": {},',
            b'"version": 2,',
            b"\xff",
        ]
        body = body[:at] + data.draw(st.sampled_from(put_in)) + body[at:]
    assert _told(body, long_from=0) == _told(body, long_from=len(body) + 1)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda body: body[:-1] + b', "cases": null}',
        lambda body: body[:-1] + b', "c\\u0061ses": []}',
        lambda body: body.replace(b'"version": 1', b'"version": 2').replace(b'"n": 20', b'"n": NaN'),
        lambda body: body.replace(b'"n": 20', b'"n": ' + b"[" * 1020 + b"]" * 1020),
    ],
)  # fmt: skip
def test_what_only_the_whole_tells_is_told_case_by_case(report, spoil):
    body = spoil(json.dumps(report).encode())
    assert _told(body, long_from=0) == _told(body, long_from=len(body) + 1)


def test_of_too_many_cases_that_are_no_json_the_latter_is_said(reports):
    body = json.dumps(reports.report(cases=[])).encode()
    body = body.replace(b'"cases": []', b'"cases": [' + b"{}," * MOST_CASES + b"{,}]")
    told = _told(body, long_from=0)
    assert told == _told(body, long_from=len(body) + 1)
    assert told[0] == 400


def _told(body, *, long_from):
    """What a body is read as, or the answer to it."""
    with mock.patch.object(parsing, "LONG_BODY_BYTES", long_from), mock.patch.object(case_bytes, "MOST_MARKS", 1):
        try:
            read = read_report(body)
        except RequestError as error:
            return error.status, str(error), error.errors
    return read

"""Stored files read back: the same case however the file holds our document, and what was changed where it is stored."""

import random
import zlib
from copy import deepcopy
from functools import partial
from uuid import UUID

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs
from tests.service.conftest import make_case, make_report
from tests.service.reports.mutations import mutated

from pullback_service.errors import DamagedError, RequestError
from pullback_service.models.reports import Report
from pullback_service.reports.case_frames import OUTLINE_TAIL_BYTES, packed_apart
from pullback_service.reports.codecs import packed
from pullback_service.reports.parsing import read_report
from pullback_service.reports.report_outline import outline
from pullback_service.reports.stored_files import (
    LARGE_FILE_BYTES,
    LONG_FILE_BYTES,
    Entries,
    body_of,
    case_of,
    document_json_of,
    document_of,
    is_large,
    numbered_if_failed,
    outline_of,
)
from pullback_service.series.case_identity import identity

DOCUMENT = make_report(cases=[make_case("a"), make_case("b")])
CASES = DOCUMENT["cases"]
WANTED = identity("b", {"n": 100.0, "act": "tanh"}, "f4", "cpu")
READERS = [document_of, outline_of, partial(case_of, identity=WANTED)]


def file_of(content):
    return Report(id=UUID(DOCUMENT["id"]), body=packed(orjson.dumps(content)), document=None)


@pytest.mark.parametrize(
    "stored",
    [
        file_of(DOCUMENT),
        file_of({"version": "1.0", "pullback": DOCUMENT}),  # a pyperf file
        file_of({"cases": [{"case": {}}], "pullback": DOCUMENT}),
        Report(body=packed(b'{"another": "tool"}'), document=packed(orjson.dumps(DOCUMENT))),
    ],
)
def test_a_case_is_found_by_what_it_is(stored):
    document, entry = case_of(stored, WANTED)
    assert entry == CASES[1]
    assert document["harness"] == DOCUMENT["harness"]
    assert [each["case"] for each in document["cases"]] == [each["case"] for each in CASES]
    assert case_of(stored, identity("c", {}, None, None)) is None


def changed(*place, to):
    """The document with another value at a place."""
    document = deepcopy(DOCUMENT)
    inner = document
    for step in place[:-1]:
        inner = inner[step]
    if to is None:
        del inner[place[-1]]
    else:
        inner[place[-1]] = to
    return orjson.dumps(document)


RAW = orjson.dumps(DOCUMENT)
DAMAGE = {
    "no JSON": b"{not json",
    "half of it": RAW[: len(RAW) // 2],
    "half of the slices": RAW[: RAW.index(b'"slices"') + 12],
    "empty": b"",
    "no UTF-8": RAW.replace(b"dense", b"\xff\xfe") + b"\xff",
    "an empty object": b"{}",
    "a list": b"[]",
    "a list of slices that does not end": b'[["slices":[[1,',
    "a number": b"1",
    "brackets without names": b"{[1]}",
    "no cases": changed("cases", to=None),
    "cases that are none": orjson.dumps({**DOCUMENT, "cases": None}),
    "entries that are none": changed("cases", to=[None]),
    "no name of a case": changed("cases", 1, "case", "workload", to=None),
    "no name of a variant": changed("cases", 1, "variants", 0, "variant", to=None),
    "a metric that is a number": changed("cases", 1, "variants", 0, "metrics", "time", to=1),
    "text instead of times": changed("cases", 1, "variants", 0, "metrics", "time", "processes", to=["1"]),
    "a ratio without outcome": changed("cases", 1, "paired", 0, "outcome", to=None),
    "no hash of the commit": changed("commit", "sha", to=None),
    "no version of the harness": changed("harness", "version", to=None),
    "another machine": changed("machine", to="box"),
}


@pytest.mark.sample(every=4)
@pytest.mark.parametrize("content", DAMAGE.values(), ids=DAMAGE)
@pytest.mark.parametrize("column", ["body", "document"])
@pytest.mark.parametrize("read", READERS, ids=["document_of", "outline_of", "case_of"])
def test_what_does_not_read_as_a_document_any_more_is_damage(content, column, read):
    stored = Report(**{"id": UUID(DOCUMENT["id"]), "body": packed(RAW), "document": None, column: packed(content)})
    with capture_logs() as logs, pytest.raises(DamagedError, match=f"The stored file of report {stored.id} is damaged"):
        read(stored)
    (line,) = logs
    assert (line["event"], line["report"]) == ("stored_file_damaged", DOCUMENT["id"])


def test_the_outline_is_read_from_the_end_of_a_large_file():
    slices = [[round(1e-4 + 1e-9 * place, 12) for place in range(3000)] for _ in range(3)]
    case = make_case("a")
    case["variants"][0]["metrics"]["time"]["slices"] = slices
    raw = orjson.dumps(make_report(cases=[case, make_case("b")]))
    whole = Report(id=UUID(DOCUMENT["id"]), body=packed(raw), document=None)
    end = Report(id=UUID(DOCUMENT["id"]), body=packed_apart(raw)[-OUTLINE_TAIL_BYTES:], document=None)
    assert outline_of(end) == outline_of(whole)
    with pytest.raises(DamagedError):
        outline_of(Report(id=UUID(DOCUMENT["id"]), body=b"(" + packed_apart(b"x" * 9)[-40:], document=None))


@pytest.mark.parametrize("read", [body_of, *READERS])
def test_what_cannot_be_unpacked_is_damage(read):
    stored = Report(id=UUID(DOCUMENT["id"]), body=zlib.compress(RAW)[:-9], document=None)
    with capture_logs() as logs, pytest.raises(DamagedError):
        read(stored)
    assert [line["event"] for line in logs] == ["stored_file_damaged"]


@pytest.mark.long
@settings(max_examples=100, deadline=None)
@given(st.data())
def test_whatever_is_stored_it_is_read_or_damaged(data):
    content = RAW
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(content)))
        put = data.draw(st.sampled_from([b"", *(bytes([one]) for one in b'{}[]",:\\ 1\xff')]))
        content = content[:at] + put + content[at + data.draw(st.sampled_from([0, 1, 1, 20, len(content)])) :]
    stored = Report(id=UUID(DOCUMENT["id"]), body=packed(content), document=None)
    for read in READERS:
        try:
            read(stored)
        except DamagedError:
            continue
        if read is document_of:  # the others do not look at times of slices and at other cases
            orjson.loads(content)


@settings(max_examples=100, deadline=None)
@given(mutated(make_report))
@example(make_report(cases=[]))
def test_what_was_accepted_is_no_damage(document):
    try:
        body = orjson.dumps(document)
        read_report(body)
    except (RequestError, TypeError):  # orjson writes no integers beyond 64 bits
        return
    assert document_of(Report(id=UUID(DOCUMENT["id"]), body=packed(body), document=None)) == orjson.loads(body)


def long_report(**last):
    cases = [make_case(f"w{number}") for number in range(1500)]
    cases[-1] |= last
    return {**DOCUMENT, "cases": cases}


@pytest.mark.long
def test_the_cases_of_a_long_document_are_read_some_at_a_time_and_are_the_same():
    raw = orjson.dumps(long_report())
    assert len(raw) > LONG_FILE_BYTES
    stored = Report(id=UUID(DOCUMENT["id"]), body=packed(raw), document=None)
    read, whole = outline_of(stored), outline(raw)
    assert isinstance(read["cases"], Entries)
    assert {**read, "cases": list(read["cases"])} == whole
    assert list(read["cases"][990:1010]) == whole["cases"][990:1010]
    assert read["cases"][-1] == whole["cases"][-1]
    assert orjson.loads(document_json_of(stored)) == document_of(stored)


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("written", [lambda text: text, lambda text: text.replace(b'"error"', b'"err\\u006fr"')])
def test_of_a_long_document_the_cases_that_failed_are_found_by_their_text(written):
    document = long_report()
    failed = {"kind": "crash", "message": "it ended"}
    document["cases"][7] |= {"error": failed}
    document["cases"][900]["variants"] = [{"variant": "fused", "error": failed}]
    document["cases"][1100]["gradient"] = {"ok": False}
    document["cases"][1200]["variants"] = [{"variant": "fused", "error": None, "metrics": {}}]
    raw = written(orjson.dumps(document))
    cases = outline_of(Report(id=UUID(DOCUMENT["id"]), body=packed(raw), document=None))["cases"]
    assert isinstance(cases, Entries)
    found = dict(numbered_if_failed(cases))
    assert found == {number: cases[number - 1] for number in found}
    assert {8, 901, 1101} <= found.keys()
    assert len(found) < 10 or b"\\u" in raw
    assert dict(numbered_if_failed(document["cases"][:9])).keys() == {*range(1, 10)}


@pytest.mark.parametrize("count", [60_000, 120_000], ids=["small", "large"])
def test_a_file_is_large_by_what_it_is_unpacked(count):
    """Cases that are alike are packed to a 260th: they take as much to read as others do."""
    file = orjson.dumps({"cases": [{"case": {"workload": "w", "params": {"n": 1}}}] * count})
    for body in (packed(file), packed(file[:999]) + packed(file[999:])):
        assert is_large(Report(body=body)) is is_large(Report(document=body)) is (len(file) > LARGE_FILE_BYTES)


def test_files_in_zlib_and_damaged_ones_are_large_by_their_stored_bytes():
    noise = random.Random(1).randbytes(LARGE_FILE_BYTES // 9)
    assert is_large(Report(body=zlib.compress(noise)))
    assert not is_large(Report(body=zlib.compress(noise[:999])))
    assert not is_large(Report(body=packed(noise)[:-40]))  # damaged, as is said when it is read


def test_damage_of_one_case_of_a_long_document_is_found_when_that_is_read():
    stored = Report(id=UUID(DOCUMENT["id"]), body=packed(orjson.dumps(long_report(variants=[1]))), document=None)
    cases = outline_of(stored)["cases"]
    assert cases[0]["case"]["workload"] == "w0"
    for read in (lambda: cases[-1], lambda: list(cases), lambda: document_json_of(stored)):
        with capture_logs(), pytest.raises(DamagedError):
            read()

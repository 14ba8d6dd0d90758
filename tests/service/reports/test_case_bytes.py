"""A stored report taken apart by its brackets: what reading all of it finds."""

import json
from unittest import mock

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pullback_service.reports import case_bytes
from pullback_service.reports.case_bytes import split, take_apart

texts = (
    st.text(max_size=8) | st.text(alphabet='{}[]"\\,: ', max_size=12) | st.sampled_from(["cases", "case", '"cases":['])
)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=12,
)
entries = st.dictionaries(texts, values, max_size=3).flatmap(
    lambda rest: st.dictionaries(texts, values, max_size=2).map(lambda case: {**rest, "case": case})
)
documents = st.tuples(
    st.dictionaries(texts, values, max_size=3),
    st.lists(entries, max_size=4),
    st.dictionaries(texts, values, max_size=3),
).map(lambda parts: {**parts[0], "cases": parts[1], **{k: v for k, v in parts[2].items() if k != "cases"}})


@given(documents, st.sampled_from([None, 1]), st.booleans())
def test_parts_are_those_of_the_whole(document, indent, escaped):
    body = json.dumps(document, indent=indent, ensure_ascii=escaped).encode("utf-8", "surrogatepass")
    try:
        whole = orjson.loads(body)
    except orjson.JSONDecodeError:
        return  # half of a surrogate pair, which no upload may hold
    found = split(body)
    assert found is not None
    assert found.head == {**whole, "cases": []}
    assert [case.read() for case in found.cases] == whole["cases"]
    assert [case.case for case in found.cases] == [entry["case"] for entry in whole["cases"]]


@pytest.mark.parametrize(
    "body",
    [b"{}", b"[]", b'[{"cases": []}]', b'{"a": {"cases": [{"case": {}}]}}', b'{"cases": [{"case": 1}]}',
     b'{"cases": [[]]}', b'{"cases": {"case": {}}}', b'{"x\\"cases": [{"case": {}}]}', b'{"cases": [{}]}'],
)  # fmt: skip
def test_what_is_no_list_of_cases_is_left_to_the_usual_reader(body):
    assert split(body) is None


def test_the_last_of_members_of_one_name_counts():
    found = split(b'{"cases": [{"case": {"a": 1}}], "cases": [{"case": {"a": 2}, "case": {"a": 3}}]}')
    assert [case.case for case in found.cases] == [{"a": 3}]
    assert found.head["cases"] == []


def test_backslashes_before_quotes_are_counted():
    text = "\\" * 200 + '"{['
    found = split(orjson.dumps({"t": text, "cases": [{"case": {"a": "\\"}, "b": '"]}'}]}))
    assert (found.head["t"], found.cases[0].read()["b"]) == (text, '"]}')


def damaged(draw, body):
    """A few bytes taken out, put in or changed, mostly where they mean something."""
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(body)))
        kept = draw(st.integers(0, 2))
        body = (
            body[:at]
            + draw(st.sampled_from([b"", b"{", b"}", b"[", b"]", b'"', b",", b":", b"\\", b" ", b"1", b"\xff"]))
            + body[at + kept :]
        )
    return body


@pytest.mark.long
@settings(max_examples=200, deadline=None)
@given(st.data(), documents, st.sampled_from([None, 1]))
def test_what_is_taken_apart_is_json_where_the_whole_is(data, document, indent):
    body = damaged(data.draw, json.dumps(document, indent=indent).encode("utf-8", "surrogatepass"))
    with mock.patch.object(case_bytes, "MOST_MARKS", 1):
        apart = take_apart(body)
    try:
        whole = orjson.loads(body)
    except orjson.JSONDecodeError:
        whole = None
    if apart is None:
        return
    head, entries = apart
    try:
        read = [orjson.loads(entry) for entry in entries]
    except orjson.JSONDecodeError:
        assert whole is None
    else:
        assert whole == {**head, "cases": read}


@pytest.mark.parametrize(
    "last", [b'"cases": null', b'"cases": 5', b'"cases": {}', b'"c\\u0061ses": {}', b'"c\\u0061ses": null']
)
def test_of_several_cases_the_last_one_counts_although_it_is_no_list(last):
    assert take_apart(b'{"cases": [{"n": 1.0000000000}], "padding": 0.000000000000, ' + last + b"}") is None


@pytest.mark.parametrize("body", [b"{[" + b"1," * 20 + b"1]}", b'{[1, "a"]}', b"{{}}"])
def test_brackets_without_a_name_before_them_are_no_members(body):
    with mock.patch.object(case_bytes, "MOST_MARKS", 10**9):
        assert take_apart(body) is None
    assert split(body) is None


def test_a_name_may_be_written_with_escapes():
    head, entries = take_apart(
        b'{"cases": [{"n": 1.0000000000}], "padding": 0.0000000, "c\\u0061ses": [{"n": 2.0000000}]}'
    )
    assert (head["cases"], [bytes(entry) for entry in entries]) == ([], [b'{"n": 2.0000000}'])


@pytest.mark.parametrize("depth", [1000, 1020, 1021, 1022, 1023, 1024])
def test_what_is_nested_too_deeply_for_the_whole_is_not_taken_apart(depth):
    """An entry alone is less deep by two than in its document."""
    body = b'{"cases": [{"n": ' + b"[" * depth + b"]" * depth + b"}], " + b'"padding": 0.' + b"0" * 9000 + b"}"
    try:
        orjson.loads(body)
    except orjson.JSONDecodeError:
        assert take_apart(body) is None
    else:
        assert take_apart(body) is not None


def test_usual_reports_are_taken_apart():
    document = {
        "format": "x",
        "cases": [{"case": {"n": number}, "values": [1.25, 2.5, 3.75]} for number in range(9)],
        "z": [],
    }
    for body in (json.dumps(document).encode(), json.dumps(document, indent=2).encode(), orjson.dumps(document)):
        head, entries = take_apart(body)
        assert head == {**document, "cases": []}
        assert [orjson.loads(entry) for entry in entries] == document["cases"]


@pytest.mark.parametrize(
    "body",
    [b"", b"1", b"{", b"}{", b'{"cases": [{}, 1], "padding": 0.000000000000000000}', b'{"cases": [{}{}], "padding": 0.00000000000}',
     b'{"cases": [,{}], "padding": 0.00000000000}', b'{"cases": [{},], "padding": 0.00000000000}', b"[" * 99, b'"' * 99],
)  # fmt: skip
def test_what_is_no_list_of_objects_is_left_to_the_usual_reader_too(body):
    assert take_apart(body) is None

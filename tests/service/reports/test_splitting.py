"""A stored report taken apart by its brackets: what reading all of it finds."""

import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pullback_service.reports.splitting import split

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

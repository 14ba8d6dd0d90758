"""A document without the times of its slices: everything else is what reading all of it finds."""

import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pullback_service.reports.report_outline import outline

numbers = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-9, 9)
texts = st.text(alphabet='slice"\\:[],{} ', max_size=12) | st.sampled_from(["slices", '"slices":[[1]]', "\\"])
members = st.dictionaries(texts, texts | numbers | st.lists(st.lists(numbers, max_size=3), max_size=2), max_size=3)
slices = st.none() | st.lists(st.lists(numbers, max_size=5), max_size=4)


@st.composite
def documents(draw):
    """Documents of one case, with slices in the times of its variants."""
    times = draw(st.lists(st.tuples(members, slices), max_size=3))
    variants = [
        {"variant": "v", "metrics": {"time": {**rest, "slices": told, "unit": "s"}, "other": {"value": 1}}}
        for rest, told in times
    ]
    return {**draw(members), "cases": [{"case": draw(members), "variants": variants}], "harness": draw(members)}


def counted(document):
    """The document as `outline` is to give it, out of the document as it was read."""
    for variant in document["cases"][0]["variants"]:
        told = variant["metrics"]["time"].get("slices")
        if told is not None:
            del variant["metrics"]["time"]["slices"]
            variant["metrics"]["time"]["slice_counts"] = [len(each) for each in told]
    return document


@given(documents(), st.sampled_from([None, 1]), st.booleans())
def test_slices_are_counted_and_all_else_stays(document, indent, wrapped):
    body = json.dumps({"pullback": document} if wrapped else document, indent=indent).encode()
    found = outline(body)
    whole = orjson.loads(body)
    assert (found["pullback"] if wrapped else found) == counted(whole["pullback"] if wrapped else whole)


@pytest.mark.parametrize(
    "value", ["null", "1", "{}", "[]", "[1, 2]", '[["]"]]', "[[[1]]]", "[[], [ ], [1]]", '"slices"', "[[{}, {}]]"]
)
def test_what_is_called_slices_elsewhere_is_as_it_was_uploaded(value):
    body = f'{{"cases": [], "machine": {{"facts": {{"slices": {value}}}}}}}'.encode()
    assert outline(body) == orjson.loads(body)


def test_a_document_may_be_anything_that_is_json():
    for body in (b"[]", b"1", b'{"cases": 1}', b'{"cases": [1, {"variants": [1, {"metrics": {"time": 1}}]}]}'):
        assert outline(body) == orjson.loads(body)

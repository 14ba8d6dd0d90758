"""Identity and label of cases."""

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pullback_service.series.case_identity import identity, label

scalars = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5)
params = st.dictionaries(st.text(max_size=5), scalars | st.lists(scalars, max_size=3), max_size=4)

# What labels are made of, so that texts often read like something else.
tricky = st.text('a1,=[]{}"\\:', max_size=6) | st.sampled_from(
    ["true", "null", "-1.5e3", "w[n=1]", 'a=",b="', "f4,cpu"]
)
tricky_names = tricky.filter(bool)
nested = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 99) | st.floats(-2, 2).filter(lambda value: value % 1) | tricky,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(tricky, inner, max_size=2),
    max_leaves=4,
)
cases = st.tuples(
    tricky_names, st.dictionaries(tricky, nested, max_size=3), st.none() | tricky_names, st.none() | tricky_names
)


def read_back(label):
    """The case of which this is the label."""
    if not label.endswith("]") or ("=" not in label and "," not in label):
        return label, {}, None, None
    place, depth = len(label) - 1, 1
    while depth:  # backwards to the bracket that the last one closes, over strings
        place -= 1
        if label[place] == '"':
            place -= 1
            while label[place] != '"' or (len(label[:place]) - len(label[:place].rstrip("\\"))) % 2:
                place -= 1
        depth += {"]": 1, "[": -1}.get(label[place], 0)
    named, parts = {}, []
    for part in split(label[place + 1 : -1], ","):
        name, *value = split(part, "=")
        if value:
            named[read_text(name)] = read_value(value[0])
        else:
            parts.append(read_text(part) or None)
    dtype, device = (*parts, None, None)[:2]
    return label[:place], named, dtype, device


def split(text, separator):
    """Parts of a text between separators that stand outside of strings and brackets."""
    parts, depth, quoted, escaped = [""], 0, False, False
    for character in text:
        if not quoted and depth == 0 and character == separator:
            parts.append("")
            continue
        parts[-1] += character
        if escaped or (quoted and character == "\\"):
            escaped = not escaped
        elif character == '"':
            quoted = not quoted
        elif not quoted:
            depth += (character in "[{") - (character in "]}")
    return parts


def read_text(text):
    return json.loads(text) if text.startswith('"') else text


def read_value(text):
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def test_the_label_names_params_in_their_order_then_dtype_and_device():
    assert label("dense_bias_act", {"n": 100, "act": "tanh"}, "f4", "cpu") == "dense_bias_act[n=100,act=tanh,f4,cpu]"


def test_what_is_not_given_is_not_in_the_label():
    assert label("imported", {}, None, None) == "imported"
    assert (
        label("imported", {"x": 1.5, "flag": True, "shape": [2, 3]}, None, None)
        == "imported[x=1.5,flag=true,shape=[2,3]]"
    )


@pytest.mark.parametrize(
    ("case", "shown"),
    [
        (("w", {"n": "1"}, "f4", "cpu"), 'w[n="1",f4,cpu]'),
        (("w", {"flag": "true", "size": "1e-5"}, None, None), 'w[flag="true",size="1e-5"]'),
        (("w", {"version": "1.2.3", "none": "None"}, None, None), "w[version=1.2.3,none=None]"),
        (("w", {"a": "1,b=2"}, None, None), 'w[a="1,b=2"]'),
        (("w", {"a": "", "b=c": 1}, None, None), 'w[a="","b=c"=1]'),
        (("w", {"n": 1}, "f4", None), "w[n=1,f4]"),
        (("w", {"n": 1}, None, "cpu"), "w[n=1,,cpu]"),
        (("w", {}, None, "cpu"), "w[,cpu]"),
        (("w", {}, "f4", None), "w[f4,]"),
        (("w", {}, "f4", "cpu"), "w[f4,cpu]"),
        (("test_sum[numpy-64]", {}, None, None), "test_sum[numpy-64]"),  # as pytest names what has parameters
        (("w[n=1]", {}, None, None), "w[n=1][]"),
    ],
)
def test_text_that_would_read_as_something_else_is_in_quotes(case, shown):
    assert label(*case) == shown


@settings(max_examples=100)
@given(cases)
@example(("w", {'a="],b=': '"'}, "[", "]"))
@example(("w[]", {}, None, None))
def test_no_two_cases_have_one_label(case):
    assert identity(*read_back(label(*case))) == identity(*case)


@given(params)
def test_the_order_of_params_makes_no_other_case(values):
    shuffled = dict(reversed(values.items()))
    assert identity("w", values, "f4", "cpu") == identity("w", shuffled, "f4", "cpu")


def test_whole_numbers_are_equal_however_they_are_written():
    assert identity("w", {"n": 1}, None, None) == identity("w", {"n": 1.0}, None, None)


@pytest.mark.parametrize(
    "other",
    [
        ("v", {"n": 1}, "f4", "cpu"),
        ("w", {"n": 2}, "f4", "cpu"),
        ("w", {"m": 1}, "f4", "cpu"),
        ("w", {"n": "1"}, "f4", "cpu"),
        ("w", {"n": True}, "f4", "cpu"),
        ("w", {"n": 1}, "f8", "cpu"),
        ("w", {"n": 1}, None, "f4"),
        ("w", {"n": 1}, "f4", None),
    ],
)
def test_any_difference_makes_another_case(other):
    assert identity("w", {"n": 1}, "f4", "cpu") != identity(*other)

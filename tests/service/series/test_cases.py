"""Identity and label of cases."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pullback_service.series.cases import identity, label

scalars = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5)
params = st.dictionaries(st.text(max_size=5), scalars | st.lists(scalars, max_size=3), max_size=4)


def test_the_label_names_params_in_their_order_then_dtype_and_device():
    assert label("dense_bias_act", {"n": 100, "act": "tanh"}, "f4", "cpu") == "dense_bias_act[n=100,act=tanh,f4,cpu]"


def test_what_is_not_given_is_not_in_the_label():
    assert label("imported", {}, None, None) == "imported"
    assert (
        label("imported", {"x": 1.5, "flag": True, "shape": [2, 3]}, None, None)
        == "imported[x=1.5,flag=true,shape=[2,3]]"
    )


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

"""What people try first and cannot have: one sentence with what, where, and the remedy."""

import numpy as np
import pytest

import pullback as pb
from pullback.errors import DifferentiationError, TracingError

X = np.array([1.0, 2.0, 3.0])


def test_a_traced_value_can_be_printed_but_not_formatted_as_a_number():
    assert pb.grad(lambda x: (f"{x}" == "<traced float64[3]>") * np.sum(x))(X)[0] == 1.0
    with pytest.raises(TracingError, match=r"cannot be formatted as '\.3f'.*has_aux"):
        pb.grad(lambda x: (f"{np.sum(x):.3f}", np.sum(x))[1])(X)


def test_jvp_of_bare_arrays_is_told_to_take_tuples():
    with pytest.raises(DifferentiationError, match=r"jvp\(f, \(x,\), \(dx,\)\)"):
        pb.jvp(np.sin, X, X)


def test_a_layer_names_itself_and_the_sizes_that_do_not_fit():
    with pytest.raises(ValueError, match=r"dense_bias_act: w of shape \(3, 4\) takes 4 inputs, x has 5"):
        pb.nn.dense_bias_act(np.ones((3, 4)), np.ones((5, 2)))


def test_a_map_with_the_wrong_parameters_is_refused_when_it_is_given():
    @pb.primitive
    def scaled(x, rate):
        return x * rate

    with pytest.raises(
        TypeError, match=r"scaled: the map by x takes 4 values by position.*\(x, rate\); this one takes 1"
    ):
        scaled.pulls(x=lambda y_bar: y_bar)
    scaled.pulls(x=lambda y_bar, *rest: y_bar * rest[-1], rate=None)
    assert pb.grad(scaled)(1.0, 3.0) == 3.0


def test_what_is_no_function_is_refused_at_once():
    with pytest.raises(DifferentiationError, match="compile takes a function, not float"):
        pb.compile(3.0)

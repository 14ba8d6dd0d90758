"""What people try first and cannot have: one sentence with what, where, and the remedy."""

import math

import numpy as np
import pytest

import pullback as pb
from pullback.errors import DifferentiationError, TracingError

X = np.array([1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    "loss",
    [
        lambda x: np.sum(np.array([x[0], x[1]])),
        lambda x: np.sum(np.asarray(x)),
        lambda x: math.sin(x[0]),
        lambda x: float(np.sum(x)),
    ],
)
def test_a_traced_value_that_leaves_numpy_is_refused_with_the_ways_out(loss):
    with pytest.raises(TracingError, match=r"pb\.numpy\.array.*pb\.scipy"):
        pb.grad(loss)(X)


def test_a_store_into_a_plain_array_has_the_remedy_as_its_cause():
    def loss(x):
        y = np.zeros(3)
        y[0] = x[0]
        return np.sum(y)

    with pytest.raises(ValueError, match="setting an array element") as caught:  # NumPy's own error, of ours
        pb.grad(loss)(X)
    assert "a store y[0] = x" in str(caught.value.__cause__)


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

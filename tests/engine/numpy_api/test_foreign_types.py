"""Operands of types that are not ours."""

from fractions import Fraction

import numpy as np
import pytest

import pullback as pb
from pullback.errors import TracingError

X = np.array([1.0, 2.0, 3.0])


class Labelled:
    """Another array type: it takes operations over, as NumPy's protocol says."""

    def __init__(self, values):
        self.values = values

    def __array_ufunc__(self, ufunc, method, *inputs, **keywords):
        plain = [x.values if isinstance(x, Labelled) else x for x in inputs]
        return Labelled(getattr(ufunc, method)(*plain, **keywords))

    def __mul__(self, other):
        return Labelled(self.values * other)

    def __rmul__(self, other):
        return Labelled(other * self.values)

    def __gt__(self, other):
        return Labelled(self.values > other)


@pytest.mark.parametrize(
    "product", [lambda x, y: x * y, lambda x, y: y * x, lambda x, y: np.multiply(x, y), lambda x, y: np.multiply(y, x)]
)
def test_other_array_types_take_operations_over(product):
    def loss(x):
        result = product(x, Labelled(X))
        assert isinstance(result, Labelled)
        return np.sum(result.values)

    np.testing.assert_array_equal(pb.grad(loss)(X), X)
    np.testing.assert_array_equal(pb.jvp(loss, (X,), (X,))[1], 14.0)


def test_comparisons_are_left_to_other_types_too():
    assert pb.grad(lambda x: np.sum(x) if isinstance(x < Labelled(X), Labelled) else 0.0)(X).tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * np.eye(3).view(np.matrix),
        lambda x: x * np.ma.masked_array(X, [0, 1, 0]),
        lambda x: np.multiply(np.ma.masked_array(X, [0, 1, 0]), x),
        lambda x: np.concatenate([x, np.ma.masked_array(X, [0, 1, 0])]),
    ],
)
def test_matrices_and_masked_arrays_are_refused(function):
    with pytest.raises(TracingError, match="make it a plain array with numpy.asarray"):
        pb.grad(lambda x: np.sum(function(x)))(X)


@pytest.mark.parametrize("operand", [Fraction(1, 2), np.array([1, 2, 3], object), np.timedelta64(2, "s")])
@pytest.mark.parametrize(
    "derivative", [pb.grad, lambda f: lambda x: pb.jvp(f, (x,), (x,)), lambda f: pb.vmap(pb.grad(f), in_axes=None)]
)
def test_what_is_neither_number_nor_truth_value_is_refused_and_not_taken_for_constant(derivative, operand):
    with pytest.raises(TypeError):
        derivative(lambda x: np.sum(x * operand / operand))(X)


def test_times_are_refused_with_the_remedy():
    with pytest.raises(TracingError, match="convert arrays of objects, times or text"):
        pb.grad(lambda x: np.sum(x * np.timedelta64(2, "s") / np.timedelta64(1, "s")))(X)

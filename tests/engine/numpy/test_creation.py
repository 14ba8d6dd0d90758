"""Arrays made from traced parts."""

import numpy as onp  # noqa: ICN001 (np is the namespace under test)
import pytest

import pullback as pb
import pullback.numpy as np
from pullback.errors import TracingError


def test_what_is_not_overridden_is_numpys_own():
    assert np.tanh is onp.tanh
    assert np.float32 is onp.float32
    assert np.linalg.solve is onp.linalg.solve
    assert np.pi == onp.pi
    with pytest.raises(AttributeError, match="pullback.numpy.*no attribute 'nosuch'"):
        _ = np.nosuch


def test_plain_values_give_what_numpy_gives():
    onp.testing.assert_array_equal(np.array([[1, 2], [3, 4]], dtype=float), [[1.0, 2.0], [3.0, 4.0]])
    assert np.array([1, 2], ndmin=2).shape == (1, 2)
    assert np.asarray([1.0]).dtype == float
    onp.testing.assert_array_equal(np.r_[1:4, 0], onp.r_[1:4, 0])
    assert np.full((2,), 3.0).tolist() == [3.0, 3.0]


def test_star_import_has_numpys_names():
    assert {"tanh", "array", "linalg", "concatenate"} <= set(np.__all__)


def test_full_of_a_traced_value():
    assert pb.grad(lambda x: np.sum(np.full((2, 3), x * x)))(3.0) == 36.0
    assert pb.grad(lambda x: np.sum(np.full_like(onp.ones((2, 2)), x)))(3.0) == 4.0


def test_a_traced_value_is_an_array_already():
    assert pb.grad(lambda x: np.sum(np.asarray(x) * 2 + np.array(x, ndmin=2)))(1.0) == 3.0


def test_directives_of_joining_are_refused():
    with pytest.raises(TracingError, match="concatenate"):
        pb.grad(lambda x: np.sum(np.r_["0,2", x, x]))(1.0)


PARTS = {
    "a list": (lambda m, x, y: m.array([x[0], 2 * y[1], 3.0]), (2,), (2,)),
    "nested lists": (lambda m, x, y: m.array([[x[0], 1.0], [y[1], x[1]]]), (2,), (2,)),
    "arrays in a list": (lambda m, x, y: m.array([x, y, onp.ones(2)]), (2,), (2,)),
    "more dimensions": (lambda m, x, y: m.array([x, y], ndmin=3), (2,), (2,)),
    "an array of objects": (lambda m, x, y: m.array([x * y, y]), (), ()),
    "r_": (lambda m, x, y: m.r_[x, 1.0, y, 0:2], (2,), (3,)),
    "c_": (lambda m, x, y: m.c_[x, y], (3,), (3,)),
    "c_ of matrices": (lambda m, x, y: m.c_[x, y], (3, 1), (3, 2)),
    "sum of a list": (lambda m, x, y: m.sum([x, y], axis=0), (2,), (2,)),
    "mean of a list": (lambda m, x, y: m.mean([x, y]), (2,), (2,)),
    "max of a list": (lambda m, x, y: m.max([x, y], axis=0), (2,), (2,)),
    "var of a list": (lambda m, x, y: m.var([x, y]), (2,), (2,)),
    "ascontiguousarray": (lambda m, x, y: m.ascontiguousarray(x) * y, (), ()),
}


@pytest.mark.parametrize("name", PARTS)
def test_arrays_of_traced_parts(name):
    function, *shapes = PARTS[name]
    args = [onp.asarray(onp.random.default_rng(i).normal(size=shape)) for i, shape in enumerate(shapes)]
    value, _ = pb.vjp(lambda *xs: function(np, *xs), *args)
    onp.testing.assert_allclose(value, function(onp, *args))
    pb.testing.check_grads(lambda *xs: function(np, *xs), args)


def test_a_dtype_is_honoured():
    value, _ = pb.vjp(lambda x: np.array([x, x], dtype=onp.float32), 1.0)
    assert value.dtype == onp.float32

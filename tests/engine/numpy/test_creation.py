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

"""Masks by bit patterns choose what NumPy's own choose."""

import numpy as np
import pytest

from pullback.core.bit_masks import write_masked
from pullback.rules.elementwise import where

RNG = np.random.default_rng(0)
STRANGE = [np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-45, 3.0]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble])
@pytest.mark.parametrize("zero", [0, 0.0, -0.0, False], ids=str)
@pytest.mark.parametrize("strides", [1, 2])
def test_where_is_numpys(dtype, zero, strides):
    with np.errstate(over="ignore"):
        a = np.array(STRANGE * 6).astype(dtype)[::strides].reshape(3, -1)
    mask = RNG.random(a.shape) < 0.5
    for c, x in ((mask, a), (mask.T, a.T), (mask, a[:1]), (mask[:, :1], a)):
        expected = np.where(c, x, zero)
        y = where(c, x, zero)
        assert y.dtype == expected.dtype
        np.testing.assert_array_equal(y, expected)
        np.testing.assert_array_equal(np.signbit(y), np.signbit(expected))
        for number in (zero, np.array(zero, dtype)):
            out = np.full(expected.shape, 7, expected.dtype)
            where.into(out, c, x, number)
            np.testing.assert_array_equal(out, expected)
            np.testing.assert_array_equal(np.signbit(out), np.signbit(expected))


def test_whole_numbers_and_numbers_are_left_to_numpy():
    np.testing.assert_array_equal(where(np.array([True, False]), np.array([3, 4]), 0), [3, 0])
    assert where(np.True_, np.float32(2), 0) == 2
    assert where(np.array([1, 0]), np.ones(2), 0).tolist() == [1, 0]


def test_what_is_masked_may_be_there_already():
    values = np.array([1.0, np.nan, np.inf])
    assert write_masked(values, values, np.array([False, True, False]))
    np.testing.assert_array_equal(values, [0, np.nan, 0])

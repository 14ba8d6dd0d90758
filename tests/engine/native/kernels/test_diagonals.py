"""Diagonals and triangles as machine code: exactly what NumPy gives."""

import numpy as np
import pytest

import pullback as pb
from pullback.backends.native import availability
from pullback.backends.native.linking.target import available_widths, forced_width

pytestmark = pytest.mark.skipif(not availability.is_available(), reason="native programs cannot be made here")

X = np.rint(np.random.default_rng(2).normal(size=(3, 19, 21)) * 3)


def check(function, *args):
    for bits in available_widths():
        with forced_width(bits):
            check_here(function, *args)


def check_here(function, *args):
    plan = pb.compile(function, tier="native")
    for _ in range(2):
        found, expected = plan(*args), function(*args)
        for one, other in zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]:
            assert type(one) is type(other)
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)
    assert plan.summary()["fallbacks"] == []


@pytest.mark.sample(every=7)
@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "i8", "?"])
@pytest.mark.parametrize("k", [0, 2, -3, 30, -30])
def test_triangles(k, dtype):
    x = X.astype(dtype)
    check(lambda x: (np.tril(x, k), np.triu(x, k), np.tril(x.transpose(0, 2, 1), k)), x)


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("offset", [0, 2, -2])
def test_diagonals(offset):
    check(lambda x: np.diagonal(x, offset) * 1.0, X)
    check(lambda x: np.diagonal(x, offset, 2, 0) * 1.0, X[:, :, :5].copy())
    check(pb.value_and_grad(lambda x: np.sum(np.diagonal(x, offset, 1, 2) ** 2)), X)
    check(lambda v: np.diag(v, offset), X[0, 0])

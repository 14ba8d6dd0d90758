"""Arrays without elements are left out of native programs."""

import numpy as np
import pytest

import pullback as pb
from pullback.backends.native import availability

pytestmark = pytest.mark.skipif(not availability.is_available(), reason="native programs cannot be made here")

rng = np.random.default_rng(4)
X = rng.normal(size=(4, 4))
NONE = np.zeros(0, int)


def substituted(m):
    """Forward substitution, as it is written in Python."""
    y = np.zeros_like(m[0])
    for i in range(len(m)):
        y[i] = (m[-1, i] - m[i, :i] @ y[:i]) / (3.0 + m[i, i] ** 2)
    return np.sum(y**2)


@pytest.mark.sample(every=3)
@pytest.mark.parametrize(
    "function",
    [
        substituted,
        lambda x: np.sum(x[:, :0] @ x[:0] + np.tanh(x)),
        lambda x: np.sum(np.concatenate([x[:0], x, x[4:], x * 2]) ** 2),
        lambda x: np.sum(np.append(x[:0], x) ** 3),
        lambda x: np.prod(x[:0]) * np.sum(x**2),
        lambda x: np.sum(np.pad(x[:0], 1, constant_values=2.0)) * np.sum(x),
        lambda x: np.sum(pb.numpy.updated(x, slice(2, 2), x[:0]) ** 2),
        lambda x: np.sum(pb.numpy.updated(x, NONE, 7.0) * x),
        lambda x: np.sum(pb.numpy.added(x, slice(4, None), 7.0) * x),
        lambda x: np.sum(pb.scan(lambda h, r: (np.sin(h + np.append(r[:0], r)) + r[:0] @ h[:0], None), x[0], x)[0]),
        lambda x: np.max(x[:0], initial=2.0) * np.sum(x**2),
    ],
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_what_has_elements_is_native(function, dtype):
    gradient = pb.value_and_grad(function)
    plan = pb.compile(gradient, tier="native")
    for x in (X.astype(dtype), X[::-1].astype(dtype)):
        value, slope = gradient(x)
        found, found_slope = plan(x)
        assert (type(found), found_slope.dtype) == (type(value), slope.dtype)
        np.testing.assert_allclose(found, value, rtol=1e-5 if dtype is np.float32 else 1e-12)
        np.testing.assert_allclose(found_slope, slope, rtol=1e-4 if dtype is np.float32 else 1e-12, atol=1e-6)
    assert plan.summary()["fallbacks"] == []


def test_types_and_results_without_elements_stay():
    def function(x):
        return np.concatenate([x.astype(np.float32), x[:0]]), x[:0] * 2, np.sum(x[:0], axis=0)

    found, expected = pb.compile(function, tier="native")(X), function(X)
    for ours, theirs in zip(found, expected, strict=True):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        np.testing.assert_array_equal(ours, theirs)

"""Every key of up to four parts: numbers, slices, new axes, arrays of positions, an ellipsis in each place."""

import itertools

import numpy as np
import pytest

import pullback as pb
from pullback.errors import TracingError

PARTS = {
    "1": 1,
    ":": slice(None),
    "None": None,
    "[1, 0, 0]": np.array([1, 0, 0]),
    "...": ...,
}
X = np.arange(16.0).reshape(2, 2, 2, 2) + 1


def keys(length):
    for names in itertools.product(PARTS, repeat=length):
        if names.count("...") <= 1 and (length < 4 or "..." not in names or "[1, 0, 0]" in names):
            yield names


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5])
def test_reads_and_their_gradients_are_numpys(length):
    """An ellipsis of no axes between two arrays puts their axes first, as one of some axes does."""
    for names in keys(length):
        key = tuple(PARTS[name] for name in names)
        if length == 5 and not ("..." in names and names.count("[1, 0, 0]") >= 2 and "None" not in names):
            continue
        expected = X[key]
        weights = np.arange(1.0, expected.size + 1).reshape(expected.shape)
        value, pullback = pb.vjp(lambda x, key=key: x[key], X)
        np.testing.assert_array_equal(value, expected, err_msg=str(names))
        gradient = np.zeros_like(X)
        np.add.at(gradient, key, weights)
        np.testing.assert_array_equal(pullback(weights)[0], gradient, err_msg=str(names))


@pytest.mark.parametrize("tier", pb.TIERS)
@pytest.mark.parametrize("names", [(":", "[1, 0, 0]", "...", "[1, 0, 0]", "1"), (":", "1", "...", ":", "[1, 0, 0]")])
def test_plans_read_as_the_tape_does(tier, names):
    key = tuple(PARTS[name] for name in names)
    weights = np.arange(1.0, X[key].size + 1).reshape(X[key].shape)
    gradient = np.zeros_like(X)
    np.add.at(gradient, key, weights)
    np.testing.assert_array_equal(pb.compile(pb.grad(lambda x: np.sum(x[key] * weights)), tier=tier)(X), gradient)


def test_a_store_whose_axes_numpy_turns_is_refused():
    def function(x, v):
        y = x.copy()
        y[:, np.array([0, 1]), ..., np.array([0, 1]), 0] = v
        return np.sum(y**2)

    with pytest.raises(TracingError, match=r"'\.\.\.' of no axes"):
        pb.grad(function)(X, np.ones((2, 2)))

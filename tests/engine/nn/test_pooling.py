"""Pooling against means and maxima of windows."""

import numpy as np
import pytest

import pullback as pb
from pullback.rules import pooling

RNG = np.random.default_rng(0)


def pooled(x, window, stride, pad, reduce, fill):
    axes = len(window)
    padded = np.pad(x, ((0, 0), (0, 0), *pad), constant_values=fill)
    windows = np.lib.stride_tricks.sliding_window_view(padded, window, tuple(range(2, 2 + axes)))
    return reduce(
        windows[(..., *(slice(None, None, s) for s in stride), *[slice(None)] * axes)], tuple(range(-axes, 0))
    )


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("pad", [(0, 0), (1, 0)])
@pytest.mark.parametrize("stride", [None, 1])
def test_pools_are_means_and_maxima_of_windows(axes, pad, stride):
    x, window = RNG.normal(size=(2, 3, *(7, 6, 5)[:axes])), (3, 2, 2)[:axes]
    steps = window if stride is None else (stride,) * axes
    mean = pb.nn.mean_pool(x, window, stride=stride, pad=[pad] * axes)
    np.testing.assert_allclose(mean, pooled(x, window, steps, (pad,) * axes, np.mean, 0), atol=1e-14)
    largest = pb.nn.max_pool(x, window, stride=stride, pad=[pad] * axes)
    np.testing.assert_array_equal(largest, pooled(x, window, steps, (pad,) * axes, np.max, -np.inf))


@pytest.mark.parametrize("tier", pb.TIERS)
def test_elements_that_tie_for_a_maximum_share_its_cotangent(tier):
    x = np.array([[[2.0, 2.0, 1.0, 3.0]]])
    with pb.tier(tier):
        gradient = pb.grad(lambda x: np.sum(pb.nn.max_pool(x, 2)))(x)
    np.testing.assert_array_equal(gradient, [[[0.5, 0.5, 0, 1]]])


def test_a_nan_is_the_maximum_of_its_window_and_its_gradient():
    x = np.array([[[np.nan, 1.0, 2.0, 3.0]]])
    y, pullback = pb.vjp(lambda x: pb.nn.max_pool(x, 2), x)
    np.testing.assert_array_equal(y, [[[np.nan, 3]]])
    np.testing.assert_array_equal(pullback(np.ones_like(y))[0], [[[np.nan, 0, 0, 1]]])


def test_padding_is_no_maximum():
    x = -np.ones((1, 1, 3))
    y, pullback = pb.vjp(lambda x: pb.nn.max_pool(x, 2, stride=1, pad=1), x)
    np.testing.assert_array_equal(y, -np.ones((1, 1, 4)))
    np.testing.assert_array_equal(pullback(np.ones_like(y))[0], [[[1.5, 1, 1.5]]])


def test_choosing_and_spreading_are_transposes_of_each_other():
    x = RNG.integers(0, 3, size=(2, 1, 6, 7)).astype(float)  # with ties
    params = {"window": (3, 2), "stride": (1, 2), "pad": ((1, 1), (0, 1))}
    y = pooling.max_pool(x, **params)
    dx, y_bar = RNG.normal(size=x.shape), RNG.normal(size=y.shape)
    dy, x_bar = pooling.max_select(dx, x, y, **params), pooling.max_spread(y_bar, x, y, **params)
    np.testing.assert_allclose(np.sum(dy * y_bar), np.sum(dx * x_bar), rtol=1e-12)
    for rule, first in ((pooling.max_select, dx), (pooling.max_spread, y_bar)):
        pb.testing.check_grads(lambda v, rule=rule: rule(v, x, y, **params), (first,))


def test_pools_keep_precision_and_take_batches():
    x = RNG.normal(size=(3, 2, 4, 8)).astype(np.float32)
    for pool in (pb.nn.mean_pool, pb.nn.max_pool):
        assert pool(x, 2).dtype == np.float32
        ours = pb.vmap(lambda x, pool=pool: pool(x, 2))(x)
        np.testing.assert_array_equal(ours, np.stack([pool(row, 2) for row in x]))
        assert pool(x[:0], 2).shape == (0, 2, 2, 4)
        both = pb.vmap(pb.vmap(lambda row, pool=pool: pool(row[None], 2)[0]))(x[:, None])
        np.testing.assert_array_equal(both[:, 0], pool(x, 2))
    with pytest.raises(TypeError, match="pass real numbers"):
        pb.nn.max_pool(x * 1j, 2)


X2 = np.ones((1, 2, 8, 8))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pb.nn.max_pool(X2, 9), "does not fit into"),
        (lambda: pb.nn.max_pool(X2[0, 0], 2), "with one to three more axes"),
        (lambda: pb.nn.mean_pool(X2, 2, pad=2), "pad less than the window"),
    ],
)
def test_bad_geometry_is_refused_in_one_sentence(call, message):
    with pytest.raises(ValueError, match=message):
        call()

"""Reductions over axes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pullback as pb
from pullback.errors import TracingError

A = np.random.default_rng(0).normal(size=(2, 3, 4))
MASK = np.random.default_rng(1).random((2, 3, 4)) < 0.7
MASK[0, :2] = MASK[1, 2] = MASK[:, 0, 1] = True  # two numbers at least are left along every axis

AXES = [None, 0, -1, (0, 2), (-1, 1), (0, 1, 2)]
OF_AXES = [
    np.sum, np.prod, np.mean, np.var, np.std, np.max, np.min, np.ptp, np.median, np.average,
]  # fmt: skip


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("reduce", OF_AXES, ids=lambda f: f.__name__)
def test_over_axes(reduce, axis, like_numpy):
    like_numpy(lambda a: reduce(a, axis=axis), A)
    if reduce is not np.ptp:
        like_numpy(lambda a: reduce(a, axis=axis, keepdims=True), A, order=1, fused=False)


@pytest.mark.parametrize(
    "function",
    [
        lambda a: np.sum(a, axis=1, initial=3.0),
        lambda a: np.sum(a, where=MASK),
        lambda a: np.sum(a, dtype=np.float64),
        lambda a: np.prod(a, axis=(0, 1), initial=2.0),
        lambda a: np.prod(a, axis=2, where=MASK),
        lambda a: np.mean(a, axis=0, where=MASK),
        lambda a: np.max(a, axis=1, where=MASK, initial=-9.0),
        lambda a: np.min(a, initial=-0.5),
        lambda a: np.var(a, axis=1, ddof=1),
        lambda a: np.std(a, axis=(0, 2), ddof=2, keepdims=True),
        lambda a: np.var(a, axis=0, where=MASK),
        lambda a: np.var(a, axis=0, correction=1),
        lambda a: np.average(a, axis=1, weights=np.array([1.0, 2.0, 3.0])),
        lambda a: np.average(a, weights=np.abs(A)),
        lambda a: np.average(a, axis=(0, 1), weights=np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), keepdims=True),
        lambda a: np.average(a, axis=2, weights=np.abs(A) + a * a, returned=True),
        lambda a: np.average(a, axis=1, returned=True),
        lambda a: np.add.reduce(a),
        lambda a: np.add.reduce(a, axis=(0, 1)),
        lambda a: np.multiply.reduce(a, axis=1, keepdims=True),
        lambda a: np.maximum.reduce(a),
        lambda a: np.minimum.reduce(a, axis=-1),
        lambda a: a.sum(axis=1).mean() + a.max(0).min() + a.std() + a.var(ddof=1) + a.prod(),
        lambda a: np.log(np.sum(np.exp(a - np.max(a, axis=-1, keepdims=True)), axis=-1)) + np.max(a, axis=-1),
        lambda a: a * np.count_nonzero(a > 0) + np.any(a > 2) - np.all(a < 0) + (a > 0).sum(),
    ],
)
def test_options(function, like_numpy):
    like_numpy(function, A)


@pytest.mark.parametrize("axis", [None, 1, (0, 2)])
@pytest.mark.parametrize(
    "reduce", [np.nansum, np.nanprod, np.nanmean, np.nanvar, np.nanstd, np.nanmax, np.nanmin, np.nanmedian],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_holes_are_left_out(reduce, axis, like_numpy):
    like_numpy(lambda a: reduce(np.where(MASK, a, np.nan), axis=axis), A)


def test_a_product_with_zeros_is_right_to_the_second_order(like_numpy):
    like_numpy(lambda a: np.prod(a), np.array([2.0, 0.0, 3.0]))
    like_numpy(lambda a: np.prod(a, axis=1), np.array([[2.0, 0.0, 0.0], [0.0, 1.0, 2.0]]))
    np.testing.assert_array_equal(pb.grad(np.prod)(np.array([2.0, 0.0, 3.0])), [0.0, 6.0, 0.0])


def test_equal_extrema_share_equally():
    x = np.array([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]])
    np.testing.assert_allclose(pb.grad(lambda a: np.sum(np.max(a, axis=1)))(x), [[0, 0.5, 0.5], [1 / 3] * 3])
    np.testing.assert_allclose(pb.grad(np.min)(x), [[1, 0, 0], [0, 0, 0]])
    value, tangent = pb.jvp(np.max, (x,), (np.array([[0.0, 1.0, 3.0], [0.0, 0.0, 0.0]]),))
    assert (value, tangent) == (3.0, 2.0)


def test_nothing_to_reduce():
    assert pb.grad(lambda a: np.sum(a) + np.prod(a))(np.zeros(0)).shape == (0,)
    with pytest.raises(ValueError, match="zero-size"):
        pb.grad(np.max)(np.zeros(0))


@pytest.mark.parametrize("reduce", [np.sum, np.prod, np.mean, np.max, np.var, np.all])
def test_out_is_refused(reduce):
    with pytest.raises(TracingError, match="out"):
        pb.grad(lambda a: np.sum(reduce(a, out=np.zeros(()))))(A)


@settings(max_examples=60, deadline=None)
@given(
    shape=st.lists(st.integers(1, 3), min_size=1, max_size=3),
    data=st.data(),
    reduce=st.sampled_from([np.sum, np.prod, np.mean, np.max, np.min, np.var]),
    keepdims=st.booleans(),
)
def test_any_axes(shape, data, reduce, keepdims):
    ndim = len(shape)
    axes = data.draw(st.lists(st.integers(-ndim, ndim - 1), unique_by=lambda axis: axis % ndim, max_size=ndim))
    x = np.random.default_rng(sum(shape)).normal(size=shape)
    pb.testing.check_grads(lambda a: reduce(a, axis=tuple(axes), keepdims=keepdims) * 1.0, (x,), order=1)
    value = pb.vjp(lambda a: reduce(a, axis=tuple(axes), keepdims=keepdims) * 1.0, x)[0]
    np.testing.assert_allclose(value, reduce(x, axis=tuple(axes), keepdims=keepdims))

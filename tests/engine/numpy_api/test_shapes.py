"""Shapes, order, repetition, splitting and padding."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pullback as pb
from pullback.errors import TracingError

A = np.random.default_rng(0).normal(size=(2, 3, 4))
M = A[0]
V = M[0]

RESHAPING = [
    lambda a: np.reshape(a, (6, 4)),
    lambda a: np.reshape(a, -1),
    lambda a: a.reshape(4, -1),
    lambda a: a.reshape((4, 6), order="F"),
    lambda a: np.ravel(a),
    lambda a: a.ravel("F"),
    lambda a: a.flatten(),
    lambda a: np.expand_dims(a, (0, -1)),
    lambda a: np.squeeze(np.expand_dims(a, (0, 2))),
    lambda a: np.expand_dims(a, 1).squeeze(axis=1),
    lambda a: np.transpose(a),
    lambda a: a.transpose(2, 0, 1),
    lambda a: a.transpose((1, 0, 2)),
    lambda a: np.permute_dims(a, (-1, 0, 1)),
    lambda a: a.T,
    lambda a: a.mT,
    lambda a: np.matrix_transpose(a),
    lambda a: a.swapaxes(0, -1),
    lambda a: np.moveaxis(a, 0, -1),
    lambda a: np.moveaxis(a, (0, 2), (1, 0)),
    lambda a: np.rollaxis(a, 2),
    lambda a: np.rollaxis(a, 0, 3),
    lambda a: np.broadcast_to(a, (5, 2, 3, 4)),
    lambda a: np.broadcast_arrays(a, a[:1, :, :1], np.ones(4)),
    lambda a: np.atleast_1d(a[0, 0, 0]),
    lambda a: np.atleast_2d(a[0, 0]),
    lambda a: np.atleast_3d(a[0, 0], a[0]),
    lambda a: a.astype(np.float64) + np.copy(a) + a.copy(),
    lambda a: np.astype(a, np.float64),
    lambda a: np.resize(a, (5, 7)),
]
REARRANGING = [
    np.flip,
    np.flipud,
    np.fliplr,
    lambda a: np.flip(a, (0, -1)),
    np.rot90,
    lambda a: np.rot90(a, 2),
    lambda a: np.rot90(a, -1, (1, 2)),
    lambda a: np.rot90(a, 4, (0, 2)),
    lambda a: np.roll(a, 5),
    lambda a: np.roll(a, -1, axis=1),
    lambda a: np.roll(a, (1, 2), axis=(0, 2)),
    lambda a: np.roll(a, 1, axis=(0, 1)),
    lambda a: a.trace(1, 0, 2),
    lambda a: np.lib.stride_tricks.sliding_window_view(a, 2, axis=1),
    lambda a: np.lib.stride_tricks.sliding_window_view(a[0], (2, 3)) ** 2,
    lambda a: np.tile(a, 2),
    lambda a: np.tile(a, (2, 1, 3)),
    lambda a: np.tile(a, (2, 1, 1, 2)),
    lambda a: np.repeat(a, 2),
    lambda a: np.repeat(a, 3, axis=1),
    lambda a: a.repeat([1, 0, 2], axis=1),
    lambda a: np.split(a, 2, axis=2),
    lambda a: np.array_split(a, 3, axis=2),
    lambda a: np.split(a, [1, 3], axis=-1),
    lambda a: np.hsplit(a, 3),
    lambda a: np.vsplit(a, 2),
    lambda a: np.dsplit(a, [1]),
    lambda a: np.unstack(a, axis=1),
    lambda a: np.delete(a, 1, axis=1),
    lambda a: np.delete(a, [0, 2], axis=2),
    lambda a: np.delete(a, slice(1, 5)),
    lambda a: np.insert(a, 1, 9.0, axis=2),
    lambda a: np.insert(a, [0, 2], a[:, :2], axis=1),
    lambda a: np.insert(a, 1, a[:, 0], axis=1),
    lambda a: np.insert(a[0, 0], 2, [1.0, 2.0]),
    lambda a: np.insert(a[0, 0], [1, 3], a[1, 0, :2]),
]
PADDING = [
    lambda a: np.pad(a, 1),
    lambda a: np.pad(a, ((1, 2), (0, 0), (3, 1))),
    lambda a: np.pad(a, (1, 2), constant_values=3.0),
    lambda a: np.pad(a[0], ((1, 1), (0, 2)), constant_values=((1.0, 2.0), (3.0, 4.0))),
    lambda a: np.pad(a[0, 0], (0, 2)),
    lambda a: np.pad(a[0], {-1: 2}),
    *(
        lambda a, mode=mode: np.pad(a, ((1, 1), (2, 1), (5, 4)), mode=mode)
        for mode in ("edge", "reflect", "symmetric", "wrap", "maximum", "minimum", "mean", "median")
    ),
]


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("function", RESHAPING)
def test_reshaping(function, like_numpy):
    like_numpy(function, A)


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("function", REARRANGING)
def test_rearranging(function, like_numpy):
    like_numpy(function, A)


@pytest.mark.parametrize("function", PADDING)
def test_padding(function, like_numpy):
    like_numpy(function, A)


def test_pads_may_be_traced():
    weights = np.arange(30.0).reshape(5, 6)
    gradient = pb.grad(lambda c: np.sum(np.pad(pb.numpy.asarray(M) + 0 * c, 1, constant_values=c) * weights))(2.0)
    assert gradient == np.sum(weights) - np.sum(weights[1:-1, 1:-1])


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (lambda a: np.reshape(a, (5, 5)), ValueError, "cannot reshape"),
        (lambda a: np.squeeze(a, axis=0), ValueError, "not one"),
        (lambda a: np.split(a, 5), ValueError, "equal parts"),
        (lambda a: np.lib.stride_tricks.sliding_window_view(a, 9, axis=1), ValueError, "a window of 9 does not fit"),
        (lambda a: np.transpose(a, (0, 1)), ValueError, "axes"),
        (lambda a: np.pad(a, 1, mode="linear_ramp"), TracingError, "linear_ramp"),
        (lambda a: a.item(), TracingError, "item"),
        (lambda a: a.fill(0), TracingError, "argument"),
        (lambda a: a.sort(), TracingError, "argument"),
        (lambda a: list(a[0, 0, 0]), TypeError, "iteration"),
    ],
)
def test_what_cannot_be_says_so(function, error, message):
    with pytest.raises(error, match=message):
        pb.vjp(function, A)


def test_attributes():
    def function(a):
        assert (a.shape, a.ndim, a.size, a.itemsize, a.nbytes, len(a)) == ((2, 3, 4), 3, 24, 8, 192, 2)
        assert np.shape(a) == a.shape
        assert np.ndim(a) == 3
        assert np.size(a, 1) == 3
        assert 7.5 not in a
        assert [row.shape for row in a] == [(3, 4)] * 2
        return np.sum(a.real + a.imag)

    np.testing.assert_array_equal(pb.grad(function)(A), np.ones_like(A))


@settings(max_examples=60, deadline=None)
@given(
    shape=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    data=st.data(),
    mode=st.sampled_from(["constant", "edge", "reflect", "symmetric", "wrap"]),
)
def test_any_padding(shape, data, mode):
    widths = data.draw(
        st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=len(shape), max_size=len(shape))
    )
    x = np.random.default_rng(1).normal(size=shape)
    np.testing.assert_array_equal(pb.vjp(lambda a: np.pad(a, widths, mode=mode), x)[0], np.pad(x, widths, mode=mode))
    pb.testing.check_grads(lambda a: np.pad(a, widths, mode=mode), (x,), order=1)


@pytest.mark.parametrize(("window", "axis"), [(2, 0), (3, -1), ((2, 3), None), ((2, 2), (1, 1)), ((1, 4), (0, 1))])
def test_sliding_windows(window, axis):
    x = np.random.default_rng(0).normal(size=(4, 6))

    def windows(x):
        return np.lib.stride_tricks.sliding_window_view(x, window, axis)

    value, _ = pb.vjp(windows, x)
    assert np.array_equal(value, windows(x))
    pb.testing.check_grads(windows, [x])


def test_a_window_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match=r"a window of 7 does not fit into axis 0 of \(4,\)"):
        pb.grad(lambda x: np.sum(np.lib.stride_tricks.sliding_window_view(x, 7)))(np.ones(4))


@pytest.mark.parametrize("dtype", ["?", "i1", "u8", "f2"])
@pytest.mark.parametrize("mode", ["mean", "median", "maximum"])
def test_padding_with_statistics_keeps_the_dtype(mode, dtype):
    for numbers in ([[0, 1, 2], [1, 4, 3]], [[0, 1], [3, 4]]):
        x = np.array(numbers).astype(dtype)
        result = pb.compile(lambda x: np.pad(x, ((1, 0), (1, 2)), mode=mode), tier="fused")(x)
        expected = np.pad(x, ((1, 0), (1, 2)), mode=mode)
        np.testing.assert_array_equal(result, expected)
        assert result.dtype == expected.dtype

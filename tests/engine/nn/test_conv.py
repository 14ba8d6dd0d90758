"""Convolutions against plain sums over windows."""

from itertools import product

import numpy as np
import pytest

import pullback as pb
from pullback.rules import convolution, window_products
from pullback.rules.sliding import SlidingWindow
from pullback_runners.allocations.arrays import ArrayCounter

RNG = np.random.default_rng(0)


def convolved(w, x, stride, pad, dilation, groups):
    """The definition, one number at a time."""
    padded = np.pad(x, ((0, 0), (0, 0), *pad))
    spans = [d * (k - 1) + 1 for d, k in zip(dilation, w.shape[2:], strict=True)]
    out = [(size - span) // s + 1 for size, span, s in zip(padded.shape[2:], spans, stride, strict=True)]
    y = np.zeros((x.shape[0], w.shape[0], *out), np.result_type(w, x))
    per_group, channels = w.shape[0] // groups, w.shape[1]
    for n, o, place in product(range(x.shape[0]), range(w.shape[0]), np.ndindex(*out)):
        first = o // per_group * channels
        window = tuple(
            slice(t * s, t * s + span, d) for t, s, span, d in zip(place, stride, spans, dilation, strict=True)
        )
        y[(n, o, *place)] = np.sum(w[o] * padded[(n, slice(first, first + channels), *window)])
    return y


GEOMETRIES = [
    (axes, stride, pad, dilation, groups)
    for axes in (1, 2, 3)
    for stride, pad, dilation, groups in product((1, 2), ((0, 0), (1, 2)), (1, 2), (1, 2))
]


@pytest.mark.sample(every=7)
@pytest.mark.parametrize(("axes", "stride", "pad", "dilation", "groups"), GEOMETRIES)
@pytest.mark.parametrize("column_bytes", [window_products.COLUMN_BYTES, 300], ids=["blocks", "bands"])
def test_convolutions_and_their_transposes_are_right(axes, stride, pad, dilation, groups, column_bytes, monkeypatch):
    monkeypatch.setattr(window_products, "COLUMN_BYTES", column_bytes)
    w = RNG.normal(size=(4, 3, *(2, 3, 2)[:axes]))
    x = RNG.normal(size=(3, 3 * groups, *(5, 7, 4)[:axes]))
    params = {"stride": (stride,) * axes, "pad": (pad,) * axes, "dilation": (dilation,) * axes, "groups": groups}
    y = pb.nn.conv(w, x, stride=stride, pad=[pad] * axes, dilation=dilation, groups=groups)
    np.testing.assert_allclose(y, convolved(w, x, **params), atol=1e-12)
    y_bar = RNG.normal(size=y.shape)
    x_bar = convolution.conv_data_gradient(w, y_bar, size=x.shape[2:], **params)
    w_bar = convolution.conv_weight_gradient(y_bar, x, kernel=w.shape[2:], **params)
    for bar, operand in ((x_bar, x), (w_bar, w)):
        assert bar.shape == operand.shape
        np.testing.assert_allclose(np.sum(bar * operand), np.sum(y_bar * y), rtol=1e-10)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.complex128, np.int64])
def test_dtypes_are_kept(dtype):
    w, x = (RNG.integers(-3, 4, size=shape).astype(dtype) for shape in ((2, 3, 3), (2, 3, 8)))
    if dtype is np.complex128:
        w = w + 1j * w[::-1]
    y = pb.nn.conv(w, x, pad=1)
    assert y.dtype == dtype
    np.testing.assert_allclose(y, convolved(w, x, (1,), ((1, 1),), (1,), 1))


def test_half_precision_is_summed_in_single():
    w, x = np.full((1, 1000, 1), 0.1, np.float16), np.ones((1, 1000, 2), np.float16)
    exact = 1000 * float(np.float16(0.1))
    assert pb.nn.conv(w, x).dtype == np.float16
    np.testing.assert_allclose(pb.nn.conv(w, x).astype(float), exact, rtol=1e-3)


def test_flipped_is_the_convolution_of_mathematics():
    w, x = RNG.normal(size=3), RNG.normal(size=7)
    y = pb.nn.conv(w[None, None], x[None, None], pad=2, flipped=True)[0, 0]
    np.testing.assert_allclose(y, np.convolve(w, x))
    pb.testing.check_grads(lambda w, x: pb.nn.conv(w, x, pad=2, flipped=True), (w[None, None], x[None, None]))


@pytest.mark.parametrize(
    ("w_shape", "x_shape"),
    [((2, 3, 3), (0, 3, 5)), ((0, 3, 3), (2, 3, 5)), ((2, 0, 3), (2, 0, 5))],
    ids=["no examples", "no outputs", "no channels"],
)
def test_nothing_convolves_to_nothing(w_shape, x_shape):
    w, x = np.ones(w_shape), np.ones(x_shape)
    y, pullback = pb.vjp(pb.nn.conv, w, x)
    assert y.shape == (x_shape[0], w_shape[0], 3)
    w_bar, x_bar = pullback(np.ones_like(y))
    assert (w_bar.shape, x_bar.shape) == (w_shape, x_shape)
    assert not y.any()
    assert not x_bar.any()
    assert not w_bar.any()


def test_beside_the_result_only_a_buffer_of_bounded_size_is_made():
    w, x = np.ones((16, 16, 3, 3), np.float32), np.ones((8, 16, 64, 64), np.float32)
    counter = ArrayCounter()
    with counter.window():
        y = pb.nn.conv(w, x)
        peak = counter.read().peak_bytes
    assert peak - y.nbytes <= window_products.COLUMN_BYTES + w.nbytes
    assert 9 * x.nbytes > 20 * window_products.COLUMN_BYTES  # what all windows at once would take


def test_a_pointwise_convolution_copies_nothing():
    w, x = np.ones((4, 16, 1, 1), np.float32), np.ones((2, 16, 64, 64), np.float32)
    counter = ArrayCounter()
    with counter.window():
        y = pb.nn.conv(w, x)
        assert counter.read().peak_bytes == y.nbytes


def test_a_constant_operand_costs_nothing_in_reverse():
    w, x = RNG.normal(size=(2, 1, 3)), RNG.normal(size=(2, 1, 8))
    with pb.debug.counting() as counts:
        pb.grad(lambda w: np.sum(pb.nn.conv(w, x)))(w)
    assert counts.evaluated["conv_weight_gradient"] == 1
    assert counts.evaluated["conv_data_gradient"] == 0


def test_batches_of_everything_become_larger_batches_and_groups():
    w, x = RNG.normal(size=(5, 4, 2, 3)), RNG.normal(size=(5, 2, 4, 8))
    layer = lambda w, x: pb.nn.conv(w, x, stride=2, groups=2)  # noqa: E731
    for axes in ((0, 0), (0, None), (None, 0)):
        rows = [layer(w[i] if axes[0] == 0 else w[0], x[i] if axes[1] == 0 else x[0]) for i in range(5)]
        ours = pb.vmap(layer, in_axes=axes)(w if axes[0] == 0 else w[0], x if axes[1] == 0 else x[0])
        np.testing.assert_allclose(ours, np.stack(rows), atol=1e-12)
    gradients = pb.vmap(pb.grad(lambda w, x: np.sum(layer(w, x) ** 2), wrt=(0, 1)))(w, x)
    for i in range(5):
        one = pb.grad(lambda w, x: np.sum(layer(w, x) ** 2), wrt=(0, 1))(w[i], x[i])
        np.testing.assert_allclose(gradients[0][i], one[0], atol=1e-12)
        np.testing.assert_allclose(gradients[1][i], one[1], atol=1e-12)


W2, X2 = np.ones((4, 2, 3, 3)), np.ones((1, 2, 8, 8))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pb.nn.conv_bias_act(W2, X2[0]), r"one example without a batch; pass x\[None\] and take y\[0\]"),
        (lambda: pb.nn.conv(W2, X2[:, :1]), "does not fit x of shape .* in 1 groups"),
        (lambda: pb.nn.conv(W2, X2, groups=3), "in 3 groups"),
        (lambda: pb.nn.conv(W2[0], X2), "does not fit"),
        (lambda: pb.nn.conv(W2[..., 0, 0], X2[..., 0, 0]), "with one to three more axes"),
        (lambda: pb.nn.conv(W2, X2, stride=0), "stride is one whole number of at least 1, or 2 of them, got 0"),
        (lambda: pb.nn.conv(W2, X2, pad=(1, 2, 3)), "pad is one number, or 2 numbers or pairs"),
        (lambda: pb.nn.conv(W2, X2, pad=-1), "at least 0"),
        (lambda: pb.nn.conv(W2, X2, dilation=(1, True)), "dilation is one whole number"),
        (lambda: pb.nn.conv(W2, X2, dilation=8), "does not fit into"),
        (lambda: pb.nn.conv_bias_act(W2, X2, np.ones(3)), r"bias of shape \(3,\) .* give it shape \(4,\)"),
        (lambda: pb.nn.conv_bias_act(W2, X2, np.ones((4, 1))), r"give it shape \(4,\)"),
    ],
)
def test_bad_geometry_is_refused_in_one_sentence(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_the_geometry_counts_places_as_the_definition_does():
    sliding = SlidingWindow((7, 8), (3, 2), (2, 3), ((1, 0), (0, 2)), (1, 3))
    assert sliding.padded == (8, 10)
    assert sliding.out == (3, 3)

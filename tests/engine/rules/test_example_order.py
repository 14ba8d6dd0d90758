"""Layers whose examples lie side by side compute what they compute in NumPy's order."""

from math import prod

import numpy as np
import pytest

import pullback as pb
from pullback.rules import convolution, pooling, window_products
from pullback.rules.activations import relu
from pullback.rules.conv_layer import conv_bias_act
from pullback.rules.example_order import examples_first, examples_last, is_lined, laid
from pullback.rules.trigonometric import tanh
from pullback_runners.allocations.arrays import ArrayCounter

RNG = np.random.default_rng(0)


def lined(a):
    """The same values, the examples side by side."""
    return examples_first(np.ascontiguousarray(examples_last(a)))


def test_the_order_is_seen_and_made():
    a = RNG.normal(size=(3, 2, 4))
    assert not is_lined(a)
    assert is_lined(lined(a))
    np.testing.assert_array_equal(lined(a), a)
    assert not is_lined(lined(a)[:2])  # there are gaps
    assert not is_lined(a[:1])  # one example lies either way
    assert not is_lined(np.ones((3, 4)).T)  # a matrix on its side is no batch
    assert is_lined(laid(a, lined=True))
    assert np.shares_memory(laid(a, lined=True), a)
    assert laid(a, lined=False) is a


GEOMETRIES = {
    "plain": ((2, 3, 3, 2), (3, 7, 6), {}),
    "strides, padding, dilation, groups": (
        (4, 2, 3, 2),
        (4, 8, 7),
        {"stride": (2, 1), "pad": ((1, 0), (2, 1)), "dilation": (1, 2), "groups": 2},
    ),
    "one axis": ((3, 2, 4), (2, 9), {"stride": (2,)}),
    "three axes": ((2, 2, 2, 1, 3), (2, 4, 3, 5), {"pad": ((0, 1), (0, 0), (1, 1))}),
    "more outputs than elements": ((9, 1, 2, 2), (1, 5, 5), {}),
}


def full(params, axes):
    plain = {"stride": (1,) * axes, "pad": ((0, 0),) * axes, "dilation": (1,) * axes, "groups": 1}
    return {**plain, **params}


# How many examples the buffer holds windows of one row of; whether the results lie side by side then.
ROOM = {
    "everything": (10_000, True),
    "a row of all": (140, True),
    "a row of half": (70, True),
    "a row of some": (20, False),
}


@pytest.mark.parametrize(("w_shape", "x_shape", "given"), GEOMETRIES.values(), ids=GEOMETRIES)
@pytest.mark.parametrize(("room", "lies_so"), ROOM.values(), ids=ROOM)
@pytest.mark.parametrize("x_order", [np.ascontiguousarray, lined], ids=["rows", "lined"])
def test_layers_and_their_gradients(w_shape, x_shape, given, room, lies_so, x_order, monkeypatch):
    w, x, b = RNG.normal(size=w_shape), RNG.normal(size=(131, *x_shape)), RNG.normal(size=w_shape[0])
    params = full(given, len(x_shape) - 1)
    column = b.reshape(-1, *[1] * (len(x_shape) - 1))
    expected = np.tanh(convolution.conv(w, x, **params) + column)
    y_bar = RNG.normal(size=expected.shape)
    x_bar = convolution.conv_data_gradient(w, y_bar, size=x.shape[2:], **params)
    w_bar = convolution.conv_weight_gradient(y_bar, x, kernel=w.shape[2:], **params)

    row = w.itemsize * w[0].size * params["groups"] * prod(expected.shape[3:])
    monkeypatch.setattr(window_products, "COLUMN_BYTES", row * room)
    y = conv_bias_act(w, x_order(x), b, act=tanh, **params)
    np.testing.assert_allclose(y, expected, atol=1e-13)
    copied = "pad" in given
    assert is_lined(y) == lies_so or copied or x_order is not lined  # the copy may not fit
    got = convolution.conv_data_gradient(w, lined(y_bar), size=x.shape[2:], **params)
    np.testing.assert_allclose(got, x_bar, atol=1e-12)
    assert is_lined(got) == lies_so or copied
    got = convolution.conv_weight_gradient(lined(y_bar), x_order(x), kernel=w.shape[2:], **params)
    np.testing.assert_allclose(got, w_bar, atol=1e-11)


@pytest.mark.parametrize(("examples", "lies_so"), [(1, False), (15, False), (16, True)])
def test_few_examples_lie_as_they_always_did(examples, lies_so):
    y = conv_bias_act(np.ones((2, 1, 3)), np.ones((examples, 1, 8)), act=tanh, **full({}, 1))
    assert is_lined(y) == lies_so
    assert y.flags.c_contiguous != lies_so


def test_a_copy_that_would_not_fit_the_buffer_is_not_made():
    w, x = np.ones((2, 8, 3, 3), np.float32), np.ones((32, 8, 32, 64), np.float32)
    params = full({"pad": ((1, 1), (1, 1))}, 2)
    counter = ArrayCounter()
    with counter.window():
        y = conv_bias_act(w, x, act=relu, **params)
        peak = counter.read().peak_bytes
    assert not is_lined(y)
    assert peak - y.nbytes <= 1.1 * window_products.COLUMN_BYTES


def test_products_of_many_columns_are_computed_in_pieces(monkeypatch):
    w, x = RNG.normal(size=(4, 3, 5)), RNG.normal(size=(40, 3, 90))
    expected = convolution.conv(w, x, **full({}, 1))
    monkeypatch.setattr(window_products, "SMALL_PRODUCT", w.size * window_products.FEWEST_COLUMNS)
    np.testing.assert_allclose(convolution.conv(w, x, **full({}, 1)), expected, atol=1e-13)
    x_bar = convolution.conv_data_gradient(w, expected, size=(90,), **full({}, 1))
    np.testing.assert_allclose(np.sum(x_bar * x), np.sum(expected**2))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble, np.complex64])
def test_dtypes_are_kept(dtype):
    parts = [RNG.integers(-2, 3, size=shape) for shape in ((2, 3, 3), (20, 3, 8), (20, 2, 6))]
    w, x, y_bar = (part.astype(dtype) for part in parts)
    params = full({}, 1)
    pairs = [
        (convolution.conv_data_gradient, (w, y_bar), (w, lined(y_bar)), {"size": (8,)}),
        (convolution.conv_weight_gradient, (y_bar, x), (lined(y_bar), lined(x)), {"kernel": (3,)}),
    ]
    for rule, operands, lined_operands, more in pairs:
        expected, got = rule(*operands, **more, **params), rule(*lined_operands, **more, **params)
        assert got.dtype == dtype
        np.testing.assert_allclose(got, expected, rtol=1e-3 if dtype == np.float16 else 1e-6)
    if np.dtype(dtype).kind == "f":
        y = conv_bias_act(w, x, np.ones(2, dtype), act=relu, **params)
        assert y.dtype == dtype
        np.testing.assert_array_equal(y, np.maximum(convolution.conv(w, x, **params) + dtype(1), 0))


@pytest.mark.parametrize("bias", [np.float64, np.float32])
def test_a_bias_of_more_precision_gives_the_result_its_own(bias):
    w, x = RNG.normal(size=(2, 1, 3)).astype(np.float32), RNG.normal(size=(20, 1, 8)).astype(np.float32)
    y = conv_bias_act(w, x, np.full(2, 0.1, bias), act=tanh, **full({}, 1))
    assert y.dtype == bias


POOLS = {
    "tiles": {"window": (2, 2), "stride": (2, 2), "pad": ((0, 0), (0, 0))},
    "overlapping, padded": {"window": (3, 2), "stride": (1, 2), "pad": ((1, 1), (0, 1))},
    "many elements": {"window": (3, 4), "stride": (3, 2), "pad": ((0, 0), (0, 0))},
    "single elements": {"window": (1, 1), "stride": (1, 1), "pad": ((0, 0), (0, 0))},
    "gaps": {"window": (1, 2), "stride": (2, 3), "pad": ((0, 0), (0, 0))},
}


@pytest.mark.parametrize("params", POOLS.values(), ids=POOLS)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.longdouble])
@pytest.mark.parametrize("holes", [0, 9])
def test_pools_and_their_gradients(params, dtype, holes):
    x = RNG.integers(0, 3, size=(5, 2, 6, 8)).astype(dtype)  # with ties
    x.reshape(-1)[RNG.integers(0, x.size, size=holes)] = np.nan
    x.reshape(-1)[RNG.integers(0, x.size, size=3)] = np.inf
    y = pooling.max_pool(x, **params)
    v, dx = RNG.normal(size=y.shape).astype(dtype), RNG.normal(size=x.shape).astype(dtype)
    x_lined, y_lined = lined(x), pooling.max_pool(lined(x), **params)
    assert is_lined(y_lined)
    np.testing.assert_array_equal(y_lined, y)
    spread = pooling.max_spread(lined(v), x_lined, y_lined, **params)
    assert is_lined(spread)
    np.testing.assert_array_equal(spread, pooling.max_spread(v, x, y, **params))
    selected = pooling.max_select(lined(dx), x_lined, y_lined, **params)
    np.testing.assert_array_equal(selected, pooling.max_select(dx, x, y, **params))
    for other in (v, lined(v)):  # orders that differ
        np.testing.assert_array_equal(pooling.max_spread(other, x_lined, y, **params), spread)
    means = pooling.mean_pool(x_lined, **params)
    np.testing.assert_array_equal(means, pooling.mean_pool(x, **params))
    spread = pooling.mean_spread(lined(v), size=x.shape[2:], **params)
    np.testing.assert_array_equal(spread, pooling.mean_spread(v, size=x.shape[2:], **params))


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("act", ["relu", "tanh", "swish", "identity"])
@pytest.mark.parametrize("examples", [3, 40])
def test_networks_have_the_same_gradients_in_all_tiers(act, examples):
    x = RNG.normal(size=(examples, 2, 9, 9))
    w1, b1, w2, b2 = (RNG.normal(size=shape) for shape in ((4, 2, 3, 3), 4, (3, 4, 2, 2), 3))

    def loss(w1, b1, w2, b2, x):
        h = pb.nn.max_pool(pb.nn.conv_bias_act(w1, x, b1, act=act, pad=1), 3, stride=2)
        h = pb.nn.mean_pool(pb.nn.conv_bias_act(w2, h, b2, act=act, stride=2), 2, stride=1)
        return np.sum(np.reshape(h, (examples, -1)).T ** 2)

    gradient = pb.value_and_grad(loss, wrt=("w1", "b1", "w2", "b2", "x"))
    expected, expected_bars = gradient(w1, b1, w2, b2, x)
    for tier in pb.TIERS[1:]:
        plan = pb.compile(gradient, tier=tier)
        for _ in range(2):
            value, bars = plan(w1, b1, w2, b2, x)
            np.testing.assert_allclose(value, expected, rtol=1e-12)
            for bar, wanted in zip(bars, expected_bars, strict=True):
                np.testing.assert_allclose(bar, wanted, rtol=1e-10, atol=1e-10)


def test_an_activation_over_a_layer_makes_one_array_whatever_the_order():
    x = lined(RNG.normal(size=(64, 4, 20, 20)))
    counter = ArrayCounter()
    with counter.window():
        y = pb.nn.gelu(x)
        peak = counter.read().peak_bytes
    assert is_lined(y)
    assert peak < 1.2 * y.nbytes
    np.testing.assert_array_equal(y, pb.nn.gelu(np.ascontiguousarray(x)))

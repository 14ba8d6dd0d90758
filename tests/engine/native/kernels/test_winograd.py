"""Convolutions of 3 x 3 by Winograd tiles, and directly: the same tests for both."""

from itertools import product

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

from pullback.backends.native import availability
from pullback.backends.native.linking import forced_width
from pullback.backends.native.linking.target import available_widths
from pullback.rules.convolution import conv, conv_data_gradient

if not availability.is_available():
    pytest.skip(str(availability.why_not()), allow_module_level=True)

from pullback.backends.native.emission import StoredArray
from pullback.backends.native.kernels import convolutions
from pullback.backends.native.kernels.convolution.correlation import forward
from pullback.backends.native.kernels.convolution.winograd import correlation_kernel
from pullback.backends.native.kernels.convolution.winograd.plans import make_winograd_plan
from pullback.core.types import type_of
from pullback.rules.sliding import SlidingWindow

A = np.array([[1, 0], [1, 1], [1, -1], [0, -1]], float)
B = np.array([[1, 0, 0, 0], [0, 1, -1, 1], [-1, 1, 1, 0], [0, 0, 0, -1]], float)
G = np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]])


@pytest.fixture(params=["by Winograd tiles", "directly"])
def way(request, monkeypatch):
    """Every convolution in one way, whether it pays or not."""
    by_winograd = request.param == "by Winograd tiles"
    monkeypatch.setattr(convolutions, "winograd_that_pays", make_winograd_plan if by_winograd else lambda *_: None)
    return request.param


def both_ways(matrix, values):
    """A linear combination along the last two axes."""
    return np.einsum("ik,...kl,jl->...ij", matrix, values, matrix)


def padded(x, pad):
    """With zeros around, and behind the last row and column that the last tile meets."""
    wide = np.pad(x, ((0, 0), (0, 0), *pad))
    return np.pad(wide, ((0, 0), (0, 0), *((0, (size - 2) % 2) for size in wide.shape[2:])))


def input_tiles(x, pad):
    """4 x 4 numbers for each tile."""
    return sliding_window_view(padded(x, pad), (4, 4), axis=(2, 3))[:, :, ::2, ::2]


def largest_error(w, x, pad):
    """What errors of a convolution by Winograd tiles are in proportion to: the magnitudes of all that is added up."""
    terms = np.einsum("oiab,nipqab->nopqab", both_ways(abs(G), abs(w)), both_ways(abs(B).T, abs(input_tiles(x, pad))))
    tiles = both_ways(abs(A).T, terms)
    rows, columns = (size + sum(own) - 2 for size, own in zip(x.shape[2:], pad, strict=True))
    n, o, p, q = tiles.shape[:4]
    return tiles.transpose(0, 1, 2, 4, 3, 5).reshape(n, o, 2 * p, 2 * q)[:, :, :rows, :columns]


def params_of(pad):
    return {"stride": (1, 1), "pad": pad, "dilation": (1, 1), "groups": 1}


def numbers(shape, dtype, *, strided=False):
    """Of about the same magnitude, so that no tile is in doubt."""
    random = np.random.default_rng(sum(shape))
    shape = (*shape[:-1], 2 * shape[-1]) if strided else shape
    values = random.uniform(1, 2, shape) * random.choice([-1, 1], shape)
    return values.astype(dtype)[..., :: 2 if strided else 1]


def check(run_node, x_shape, outs, dtype, pad, *, strided=False):
    """The convolution and its transpose to the data, against float64 or longer."""
    precise = np.longdouble if dtype == "f8" else np.float64
    params = params_of(pad)
    out = [size + sum(own) - 2 for size, own in zip(x_shape[2:], pad, strict=True)]
    w = numbers((outs, x_shape[1], 3, 3), dtype, strided=strided)
    x = numbers(x_shape, dtype, strided=strided)
    y = numbers((x_shape[0], outs, *out), dtype, strided=strided)
    flipped = w.swapaxes(0, 1)[:, :, ::-1, ::-1]
    rest = [(2 - low, 2 - high) for low, high in pad]
    for primitive, operands, more, scale in (
        (conv, (w, x), {}, largest_error(w, x, pad)),
        (conv_data_gradient, (w, y), {"size": x_shape[2:]}, largest_error(flipped, y, rest)),
    ):
        given = run_node(primitive, operands, {**params, **more})
        wanted = primitive.evaluate(*(operand.astype(precise) for operand in operands), **params, **more)
        assert given.shape == wanted.shape == scale.shape
        assert (np.abs(given - wanted) <= 4 * np.finfo(dtype).eps * scale).all(), primitive.name


#: Shapes of x, outputs, padding.
GEOMETRIES = {
    "even": ((2, 3, 8, 20), 5, ((1, 1), (1, 1))),
    "odd": ((3, 5, 7, 9), 4, ((1, 1), (1, 1))),
    "without padding": ((2, 4, 6, 37), 9, ((0, 0), (0, 0))),
    "uneven padding": ((1, 2, 5, 6), 3, ((2, 0), (0, 1))),
    "one channel": ((2, 1, 5, 5), 1, ((1, 1), (1, 1))),
    "one result": ((1, 2, 3, 3), 2, ((0, 0), (0, 0))),
    "small examples": ((11, 6, 3, 3), 7, ((1, 1), (1, 1))),
    "tiles that do not fit": ((1, 33, 6, 18), 18, ((1, 1), (1, 1))),
}


@pytest.mark.sample(every=5)
@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_every_geometry_gives_what_is_wanted(run_node, way, geometry):
    x_shape, outs, pad = GEOMETRIES[geometry]
    check(run_node, x_shape, outs, "f4", pad)


@pytest.mark.parametrize("geometry", ["odd", "uneven padding"])
def test_so_it_does_in_double_precision(run_node, way, geometry):
    x_shape, outs, pad = GEOMETRIES[geometry]
    check(run_node, x_shape, outs, "f8", pad)


@pytest.mark.sample(every=5)
@pytest.mark.parametrize("bits", available_widths())
@pytest.mark.parametrize("geometry", ["odd", "tiles that do not fit"])
def test_vectors_of_every_width_give_the_same(run_node, way, bits, geometry):
    x_shape, outs, pad = GEOMETRIES[geometry]
    with forced_width(bits):
        check(run_node, x_shape, outs, "f4", pad)


def test_operands_may_have_gaps(run_node, way):
    x_shape, outs, pad = GEOMETRIES["odd"]
    check(run_node, x_shape, outs, "f4", pad, strided=True)


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("shape", [(2, 40, 61, 30), (1, 9, 150, 150)])
def test_large_examples_are_done_in_blocks(run_node, way, shape):
    check(run_node, shape, 3, "f4", ((1, 1), (1, 1)))


def by_tiles_alone(monkeypatch):
    """Tiles in doubt are left as they are."""
    monkeypatch.setattr(convolutions, "winograd_that_pays", make_winograd_plan)
    monkeypatch.setattr(correlation_kernel, "write_tiles_in_doubt", lambda *_: None)


def test_numbers_of_about_the_same_magnitude_are_in_no_doubt(run_node, monkeypatch):
    by_tiles_alone(monkeypatch)
    for geometry in ("odd", "small examples"):  # memory is full of NaN before
        x_shape, outs, pad = GEOMETRIES[geometry]
        check(run_node, x_shape, outs, "f4", pad)


def test_most_of_ordinary_numbers_are_in_no_doubt(run_node, monkeypatch):
    random = np.random.default_rng(0)
    w, x = (random.standard_normal(shape).astype("f4") for shape in ((32, 32, 3, 3), (2, 32, 24, 24)))
    kernels = (w, w * (random.random(w.shape) < 0.1))
    sources = (x, np.maximum(x, 0), np.where(random.random(x.shape) < 0.1, x, 0))
    parts = []
    by_tiles_alone(monkeypatch)
    for weights, source in product(kernels, sources):
        params = params_of(((1, 1), (1, 1)))
        given = run_node(conv, (weights, source), params)
        wanted = conv.evaluate(weights.astype("f8"), source.astype("f8"), **params)
        parts.append(float(np.isclose(given, wanted, rtol=1e-3, atol=1e-3).mean()))
    assert parts[0] > 0.9
    assert parts[1] > 0.3
    assert max(parts[2:]) < 0.01  # one in ten is not zero


@pytest.mark.parametrize("number", [np.inf, -np.inf, np.nan, 3e38])
def test_what_is_not_finite_is_what_the_direct_form_gives(run_node, monkeypatch, number):
    pad = ((1, 1), (1, 1))
    w, x, y = numbers((4, 3, 3, 3), "f4"), numbers((2, 3, 6, 7), "f4"), numbers((2, 4, 6, 7), "f4")
    x[0, 1, 2, 6] = y[1, 2, 5, 0] = number
    poisoned = w.copy()
    poisoned[1, 2, 0, 1] = number
    nodes = [
        (primitive, (weights, data), more)
        for weights in (w, poisoned)
        for primitive, data, more in ((conv, x, {}), (conv_data_gradient, y, {"size": (6, 7)}))
    ]

    def results():
        return [run_node(primitive, operands, {**params_of(pad), **more}) for primitive, operands, more in nodes]

    monkeypatch.setattr(convolutions, "winograd_that_pays", lambda *_: None)
    directly = results()
    assert not all(np.isfinite(result).all() for result in directly)
    monkeypatch.setattr(convolutions, "winograd_that_pays", make_winograd_plan)
    for by_winograd, wanted in zip(results(), directly, strict=True):
        np.testing.assert_allclose(by_winograd, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("large", [1e18, 3e19, 1e-18, 1e-26, 1e-40])
def test_squares_that_have_no_digits_are_no_reason_to_trust(run_node, monkeypatch, large):
    """The identity, where every other column is 1e5 times as large as its neighbour."""
    monkeypatch.setattr(convolutions, "winograd_that_pays", make_winograd_plan)
    w, x = np.zeros((8, 8, 3, 3), "f4"), numbers((1, 8, 8, 8), "f4") * np.float32(large)
    w[:, :, 1, 1] = np.eye(8)
    x[..., ::2] *= np.float32(1e-5)
    for weights, data in ((w, x), (w * np.float32(large), x / np.float32(large))):
        given = run_node(conv, (weights, data), params_of(((1, 1), (1, 1))))
        np.testing.assert_array_equal(given, data * weights[0, 0, 1, 1])


def test_numbers_outside_a_window_take_no_part_in_its_result(run_node, way):
    x = numbers((1, 2, 8, 8), "f4")
    x[:, :, 3, 4] = 1e12
    wanted = x.copy()
    wanted[:, :, 3, 4] = 0
    w = numbers((3, 2, 3, 3), "f4")
    given = [run_node(conv, (w, array), params_of(((1, 1), (1, 1)))) for array in (x, wanted)]
    far = np.ones((8, 8), bool)
    far[2:5, 3:6] = False
    np.testing.assert_array_equal(given[0][..., far], given[1][..., far])


def test_rounding_is_no_worse_than_in_the_direct_form(run_node, monkeypatch):
    w, x = numbers((32, 32, 3, 3), "f4"), numbers((2, 32, 16, 16), "f4")
    y, params = numbers((2, 32, 16, 16), "f4"), params_of(((1, 1), (1, 1)))
    for primitive, operands, more, most in (
        (conv, (w, x), {}, 1.0),
        (conv_data_gradient, (w, y), {"size": (16, 16)}, 1.0),
    ):
        wanted = primitive.evaluate(*(operand.astype("f8") for operand in operands), **params, **more)
        errors = []
        for plan in (make_winograd_plan, lambda *_: None):
            monkeypatch.setattr(convolutions, "winograd_that_pays", plan)
            errors.append(np.sqrt(np.mean((run_node(primitive, operands, {**params, **more}) - wanted) ** 2)))
        assert errors[0] <= most * errors[1], primitive.name


def plan_of(x_shape, outs, *, kernel=(3, 3), stride=1, dilation=1, groups=1):
    """What is chosen for a convolution."""
    sliding = SlidingWindow(x_shape[2:], kernel, (stride,) * 2, ((1, 1),) * 2, (dilation,) * 2)
    shapes = (outs, x_shape[1] // groups, *kernel), x_shape, (x_shape[0], outs, *sliding.out)
    w, x, y = (StoredArray.in_order("", type_of(np.empty(shape, "f4"))) for shape in shapes)
    return convolutions.winograd_that_pays(forward(sliding, groups, w, x, y), 512)


def test_tiles_are_taken_where_there_are_channels_enough():
    assert plan_of((4, 64, 56, 56), 64)
    assert plan_of((4, 16, 32, 32), 16)
    assert not plan_of((4, 3, 32, 32), 8)
    assert not plan_of((1, 512, 7, 7), 512)  # the terms of weights would take longer than what they are for


@pytest.mark.parametrize("other", [{"kernel": (5, 5)}, {"stride": 2}, {"dilation": 2}, {"groups": 2}])
def test_other_convolutions_are_direct(other):
    assert not plan_of((4, 64, 56, 56), 64, **other)

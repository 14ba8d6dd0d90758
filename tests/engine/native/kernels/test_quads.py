"""Convolutions of 3 x 3 by quads, and directly: the same tests for both."""

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

from pullback.backends.native import availability
from pullback.backends.native.linking import forced_width
from pullback.backends.native.linking.target import available_widths
from pullback.rules.convolution import conv, conv_data_gradient, conv_weight_gradient

if not availability.is_available():
    pytest.skip(str(availability.why_not()), allow_module_level=True)

from pullback.backends.native.emission import Stored
from pullback.backends.native.kernels import convolutions
from pullback.backends.native.kernels.convolution.correlation import forward
from pullback.backends.native.kernels.convolution.weight_sums import weight_sums
from pullback.backends.native.kernels.convolution.winograd.plans import make_quad_plan
from pullback.backends.native.kernels.convolution.winograd.weight_plans import make_quad_sums_plan
from pullback.ir.types import type_of
from pullback.rules.sliding import Sliding

A = np.array([[1, 0], [1, 1], [1, -1], [0, -1]], float)
B = np.array([[1, 0, 0, 0], [0, 1, -1, 1], [-1, 1, 1, 0], [0, 0, 0, -1]], float)
G = np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]])


@pytest.fixture(params=["by quads", "directly"])
def way(request, monkeypatch):
    """Every convolution in one way, whether it pays or not."""
    by_quads = request.param == "by quads"
    monkeypatch.setattr(convolutions, "quads_that_pay", make_quad_plan if by_quads else lambda *_: None)
    monkeypatch.setattr(convolutions, "quad_sums_that_pay", make_quad_sums_plan if by_quads else lambda *_: None)
    return request.param


def both_ways(matrix, values):
    """A linear combination along the last two axes."""
    return np.einsum("ik,...kl,jl->...ij", matrix, values, matrix)


def padded(x, pad):
    """With zeros around, and behind the last row and column that the last quad meets."""
    wide = np.pad(x, ((0, 0), (0, 0), *pad))
    return np.pad(wide, ((0, 0), (0, 0), *((0, (size - 2) % 2) for size in wide.shape[2:])))


def patches(x, pad):
    """4 x 4 numbers for each quad."""
    return sliding_window_view(padded(x, pad), (4, 4), axis=(2, 3))[:, :, ::2, ::2]


def largest_error(w, x, pad):
    """What errors of a convolution by quads are in proportion to: the magnitudes of all that is added up."""
    terms = np.einsum("oiab,nipqab->nopqab", both_ways(abs(G), abs(w)), both_ways(abs(B).T, abs(patches(x, pad))))
    quads = both_ways(abs(A).T, terms)
    rows, columns = (size + sum(own) - 2 for size, own in zip(x.shape[2:], pad, strict=True))
    n, o, p, q = quads.shape[:4]
    return quads.transpose(0, 1, 2, 4, 3, 5).reshape(n, o, 2 * p, 2 * q)[:, :, :rows, :columns]


def largest_error_of_weights(y, x, pad):
    """The same of the gradient of the weights."""
    even = np.pad(abs(y), ((0, 0), (0, 0), *((0, size % 2) for size in y.shape[2:])))
    n, o, rows, columns = even.shape
    quads = even.reshape(n, o, rows // 2, 2, columns // 2, 2).transpose(0, 1, 2, 4, 3, 5)
    terms = np.einsum("nopqab,nipqab->oiab", both_ways(abs(A), quads), both_ways(abs(B).T, abs(patches(x, pad))))
    return both_ways(abs(G).T, terms)


def params_of(pad):
    return {"stride": (1, 1), "pad": pad, "dilation": (1, 1), "groups": 1}


def numbers(shape, dtype, *, strided=False):
    random = np.random.default_rng(sum(shape))
    return (
        random.standard_normal((*shape[:-1], 2 * shape[-1])).astype(dtype)[..., ::2]
        if strided
        else (random.standard_normal(shape).astype(dtype))
    )


def check(run_node, x_shape, outs, dtype, pad, *, strided=False):
    """The convolution and both of its transposes, against float64 or longer."""
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
        (conv_weight_gradient, (y, x), {"kernel": (3, 3)}, largest_error_of_weights(y, x, pad)),
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


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_every_geometry_gives_what_is_wanted(run_node, way, geometry):
    x_shape, outs, pad = GEOMETRIES[geometry]
    check(run_node, x_shape, outs, "f4", pad)


@pytest.mark.parametrize("geometry", ["odd", "uneven padding"])
def test_so_it_does_in_double_precision(run_node, way, geometry):
    x_shape, outs, pad = GEOMETRIES[geometry]
    check(run_node, x_shape, outs, "f8", pad)


@pytest.mark.parametrize("bits", available_widths())
@pytest.mark.parametrize("geometry", ["odd", "tiles that do not fit"])
def test_vectors_of_every_width_give_the_same(run_node, way, bits, geometry):
    x_shape, outs, pad = GEOMETRIES[geometry]
    with forced_width(bits):
        check(run_node, x_shape, outs, "f4", pad)


def test_operands_may_have_gaps(run_node, way):
    x_shape, outs, pad = GEOMETRIES["odd"]
    check(run_node, x_shape, outs, "f4", pad, strided=True)


@pytest.mark.parametrize("shape", [(2, 40, 61, 30), (1, 9, 150, 150)])
def test_large_examples_are_done_in_blocks(run_node, way, shape):
    check(run_node, shape, 3, "f4", ((1, 1), (1, 1)))


def test_finite_numbers_are_not_computed_twice(run_node, monkeypatch):
    def never(*_):
        """What follows where results are not finite."""

    for name in ("write_correlation", "write_sums", "write_dots"):
        monkeypatch.setattr(convolutions, name, never)
    monkeypatch.setattr(convolutions, "quads_that_pay", make_quad_plan)
    monkeypatch.setattr(convolutions, "quad_sums_that_pay", make_quad_sums_plan)
    for geometry in ("odd", "small examples"):  # memory is full of NaN before
        x_shape, outs, pad = GEOMETRIES[geometry]
        check(run_node, x_shape, outs, "f4", pad)


@pytest.mark.parametrize("number", [np.inf, -np.inf, np.nan, 3e38])
def test_what_is_not_finite_is_what_the_direct_form_gives(run_node, monkeypatch, number):
    pad = ((1, 1), (1, 1))
    w, x, y = numbers((4, 3, 3, 3), "f4"), numbers((2, 3, 6, 7), "f4"), numbers((2, 4, 6, 7), "f4")
    x[0, 1, 2, 6] = y[1, 2, 5, 0] = w[1, 2, 0, 1] = number
    nodes = (
        (conv, (w, x), {}),
        (conv_data_gradient, (w, y), {"size": (6, 7)}),
        (conv_weight_gradient, (y, x), {"kernel": (3, 3)}),
    )

    def results():
        return [run_node(primitive, operands, {**params_of(pad), **more}) for primitive, operands, more in nodes]

    monkeypatch.setattr(convolutions, "quads_that_pay", lambda *_: None)
    monkeypatch.setattr(convolutions, "quad_sums_that_pay", lambda *_: None)
    directly = results()
    assert not all(np.isfinite(result).all() for result in directly)
    monkeypatch.setattr(convolutions, "quads_that_pay", make_quad_plan)
    monkeypatch.setattr(convolutions, "quad_sums_that_pay", make_quad_sums_plan)
    for by_quads, wanted in zip(results(), directly, strict=True):
        if not np.isfinite(wanted).all():
            np.testing.assert_array_equal(by_quads, wanted)


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
        (conv_weight_gradient, (y, x), {"kernel": (3, 3)}, 1.5),
    ):
        wanted = primitive.evaluate(*(operand.astype("f8") for operand in operands), **params, **more)
        errors = []
        for plan, sums_plan in ((make_quad_plan, make_quad_sums_plan), (lambda *_: None,) * 2):
            monkeypatch.setattr(convolutions, "quads_that_pay", plan)
            monkeypatch.setattr(convolutions, "quad_sums_that_pay", sums_plan)
            errors.append(np.sqrt(np.mean((run_node(primitive, operands, {**params, **more}) - wanted) ** 2)))
        assert errors[0] <= most * errors[1], primitive.name


def plans(x_shape, outs, *, kernel=(3, 3), stride=1, dilation=1, groups=1):
    """What is chosen for a convolution, and for the gradient of its weights."""
    sliding = Sliding(x_shape[2:], kernel, (stride,) * 2, ((1, 1),) * 2, (dilation,) * 2)
    shapes = (outs, x_shape[1] // groups, *kernel), x_shape, (x_shape[0], outs, *sliding.out)
    w, x, y = (Stored.in_order("", type_of(np.empty(shape, "f4"))) for shape in shapes)
    return (
        convolutions.quads_that_pay(forward(sliding, groups, w, x, y), 512),
        convolutions.quad_sums_that_pay(weight_sums(sliding, groups, y, x, w), 512),
    )


def test_quads_are_taken_where_there_are_channels_enough():
    assert all(plans((4, 64, 56, 56), 64))
    assert all(plans((4, 16, 32, 32), 16))
    assert not any(plans((4, 3, 32, 32), 8))
    assert not any(plans((1, 512, 7, 7), 512))  # the terms of weights would take longer than what they are for


@pytest.mark.parametrize("other", [{"kernel": (5, 5)}, {"stride": 2}, {"dilation": 2}, {"groups": 2}])
def test_other_convolutions_are_direct(other):
    assert not any(plans((4, 64, 56, 56), 64, **other))


def test_memory_for_sums_is_bounded_by_the_weights():
    assert plans((1000, 64, 56, 56), 64)[1].bytes == plans((4, 64, 56, 56), 64)[1].bytes < 2_000_000

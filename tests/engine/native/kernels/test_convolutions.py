"""Convolutions as kernels, against the interpreter's."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pullback as pb
from pullback import nn
from pullback.backends.native import availability
from pullback.backends.native.emission import EMITTERS, StoredArray
from pullback.backends.native.linking import forced_width
from pullback.backends.native.linking.target import available_widths
from pullback.core.types import type_of
from pullback.ir.graph import Node, Var
from pullback.rules.convolution import conv, conv_data_gradient, conv_weight_gradient
from pullback.rules.sliding import SlidingWindow

if not availability.is_available():
    pytest.skip(str(availability.why_not()), allow_module_level=True)

from pullback.backends.native.kernels.convolution import plans
from pullback.backends.native.kernels.convolution.correlation import forward, transposed


def check(run_node, primitive, operands, params):
    """A kernel gives what the interpreter gives, but for rounding."""
    given_by_kernel = run_node(primitive, operands, params)
    wanted = primitive.evaluate(*(np.asarray(x, np.float64) for x in operands), **params)
    assert given_by_kernel.shape == wanted.shape
    scale = primitive.evaluate(*(np.abs(x).astype(np.float64) for x in operands), **params)
    error = np.abs(given_by_kernel - wanted)
    assert (error <= 8 * np.finfo(given_by_kernel.dtype).eps * scale + 1e-300).all()


def normal(shape, dtype, *, strided=False):
    """Random numbers, on request with gaps between them."""
    random = np.random.default_rng(sum(shape))
    if not strided:
        return random.standard_normal(shape).astype(dtype)
    return random.standard_normal((*shape[:-1], 2 * shape[-1])).astype(dtype)[..., ::2]


@pytest.fixture(scope="session")
def check_all(run_node):
    """`check_all(x_shape, w_shape, dtype, **params)`: the convolution and both of its transposes."""
    return partial(_check_all, run_node)


def _check_all(run_node, x_shape, w_shape, dtype, *, strided=False, **params):
    w, x = normal(w_shape, dtype, strided=strided), normal(x_shape, dtype, strided=strided)
    y = normal(conv.infer(type_of(w), type_of(x), **params)[0].shape, dtype, strided=strided)
    check(run_node, conv, (w, x), params)
    check(run_node, conv_data_gradient, (w, y), {"size": x_shape[2:], **params})
    check(run_node, conv_weight_gradient, (y, x), {"kernel": w_shape[2:], **params})


def along(dims, stride=1, pad=(0, 0), dilation=1, groups=1):
    """Parameters that are the same along every axis."""
    return {"stride": (stride,) * dims, "pad": (pad,) * dims, "dilation": (dilation,) * dims, "groups": groups}


#: Shapes of x and w, then parameters.
GEOMETRIES = {
    "one axis": ((2, 3, 40), (4, 3, 3), along(1, pad=(1, 1))),
    "one long row": ((1, 2, 700), (3, 2, 5), along(1, pad=(2, 2))),
    "no padding": ((2, 3, 9, 20), (5, 3, 3, 3), along(2)),
    "padding": ((2, 3, 9, 20), (5, 3, 3, 3), along(2, pad=(1, 1))),
    "uneven padding": ((1, 2, 5, 6), (3, 2, 2, 3), along(2, pad=(0, 2))),
    "small examples": ((9, 2, 3, 3), (3, 2, 3, 3), along(2, pad=(1, 1))),
    "one number wide": ((2, 2, 7, 1), (3, 2, 3, 1), along(2)),
    "pointwise": ((2, 6, 5, 7), (10, 6, 1, 1), along(2)),
    "pointwise with gaps": ((2, 6, 5, 7), (3, 6, 1, 1), along(2, stride=2)),
    "stride of two": ((2, 3, 9, 12), (4, 3, 3, 3), along(2, stride=2, pad=(1, 1))),
    "wide rows in steps of two": ((1, 2, 5, 71), (3, 2, 3, 3), along(2, stride=2, pad=(1, 1))),
    "stride beyond the kernel": ((1, 2, 8, 9), (3, 2, 2, 2), along(2, stride=3)),
    "elements of a phase that nothing meets": ((2, 2, 7, 7), (3, 2, 4, 4), along(2, stride=3)),
    "input tiles": ((2, 3, 8, 8), (6, 3, 4, 4), along(2, stride=4)),
    "dilation": ((2, 2, 9, 11), (3, 2, 3, 3), along(2, pad=(2, 2), dilation=2)),
    "stride and dilation": ((1, 2, 9, 11), (3, 2, 3, 2), along(2, stride=2, pad=(1, 0), dilation=3)),
    "groups": ((2, 6, 5, 9), (4, 3, 3, 3), along(2, pad=(1, 1), groups=2)),
    "depthwise": ((2, 5, 6, 9), (5, 1, 3, 3), along(2, pad=(1, 1), groups=5)),
    "depthwise with two outputs each": ((2, 5, 7, 19), (10, 1, 3, 3), along(2, pad=(1, 1), groups=5)),
    "depthwise in steps": ((2, 5, 9, 39), (5, 1, 3, 3), along(2, stride=2, pad=(1, 1), groups=5)),
    "one channel": ((2, 1, 20, 20), (6, 1, 5, 5), along(2, pad=(2, 2))),
    "large kernel": ((1, 2, 12, 12), (2, 2, 7, 7), along(2, stride=2, pad=(3, 3))),
    "kernel as large as the data": ((2, 3, 4, 5), (3, 3, 4, 5), along(2)),
    "three axes": ((2, 2, 4, 5, 6), (3, 2, 2, 3, 3), along(3, pad=(1, 1))),
    "three axes in steps": ((1, 2, 5, 4, 6), (2, 2, 2, 3, 2), along(3, stride=2, pad=(1, 0))),
    "many small examples": ((19, 3, 5, 6), (4, 3, 3, 3), along(2, pad=(1, 1))),
    "many examples in steps": ((33, 2, 6, 6), (3, 2, 3, 3), along(2, stride=2, pad=(1, 1))),
    "large kernel over many examples": ((35, 2, 4, 5), (3, 2, 5, 5), along(2, pad=(3, 2))),
    "large kernel within many examples": ((16, 2, 7, 7), (7, 2, 5, 5), along(2)),
    "many short rows": ((40, 3, 5), (2, 3, 3), along(1, pad=(1, 1))),
    "many small examples of three axes": ((17, 2, 3, 4, 3), (2, 2, 3, 3, 3), along(3, pad=(1, 1))),
    "few wide rows": ((2, 3, 3, 40), (4, 3, 5, 5), along(2, pad=(2, 2))),
    "all at once": (
        (2, 4, 5, 6),
        (4, 2, 2, 3),
        {"stride": (2, 1), "pad": ((1, 0), (2, 1)), "dilation": (1, 2), "groups": 2},
    ),
}


@pytest.mark.sample(every=9)
@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_every_geometry_gives_what_the_interpreter_gives(check_all, geometry, dtype):
    x_shape, w_shape, params = GEOMETRIES[geometry]
    check_all(x_shape, w_shape, dtype, **params)


@pytest.mark.sample(every=4)
@pytest.mark.parametrize("bits", available_widths())
@pytest.mark.parametrize("geometry", ["padding", "pointwise", "all at once", "small examples"])
def test_vectors_of_every_width_give_the_same(check_all, bits, geometry):
    x_shape, w_shape, params = GEOMETRIES[geometry]
    with forced_width(bits):
        check_all(x_shape, w_shape, "f4", **params)


@pytest.mark.parametrize("geometry", ["padding", "pointwise", "one axis", "all at once"])
def test_operands_may_have_gaps(check_all, geometry):
    x_shape, w_shape, params = GEOMETRIES[geometry]
    check_all(x_shape, w_shape, "f4", strided=True, **params)


@pytest.mark.parametrize("channels", [1, 8, 9, 16, 17])
def test_tiles_that_do_not_fit_overlap(check_all, channels):
    check_all((1, channels, 4, 17), (channels, channels, 3, 3), "f4", **along(2, pad=(1, 1)))


@pytest.mark.parametrize(
    ("x_shape", "w_shape", "pad"),
    [((1, 20, 100, 60), (2, 20, 3, 3), 1), ((2, 150, 23, 23), (1, 150, 3, 3), 1), ((1, 300, 500), (2, 300, 3), 0)],
)
def test_what_does_not_fit_the_cache_is_copied_in_blocks(check_all, x_shape, w_shape, pad):
    check_all(x_shape, w_shape, "f4", **along(len(x_shape) - 2, pad=(pad, pad)))


MANY = [geometry for geometry in GEOMETRIES if "many" in geometry or "few" in geometry or "padding" in geometry]


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("geometry", MANY)
def test_taps_that_meet_nothing_but_zeros_can_be_left_out(check_all, monkeypatch, geometry):
    all_plans = plans._plans

    def skipping(correlation, vector_bits):
        found = list(all_plans(correlation, vector_bits))
        most = max(len(plan.skips) for plan in found)
        return iter([plan for plan in found if len(plan.skips) == most])

    monkeypatch.setattr(plans, "_plans", skipping)
    x_shape, w_shape, params = GEOMETRIES[geometry]
    check_all(x_shape, w_shape, "f4", **params)


@pytest.mark.parametrize(
    ("x_shape", "w_shape", "pad", "forth", "back"),
    [
        ((32, 32, 4, 4), (32, 32, 3, 3), 1, (1, 2), (1, 2)),
        ((128, 6, 14, 14), (16, 6, 5, 5), 0, (), (1, 2)),
        ((128, 1, 28, 28), (6, 1, 5, 5), 2, (1,), ()),
        ((2, 64, 56, 56), (64, 64, 3, 3), 1, (), ()),
    ],
)
def test_they_are_left_out_where_that_pays(x_shape, w_shape, pad, forth, back):
    sliding = SlidingWindow(x_shape[2:], w_shape[2:], (1, 1), ((pad, pad),) * 2, (1, 1))
    shapes = w_shape, x_shape, (x_shape[0], w_shape[0], *sliding.out)
    w, x, y = (StoredArray.in_order("", type_of(np.empty(shape, "f4"))) for shape in shapes)
    assert plans.make_plan(forward(sliding, 1, w, x, y), 512, 2**30).skips == forth
    assert plans.make_plan(transposed(sliding, 1, w, y, x), 512, 2**30).skips == back


def test_scratch_does_not_grow_with_the_batch():
    def scratch(examples):
        x, w = type_of(np.empty((examples, 16, 32, 32), "f4")), type_of(np.empty((16, 16, 3, 3), "f4"))
        node = Node(conv, (Var(0, w), Var(1, x)), tuple(along(2, pad=(1, 1)).items()), (Var(2, x),), "")
        return EMITTERS[conv].scratch(node, 512)

    assert scratch(4) < 400_000
    assert scratch(200) == scratch(1000) <= 8 * scratch(4)  # there are at most eight parts


def test_a_gradient_of_layers_is_one_native_program():
    x, w, b = normal((4, 3, 16, 16), "f4"), normal((8, 3, 3, 3), "f4"), normal((8,), "f4")
    by_channel, pointwise = normal((8, 1, 3, 3), "f4"), normal((10, 8, 1, 1), "f4")

    def loss(w, b, by_channel, pointwise):
        y = nn.max_pool(nn.conv_bias_act(w, x, b, "relu", pad=1), 2)
        y = nn.conv(by_channel, y, stride=2, pad=1, groups=8)
        return np.sum(nn.mean_pool(nn.conv_bias_act(pointwise, y, None, "tanh"), 2) ** 2)

    gradient = pb.grad(loss, wrt=(0, 1, 2, 3))
    program = pb.compile(gradient, tier="native")
    operands = (w, b, by_channel, pointwise)
    for own, wanted in zip(program(*operands), gradient(*operands), strict=True):
        np.testing.assert_allclose(own, wanted, rtol=1e-5, atol=1e-5 * np.abs(wanted).max())
    assert program.summary()["fallbacks"] == []


def test_convolutions_without_terms_are_zero(run_node):
    params = along(1)
    assert not run_node(conv, (np.ones((2, 0, 3), "f4"), np.ones((1, 0, 5), "f4")), params).any()
    params_of_gradient = {**params, "size": (5,)}
    assert not run_node(
        conv_data_gradient, (np.ones((0, 2, 3), "f4"), np.ones((1, 0, 3), "f4")), params_of_gradient
    ).any()
    nothing = (np.ones((0, 2, 3), "f4"), np.ones((0, 1, 5), "f4"))
    assert not run_node(conv_weight_gradient, nothing, {**params, "kernel": (3,)}).any()
    assert run_node(conv, (np.ones((2, 1, 3), "f4"), np.ones((0, 1, 5), "f4")), params).shape == (0, 2, 3)


def test_an_infinity_in_the_data_touches_only_the_taps_that_meet_it(run_node):
    x = np.ones((1, 1, 3, 3), "f4")
    x[..., 0, 0] = np.inf
    given_by_kernel = run_node(
        conv_weight_gradient, (np.ones((1, 1, 3, 3), "f4"), x), {**along(2, pad=(1, 1)), "kernel": (3, 3)}
    )
    assert np.isinf(given_by_kernel[0, 0, :2, :2]).all()
    assert np.isfinite(given_by_kernel[0, 0, 2]).all()
    assert np.isfinite(given_by_kernel[0, 0, :, 2]).all()


def test_other_dtypes_stay_with_the_interpreter():
    def refusal(*dtypes):
        types = [type_of(np.empty((1, 1, 3), dtype)) for dtype in dtypes]
        result = conv.infer(*types, **along(1))[0]
        node = Node(conv, tuple(map(Var, range(2), types)), tuple(along(1).items()), (Var(2, result),), "")
        return EMITTERS[conv].supports(node)

    assert refusal("i8", "i8") == "conv of int64"
    assert refusal("f4", "f8") == "conv of operands of different dtypes"


@st.composite
def convolutions(draw):
    """Shapes and parameters of small convolutions that have a result."""
    dims, groups = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    few = st.integers(1, 3)
    kernel = [draw(few) for _ in range(dims)]
    dilation = [draw(st.integers(1, 2)) for _ in range(dims)]
    pad = [(draw(st.integers(0, 2)), draw(st.integers(0, 2))) for _ in range(dims)]
    size = [
        draw(st.integers(max(1, d * (k - 1) + 1 - sum(p)), 8)) for k, d, p in zip(kernel, dilation, pad, strict=True)
    ]
    params = {
        "stride": tuple(draw(few) for _ in range(dims)),
        "pad": tuple(pad),
        "dilation": tuple(dilation),
        "groups": groups,
    }
    ins, outs = draw(few), draw(few)
    return (draw(few), ins * groups, *size), (outs * groups, ins, *kernel), params


@settings(max_examples=10, deadline=None)
@given(convolutions(), st.sampled_from(["f4", "f8"]))
def test_small_convolutions_give_what_the_interpreter_gives(check_all, problem, dtype):
    x_shape, w_shape, params = problem
    check_all(x_shape, w_shape, dtype, **params)

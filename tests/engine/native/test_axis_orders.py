"""In which order the axes of values lie in memory: which are arranged, and that nothing else changes."""

import numpy as np
import pytest

import pullback as pb
from pullback.backends.native import axis_orders
from pullback.backends.native.memory import plan_memory
from pullback.backends.nests.fusion import fuse, kept_values
from pullback.core.types import type_of
from pullback.ir.strides import contiguous_strides
from pullback.passes.pipeline import Stages, simplify
from pullback.traces.recorder import record

POINTS, PARTS, SIZE = 96, 6, 10
RNG = np.random.default_rng(5)
X = RNG.standard_normal((POINTS, SIZE))
M = RNG.standard_normal((PARTS, SIZE))
W = RNG.standard_normal((PARTS, SIZE, SIZE))


def products(x, m, w):
    """Every point seen from every part: [points, parts, size], through products that have points last."""
    centred = x[:, None, :] - m
    return centred + np.einsum("kij,nkj->nki", w, centred)


def lowered(function, *args):
    graph, _ = record(lambda *traced: ([function(*traced)], None), [type_of(arg) for arg in args], list(args))
    return simplify(graph, Stages(), lowered=True)


def arranged(function, *args, vector_bits=512):
    """By name of the node that makes it, the strides of what does not lie in C order."""
    graph = lowered(function, *args)
    found = fuse(graph, {})
    layouts = axis_orders.arranged(graph, found.kernels, kept_values(found, graph), vector_bits)
    assert all(strides != contiguous_strides(var.type.shape) for var, strides in layouts.items())
    return {node.primitive.name: layouts[out] for node in graph.nodes for out in node.outputs if out in layouts}


def test_what_products_and_nests_share_lies_as_the_products_have_it():
    found = arranged(lambda *args: np.sum(products(*args) ** 2), X, M, W)
    assert found == {
        "sub": (1, SIZE * POINTS, POINTS)
    }  # parts, size, points; the product has them in this order anyhow


def test_a_sum_over_an_axis_lies_as_what_is_summed():
    def function(x, m, w):
        return np.sum(np.exp(-np.sum(products(x, m, w) ** 2, axis=2)) @ np.ones((50 * PARTS, 2)))

    found = arranged(function, X, *(np.concatenate([one] * 50) for one in (M, W)))
    assert found["sum"] == (1, POINTS)


def test_nothing_is_arranged_where_all_operands_lie_alike():
    assert arranged(lambda x, w: np.sum(np.tanh(x @ w) ** 2), np.ones((100, 100)), np.ones((100, 100))) == {}


def test_what_is_returned_stays_in_order():
    assert "add" not in arranged(products, X, M, W)


def test_what_others_read_stays_in_order():
    def function(x, m, w):
        centred = x[:, None, :] - m
        picked = centred[np.arange(POINTS), :, :]
        return np.sum((picked + np.einsum("kij,nkj->nki", w, centred)) ** 2)

    assert "sub" not in arranged(function, X, M, W)


def test_a_value_that_is_reshaped_where_that_takes_order_stays_in_order():
    def function(x, m, w):
        centred = x[:, None, :] - m
        far = np.sum(np.reshape(centred, (POINTS * PARTS, SIZE)) ** 2, axis=1)
        return np.sum((centred + np.einsum("kij,nkj->nki", w, centred)) ** 2) + np.sum(far)

    assert "sub" not in arranged(function, X, M, W)


def test_what_saves_most_cycles_is_chosen_and_not_the_largest_part_of_a_few():
    # Of few kernels a fifth would be saved with parts outermost, of nearly all a seventh with points last.
    def loss(w, m, x):
        exponents = -0.5 * np.sum(np.einsum("kij,nkj->nki", w, x[:, None, :] - m) ** 2, axis=2)
        highest = np.max(exponents, axis=1, keepdims=True)
        return np.sum(np.log(np.sum(np.exp(exponents - highest), axis=1)) + highest[:, 0])

    def gradient(*args):
        return np.concatenate([np.ravel(slope) for slope in pb.grad(loss, wrt=("w", "m"))(*args)])

    found = arranged(gradient, np.ones((25, 10, 10)), np.ones((25, 10)), np.ones((1000, 10)), vector_bits=256)
    assert found["sub"] == found["mul"] == (1, 10000, 1000)
    assert "matmul" not in found


def test_an_axis_that_a_value_has_twice_is_left_alone():
    def function(x):
        squares = x @ np.transpose(x)
        return np.sum(np.tanh(squares) * np.transpose(squares))

    assert arranged(function, np.ones((80, 70))) == {}


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("points", [96, 131])
def test_values_and_gradients_are_those_of_the_interpreter(dtype, points):
    def loss(x, m, w):
        seen = products(x, m, w)
        return np.sum(pb.nn.logsumexp(-np.sum(seen**2, axis=2), axis=1)) + np.sum(np.max(seen, axis=0))

    x, m, w = (
        RNG.standard_normal(shape).astype(dtype)
        for shape in ((points, SIZE), (5 * PARTS, SIZE), (5 * PARTS, SIZE, SIZE))
    )
    differentiated = pb.value_and_grad(loss, wrt=("x", "m", "w"))
    value, slopes = pb.compile(differentiated, tier="native")(x, m, w)
    expected, expected_slopes = differentiated(x, m, w)
    tolerance = 2e-5 if dtype == "f4" else 1e-12
    np.testing.assert_allclose(value, expected, rtol=tolerance)
    for slope, expected_slope in zip(slopes, expected_slopes, strict=True):
        np.testing.assert_allclose(slope, expected_slope, rtol=tolerance, atol=tolerance * abs(expected_slope).max())


def test_what_is_overwritten_may_lie_otherwise():
    graph = lowered(lambda *args: np.sum(np.exp(np.tanh(products(*args)) @ np.ones((SIZE, SIZE)))), X, M, W)
    memory = plan_memory(graph, 512)
    assert memory.nbytes <= 3 * 8 * POINTS * PARTS * SIZE

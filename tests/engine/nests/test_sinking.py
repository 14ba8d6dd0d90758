"""Sinking: values that are computed where they are read, instead of being stored."""

import numpy as np

import pullback as pb
from pullback.backends.native.memory import plan_memory
from pullback.backends.nests.fusion import FusedNodes, fuse, kept_values, nodes_of
from pullback.backends.nests.sinking import sunk
from pullback.core.types import type_of
from pullback.passes.pipeline import Stages, simplify
from pullback.traces.recorder import record

SIDE = 80
RNG = np.random.default_rng(4)
X, Y, W = (RNG.standard_normal((SIDE, SIDE)) for _ in range(3))
SCALE = RNG.standard_normal(SIDE)


def lowered(function, *args):
    graph, _ = record(lambda *traced: ([function(*traced)], None), [type_of(arg) for arg in args], list(args))
    return simplify(graph, Stages(), lowered=True)


def kernels(function, *args):
    """The kernels of a function, each as the names of its nodes; a nest's in a list."""
    graph = lowered(function, *args)
    found = sunk(fuse(graph), graph)
    assert sorted(map(id, graph_nodes(found))) == sorted(map(id, graph_nodes(fuse(graph))))
    return [
        [node.primitive.name for node in kernel.nodes] if isinstance(kernel, FusedNodes) else kernel.node.primitive.name
        for kernel in found.kernels
    ]


def graph_nodes(found):
    return [node for kernel in found.kernels for node in nodes_of(kernel)]


def behind_a_product(x, y, w, scale):
    """`scaled` is made where `centred` is, and read behind the product that reads `centred`."""
    centred = x - y
    scaled = scale * centred
    return np.sum(np.tanh(centred @ w + scaled))


def test_a_value_goes_into_the_nest_that_reads_it():
    assert kernels(behind_a_product, X, Y, W, SCALE) == [["sub"], "matmul", ["mul", "add", "tanh", "sum"]]
    graph = lowered(behind_a_product, X, Y, W, SCALE)
    before = kept_values(fuse(graph), graph)
    after = kept_values(sunk(fuse(graph), graph), graph)
    assert [node.primitive.name for node in graph.nodes if node.outputs[0] in before - after] == ["mul"]
    assert after < before


def test_its_memory_is_saved():
    graph = lowered(behind_a_product, X, Y, W, SCALE)
    assert plan_memory(graph, 512).nbytes <= 2 * X.nbytes + 4096


def test_small_values_stay():
    found = kernels(behind_a_product, X[:4, :4], Y[:4, :4], W[:4, :4], SCALE[:4])
    assert found == [["sub", "mul"], "matmul", ["add", "tanh", "sum"]]


def test_what_two_nests_or_others_read_stays():
    def read_twice(x, y, w, scale):
        centred = x - y
        scaled = scale * centred
        hidden = np.tanh(centred @ w + scaled)
        return np.sum(np.exp(hidden @ w) * scaled) + np.sum(hidden)

    def multiplied(x, y, w, scale):
        centred = x - y
        scaled = scale * centred
        return np.sum(np.tanh(centred @ w) * (scaled @ w))

    def seen_otherwise(x, y, w, scale):
        centred = x - y
        scaled = scale * centred
        return np.sum(np.tanh(centred @ w + scaled.T))

    for function in (read_twice, multiplied, seen_otherwise):
        assert ["sub", "mul"] in kernels(function, X, Y, W, SCALE)


def test_what_is_returned_stays():
    graph, _ = record(
        lambda *traced: ([traced[1] * (traced[0] - traced[1]), behind_a_product(*traced)], None),
        [type_of(arg) for arg in (X, Y, W, SCALE)],
        [X, Y, W, SCALE],
    )
    graph = simplify(graph, Stages(), lowered=True)
    memory = plan_memory(graph, 512)
    assert graph.outputs[0] in memory.kept


def test_what_is_computed_from_registers_stays():
    def function(x, y, w):
        inner = np.exp(x - y)
        return np.sum(np.tanh((x - y) @ w + 2 * inner) + np.sum(inner, axis=0))

    assert not any(kernel[:1] == ["mul"] for kernel in kernels(function, X, Y, W))


def test_no_more_than_one_large_operand_is_kept_for_it():
    def function(x, y, w):
        a, b = x @ w, y @ w
        hidden = np.tanh(a) @ w + np.exp(b) @ w
        return np.sum(np.tanh(hidden @ w) + a * b)

    graph = lowered(function, X, Y, W)
    assert plan_memory(graph, 512).nbytes <= 4 * X.nbytes + 4096


def test_bits_and_gradients_are_those_of_the_function():
    differentiated = pb.value_and_grad(behind_a_product, wrt=("x", "w", "scale"))
    value, slopes = pb.compile(differentiated, tier="native")(X, Y, W, SCALE)
    expected, expected_slopes = differentiated(X, Y, W, SCALE)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    for slope, expected_slope in zip(slopes, expected_slopes, strict=True):
        np.testing.assert_allclose(slope, expected_slope, rtol=1e-11, atol=1e-12 * abs(expected_slope).max())

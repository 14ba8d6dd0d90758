"""Which nodes share a nest of loops."""

import numpy as np
import pytest

import pullback as pb
from pullback.backends.nests.fusion import FusedNodes, fuse, kept_values
from pullback.core.types import type_of
from pullback.passes.pipeline import Stages, simplify
from pullback.traces.recorder import record

W, X, B = np.ones((4, 5)), np.ones((5, 3)), np.ones((4, 1))


def kernels(function, *args, **options):
    """The kernels of a function, each as the names of its nodes; a nest's in a list."""
    graph = lowered(function, *args)
    found = fuse(graph, {}, **options)
    return [
        [node.primitive.name for node in kernel.nodes] if isinstance(kernel, FusedNodes) else kernel.node.primitive.name
        for kernel in found.kernels
    ]


def lowered(function, *args):
    graph, _ = record(lambda *traced: ([function(*traced)], None), [type_of(arg) for arg in args], list(args))
    return simplify(graph, Stages(), lowered=True)


def test_a_chain_and_its_sum_are_one_nest_behind_the_product():
    def loss(w, x, b):
        return np.sum(np.tanh(w @ x + b) ** 2)

    assert kernels(loss, W, X, B) == ["matmul", ["add", "tanh", "square", "sum"]]


def test_sums_over_different_axes_share_the_nest_of_what_they_sum():
    def function(x):
        y = np.exp(x)
        return np.sum(np.sum(y, axis=0)) + np.sum(np.sum(y, axis=1))

    assert kernels(function, X)[0] == ["exp", "sum", "sum"]


def test_what_needs_a_sum_comes_in_a_nest_after_it():
    def softmax(x):
        e = np.exp(x - np.max(x, axis=0))
        return e / np.sum(e, axis=0)

    assert kernels(softmax, X) == [["max"], ["sub", "exp", "sum"], ["div"]]


def test_views_are_no_kernels_and_a_nest_does_not_read_what_it_writes_through_a_view():
    assert kernels(lambda x: np.exp(np.transpose(x)), X) == [["exp"]]
    assert kernels(lambda x: np.exp(x) + np.transpose(np.tanh(x)), np.ones((3, 3))) == [["exp", "tanh"], ["add"]]


def test_nodes_join_the_nest_that_reads_what_they_read():
    def function(x, y):
        return np.sum(x) * np.sum(y) * np.sum(x * x)

    assert kernels(function, np.ones(7), np.ones(7))[:2] == [["sum", "square", "sum"], ["sum"]]


def test_what_is_read_by_positions_is_in_memory_before_the_nest_begins():
    """Of a device; natively it is a kernel by itself."""

    def function(x, p):
        y = np.exp(x)
        return np.sum(y[p] * y * x[p])

    args = (np.ones(4), np.array([0, 3, 1, 1]))
    assert kernels(function, *args, belongs=lambda node: True) == [["exp"], ["gather", "mul", "gather", "mul", "sum"]]
    assert "gather" in kernels(function, *args)


def test_only_what_leaves_a_nest_is_kept():
    graph = lowered(lambda w, x, b: np.sum(np.tanh(w @ x + b) ** 2), W, X, B)
    kept = kept_values(fuse(graph, {}), graph)
    assert sorted(node.primitive.name for node in graph.nodes if node.outputs[0] in kept) == ["matmul", "sum"]


@pytest.mark.parametrize("count", [3, 1000])
def test_long_programs_are_cut_into_nests_of_bounded_size(count):
    def function(x):
        for _ in range(count):
            x = x + 1.5 * x
        return x

    sizes = [len(kernel) for kernel in kernels(function, np.ones(3))]
    assert sum(sizes) == 2 * count
    assert max(sizes) <= 400


def test_the_result_of_a_fused_plan_is_that_of_the_function():
    def function(x):
        e = np.exp(x - np.max(x, axis=0))
        return np.sum((e / np.sum(e, axis=0)) ** 2) + np.sum(np.transpose(e) @ x)

    x = np.random.default_rng(3).standard_normal((5, 3))
    plan = pb.compile(pb.value_and_grad(function), tier="native")
    value, slope = plan(x)
    expected, expected_slope = pb.value_and_grad(function)(x)
    np.testing.assert_allclose(value, expected, rtol=1e-14)
    np.testing.assert_allclose(slope, expected_slope, rtol=1e-13)

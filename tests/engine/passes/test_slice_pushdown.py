"""Slices of elementwise values, taken of their operands."""

import numpy as np
import pytest

import pullback as pb
from pullback.core.types import type_of
from pullback.ir.checker import check_graph
from pullback.passes.pipeline import Stages, simplify
from pullback.passes.slice_pushdown import slice_operands
from pullback.traces.recorder import record

X, Y, B = np.random.default_rng(0).normal(size=(4, 6)), np.random.default_rng(1).normal(size=(4, 6)), np.ones(6)


def lowered(function, *args):
    def several(*traced):
        results = function(*traced)
        return (list(results) if isinstance(results, tuple) else [results]), None

    graph, _ = record(several, [type_of(arg) for arg in args], list(args))
    return simplify(graph, Stages(), lowered=True)


def sizes(graph):
    """By name of elementwise nodes, how large their results are."""
    return [(node.primitive.name, node.outputs[0].type.size) for node in graph.nodes if node.primitive.name != "index"]


def test_parts_of_a_sum_are_sums_of_parts():
    def function(x, y, b):
        z = x + y * b
        return np.tanh(z[:, :2]), np.exp(z[:, 2:])

    after = check_graph(slice_operands(lowered(function, X, Y, B)))
    assert sorted(sizes(after)) == [("add", 8), ("add", 16), ("exp", 16), ("mul", 8), ("mul", 16), ("tanh", 8)]
    check(function, X, Y, B)


def test_a_slice_of_a_stretched_operand_is_its_own_part():
    def function(x, column, row):
        z = x + column * row
        return z[1:3, ::2] * 2

    check(function, X, X[:, :1], B)
    assert set(sizes(slice_operands(lowered(function, X, X[:, :1], B)))) == {("mul", 6), ("add", 6)}


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y, _: ((z := x + y)[:, :2] * 3, np.sum(z)),  # read as a whole too
        lambda x, y, _: ((z := x + y)[:, :4] * 3, z[:, 1:] * 2),  # read twice in parts
        lambda x, y, _: (x + y)[0] * 3,  # by a number
        lambda x, y, _: (x @ y.T)[:, :2] * 3,  # no elementwise value
        lambda x, y, _: (x + y,),  # returned
    ],
)
def test_everything_else_stays_as_it_is(function):
    graph = lowered(function, X, Y, B)
    assert sizes(slice_operands(graph)) == sizes(graph)


def check(function, *args):
    native, expected = (pb.compile(function, tier=tier)(*args) for tier in ("native", "fused"))
    several = isinstance(native, tuple)
    for one, other in zip(*((native, expected) if several else ([native], [expected])), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13)
    graph = slice_operands(lowered(function, *args))
    assert check_graph(graph) is not None

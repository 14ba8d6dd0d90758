"""The simplifying passes: what they find, and what they must leave."""

import re
from pathlib import Path

import numpy as np
import pytest

import pullback as pb
from pullback.backends.native import availability
from pullback.passes.pipeline import Stages, simplify


def simplified(function, *args):
    graph = simplify(pb.trace(function)(*args).graph, Stages())
    return [node.primitive.name for node in graph.nodes], graph


X = np.ones((2, 3))


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: np.sum(x * 1.0), ["sum"]),
        (lambda x: np.sum(1 * x), ["sum"]),
        (lambda x: np.sum(x * x) + np.sum(x**2) + np.sum(np.square(x)), ["square", "sum", "add", "add"]),
        (lambda x: np.negative(-x), []),
        (lambda x: np.broadcast_to(x, (4, 2, 3)) * np.ones((4, 2, 3)), ["mul"]),
        (lambda x: np.tanh(x) + np.tanh(x), ["tanh", "add"]),
        (lambda x: (np.exp(x), np.sum(x))[1], ["sum"]),
    ],
)
def test_finds(function, expected):
    assert simplified(function, X)[0] == expected


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: x + 0.0, ["add"]),  # -0.0 + 0.0 is 0.0
        (lambda x: x * 1.0, ["mul"]),  # single precision stays single, an integer would become a float
        (lambda x: np.broadcast_to(x, (4, 2, 3)) * 2, ["broadcast_to", "mul"]),  # nothing else gives the shape
        (lambda x: (x * 0.0) + (x * -0.0), ["mul", "mul", "add"]),  # the two zeros are not equal
    ],
)
def test_leaves(function, expected):
    assert simplified(function, np.ones((2, 3), np.int64) if expected == ["mul"] else X)[0] == expected


def test_reads_and_writes_of_memory_are_neither_merged_nor_dropped_nor_moved():
    def overwrites(a, b, c):
        return np.sum(a) + np.sum(pb.inplace.matmul(c, a, b)) + np.sum(a)

    plan = pb.compile(overwrites, tier="fused")
    plan(np.ones((2, 2)), np.ones((2, 2)), np.ones((2, 2)))
    assert operations(plan, "recorded") == ["sum", "copy", "matmul_into", "sum", "add", "sum", "add"]
    assert "undone writes, dead code, decompositions: values alone\nnothing changed" in plan.explain()


def test_what_is_overwritten_and_put_back_is_computed_elsewhere():
    def overwrites_twice(a, b, c):
        first = np.sum(pb.inplace.matmul(c, a, b))
        return first + np.sum(pb.inplace.multiply(b, a))

    gradient = pb.compile(pb.grad(overwrites_twice, wrt=(0, 1)), tier="fused")
    operands = [np.arange(4.0).reshape(2, 2) + k for k in range(3)]
    before = [operand.copy() for operand in operands]
    found = gradient(*operands)
    expected = pb.grad(overwrites_twice, wrt=(0, 1))(*operands)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    for operand, kept in zip(operands, before, strict=True):
        np.testing.assert_array_equal(operand, kept)
    assert not {"copy", "matmul_into", "elementwise_into", "restore"} & set(operations(gradient, "undone writes"))


def operations(plan, stage):
    page = plan.explain().split(f"# {stage}\n")[1].split("\n# ")[0]
    return [line.split("=")[1].split()[0] for line in page.splitlines() if " = " in line]


ENGINE = Path(pb.__file__).parent


def test_only_the_files_of_the_order_run_algebra_before_other_passes():
    calling = {
        str(file.relative_to(ENGINE))
        for file in ENGINE.rglob("*.py")
        if re.search(r"^from pullback\.simplification\.algebra import", file.read_text(), re.MULTILINE)
    }
    assert calling == {"simplification/order.py"}


@pytest.mark.skipif(availability.why_not() is not None, reason="no native code here")
def test_what_a_layer_leaves_behind_as_a_loop_is_dropped_by_a_pass_of_the_page():
    plan = pb.compile(pb.value_and_grad(lambda block, x: np.sum(pb.nn.rnn(block, x) ** 2)), tier="native")
    plan(pb.nn.rnn_block(3, 3), np.ones((4, 2, 3)))
    page = plan.explain()
    assert page.index("recurrent layers as loops") < page.index("recurrent layers: dead code")

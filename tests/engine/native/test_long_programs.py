"""Straight programs of many steps: what is made of them grows with their length, and no faster."""

import re

import numpy as np
import pytest

import pullback as pb
from pullback.backends.native.memory import plan_memory
from pullback.backends.native.program import MOST_CALLS, emit_program
from pullback.ir.checker import check_graph
from pullback.passes.rewriting import rewrite

rng = np.random.default_rng(0)
M, Y = 0.2 * rng.normal(size=(12, 12)), rng.normal(size=12)


def layered(count):
    def function(m, y):
        for step in range(count):
            y = np.tanh(m @ y) * (1.0 + 0.001 * step)
        return np.sum(y)

    return function


def emitted(count):
    graph = pb.trace(layered(count))(M, Y).graph
    memory = plan_memory(graph, 256)
    return memory, emit_program(memory, 256).text()


def test_a_program_of_many_kernels_is_functions_of_a_bounded_length():
    memory, text = emitted(2 * MOST_CALLS)
    functions = re.split(r"^define ", text, flags=re.MULTILINE)[1:]
    parts = [function for function in functions if re.match(r"internal i64 @part", function)]
    assert len(parts) == -(-len(memory.kernels.kernels) // MOST_CALLS)
    assert max(part.count("call void") for part in parts) <= MOST_CALLS


def test_the_text_of_a_program_grows_with_its_length_alone():
    sizes = [emitted(count)[1].count("\n") for count in (150, 300, 600)]
    assert sizes[2] - sizes[1] < 2.2 * (sizes[1] - sizes[0])


@pytest.mark.parametrize("returned", ["a value", "an argument too"])
def test_a_program_in_parts_gives_what_the_tape_gives(monkeypatch, returned):
    monkeypatch.setattr("pullback.compiling.program.roll_loops", lambda graph, _: graph)
    monkeypatch.setenv("PULLBACK_CACHE", "0")
    function = layered(2 * MOST_CALLS)
    if returned == "a value":
        gradient = pb.value_and_grad(function, wrt=(0, 1))
        value, gradients = pb.compile(gradient, tier="native")(M, Y)
        expected, wanted = gradient(M, Y)
        np.testing.assert_allclose(value, expected, rtol=1e-12)
        for ours, theirs in zip(gradients, wanted, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)
    else:
        value, y = pb.compile(lambda m, y: (function(m, y), y), tier="native")(M, Y)
        np.testing.assert_allclose(value, function(M, Y), rtol=1e-12)
        np.testing.assert_array_equal(y, Y)


def test_a_node_that_a_pass_leaves_is_the_same_node_and_is_typed_once(monkeypatch):
    graph = pb.trace(layered(20))(M, Y).graph
    typed = set()
    check_graph(graph, typed)
    same = rewrite(graph, lambda node: node)
    assert all(new is old for new, old in zip(same.nodes, graph.nodes, strict=True))
    for node in graph.nodes:
        monkeypatch.setattr(type(node.primitive), "infer", lambda *_, **__: pytest.fail("it was typed before"))
    check_graph(same, typed)


def test_jacobians_of_thirty_thousand_rows_are_no_more_kernels_than_those_of_ten():
    def reprojection(row):
        turn, point, scale = row[:3], row[3:6], row[6]
        seen = point + np.cross(turn, point) / (1.0 + np.sum(turn * turn))
        return scale * seen[:2] / (2.0 + seen[2])

    plan = pb.compile(pb.vmap(pb.jacobian(reprojection)), tier="native")
    kernels = set()
    for count in (10, 30_000):
        rows = rng.uniform(-1, 1, size=(count, 7))
        ours = plan(rows)
        np.testing.assert_allclose(ours[:2], [pb.jacobian(reprojection)(row) for row in rows[:2]], atol=1e-12)
        assert plan.summary()["fallbacks"] == []
        kernels.add(plan.summary()["kernels"])
    assert max(kernels) < 60
    assert max(kernels) - min(kernels) < 10

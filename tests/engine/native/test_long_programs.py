"""Straight programs of many steps: what is made of them grows with their length, and no faster."""

import gc
import re
from collections import Counter

import numpy as np
import pytest

import pullback as pb
from pullback.backends.llvm.elementary.called_functions import LONG_NEST, MOST_BODIES
from pullback.backends.native.memory import plan_memory
from pullback.backends.native.program import MOST_CALLS, emit_program
from pullback.backends.nests.views import Views
from pullback.compiling import compiled_graph
from pullback.ir import checker
from pullback.ir.checker import check_graph
from pullback.passes.pipeline import Stages, simplify
from pullback.simplification.rewriting import rewrite

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


@pytest.mark.long
def test_the_text_of_a_program_grows_with_its_length_alone():
    sizes = [emitted(count)[1].count("\n") for count in (150, 300, 600)]
    assert sizes[2] - sizes[1] < 2.2 * (sizes[1] - sizes[0])


def test_a_step_more_is_a_bounded_number_of_bytes_of_text():
    few, many = (len(emitted(count)[1]) for count in (150, 300))
    assert (many - few) / 150 < 1700  # a nest and a call of a product; the body of tanh alone is 8,000


@pytest.mark.parametrize("count", [4, MOST_BODIES, MOST_BODIES + 1, 40])
def test_a_function_that_many_nests_compute_has_one_body(count):
    _, text = emitted(count)
    computed = 3 * count  # a nest is two vectors side by side and one behind them
    is_called = count > MOST_BODIES
    assert text.count(" = call <4 x double> @llvm.copysign") == (1 if is_called else computed)  # the end of a tanh
    assert text.count(" = call <4 x double> @tanh_of_v4f64(") == (computed if is_called else 0)


def test_long_nests_repeat_bodies_where_short_ones_call_them():
    def function(y):
        for step in range(2 * MOST_BODIES):
            y = y + np.sum(np.tanh(y * (1.0 + 0.001 * step)))
        return y

    for points, is_called in ((LONG_NEST - 4, True), (LONG_NEST, False)):
        graph = pb.trace(function)(np.ones(points)).graph
        assert ("@tanh_of_v8f64" in emit_program(plan_memory(graph, 256), 256).text()) == is_called


def nests_of(function, *args):
    """By name, how often nests of a program are called, and how many pointers they take."""
    graph = pb.trace(function)(*args).graph
    text = emit_program(plan_memory(graph, 256), 256).text()
    calls = Counter(re.findall(r"call void @(nest\w*)\(", text))
    heads = re.findall(r"^define internal void @(nest\w*)\((.*)\) nounwind", text, re.MULTILINE)
    return {name: (calls[name], parameters.count("ptr")) for name, parameters in heads}


def test_a_kernel_that_is_called_once_has_one_pointer_into_the_memory_of_the_plan():
    def function(m, a, b):
        for step in range(10):
            a, b = m @ (a * b + float(step)), m @ (a - b * float(step))
        return np.sum(a + b)

    found = nests_of(function, M, Y, Y + 1.0)
    assert [calls for calls, _ in found.values()].count(1) > 8
    assert all(pointers <= 3 for calls, pointers in found.values() if calls == 1)  # of the caller's: a and b


def test_a_kernel_that_is_called_from_several_places_takes_a_pointer_for_each_operand():
    def function(m, a, b):
        for _ in range(10):
            a, b = m @ (a * b), m @ (a - b)
        return np.sum(a + b)

    assert (10, 4) in nests_of(function, M, Y, Y + 1.0).values()  # a, b, and what is made of them


def test_the_places_of_values_are_looked_up_in_proportion_to_the_nodes(monkeypatch):
    def looks(count):
        seen = Counter()
        access = Views.access
        graph = pb.trace(layered(count))(M, Y).graph
        with monkeypatch.context() as patched:
            patched.setattr(Views, "access", lambda views, atom: (seen.update(looks=1), access(views, atom))[1])
            plan_memory(graph, 256)
        return seen["looks"], len(graph.nodes)

    (few, nodes), (many, more_nodes) = looks(150), looks(600)
    assert few < 25 * nodes
    assert many / more_nodes < 1.1 * few / nodes


def test_a_node_that_no_pass_changes_is_typed_once(monkeypatch):
    typed = Counter()
    check = checker.check_types
    monkeypatch.setattr(checker, "check_types", lambda node: (typed.update(nodes=1), check(node)))
    graph, stages = pb.trace(layered(50))(M, Y).graph, Stages()
    simplify(stages.add("recorded", graph), stages, lowered=True, looping=True)
    assert len(stages.graphs) > 5
    assert typed["nodes"] == len({node for _, one in stages.graphs for node in one.nodes}) < 1.1 * len(graph.nodes)


def test_the_page_and_the_hash_are_made_when_they_are_asked_for(monkeypatch):
    monkeypatch.setenv("PULLBACK_CACHE", "0")
    plan = pb.compile(layered(3), tier="native")
    with monkeypatch.context() as patched:
        for name in (
            "pullback.compiling.compiled_graph.format_graph",
            "pullback.backends.native.executable.program_key",
        ):
            patched.setattr(name, lambda *_, **__: pytest.fail("nobody asked for it"))
        patched.setattr(
            "pullback.backends.native.kernel_listing.format_kernels", lambda _: pytest.fail("nobody asked for it")
        )
        np.testing.assert_allclose(plan(M, Y), layered(3)(M, Y), rtol=1e-12)
    assert plan.summary()["hash"] == plan.summary()["hash"]
    assert "nest" in plan.explain()


def test_the_garbage_collector_waits_while_a_program_is_compiled_and_goes_on_afterwards(monkeypatch):
    seen = []
    plan_native = compiled_graph._native
    monkeypatch.setattr(compiled_graph, "_native", lambda *args: (seen.append(gc.isenabled()), plan_native(*args))[1])
    for enabled in (True, False):
        (gc.enable if enabled else gc.disable)()
        try:
            pb.compile(layered(3), tier="native")(M, Y)
            assert gc.isenabled() is enabled
        finally:
            gc.enable()
    assert seen == [False, False]


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("returned", ["an argument too", "a value"])
def test_a_program_in_parts_gives_what_the_tape_gives(monkeypatch, returned):
    monkeypatch.setattr("pullback.passes.loops.rolling.roll_loops", lambda graph, _: graph)
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


@pytest.mark.long
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

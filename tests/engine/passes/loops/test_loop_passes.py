"""Passes on loops: golden files of the graph before and after each, and counts of what is left in the bodies.

Renew the files with `pytest tests/engine/passes/loops --renew-golden`.
"""

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import pullback as pb
from pullback.ir.graph import Graph

GOLDEN = Path(__file__).parents[2] / "golden"
STEPS = 7


def layer(w, u, b, h, xs):
    """A recurrent layer as one would write it down."""

    def step(h, x):
        h = np.tanh(w @ x + u @ h + b)
        return h, h

    _, states = pb.scan(step, h, xs)
    return np.sum(states * states)


def scaled(a, c, xs):
    """A step with work that no step changes, and with a result nobody reads."""

    def step(carry, x):
        a, c, waste = carry
        c = c * np.exp(a) + x
        return (a, c, waste * x), (c, waste)

    (_, last, _), (sums, _) = pb.scan(step, (a, c, c), xs)
    return np.sum(last * sums)


rng = np.random.default_rng(0)
WEIGHTS = (rng.normal(size=(3, 2)), rng.normal(size=(3, 3)), rng.normal(size=3))
LAYER = (*WEIGHTS, np.zeros(3), rng.normal(size=(STEPS, 2)))
SCALED = (rng.normal(size=3), rng.normal(size=3), rng.normal(size=(STEPS, 3)))
PASSES = {
    "carries": ("loops: carries", pb.grad(scaled, wrt=0), SCALED),
    "hoisting": ("loops: hoisting", scaled, SCALED),
    "sums": ("loops: sums", pb.grad(layer, wrt=(0, 1, 2)), LAYER),
    "products": ("loops: products", pb.grad(layer, wrt=(0, 4)), LAYER),
}


def stages(function, *args):
    plan = pb.compile(function, tier="fused")
    plan(*args)
    assert plan.summary()["fallbacks"] == []
    return dict(re.findall(r"^# ([^\n]+)\n(graph.*?)(?=\n\n# |\Z)", plan.explain(), re.DOTALL | re.MULTILINE))


def last_graph(function, *args):
    plan = pb.compile(function, tier="fused")
    plan(*args)
    return plan._latest().stages.graphs[-1][1]


def loops_of(graph: Graph):
    return [node for node in graph.nodes if node.primitive.name == "scan"]


def count(graph: Graph):
    """Primitives outside of loops, and in the body of each."""
    bodies = [
        Counter(node.primitive.name for node in body.nodes) for loop in loops_of(graph) for _, body in loop.bodies()
    ]
    return Counter(node.primitive.name for node in graph.nodes), bodies


@pytest.mark.parametrize("name", PASSES)
def test_passes_do_what_the_golden_files_show(name, renew_golden):
    stage, function, args = PASSES[name]
    graphs = stages(function, *args)
    names = list(graphs)
    before, after = graphs[names[names.index(stage) - 1]], graphs[stage]
    text = "\n".join(
        line.partition(" test_loop_passes.py")[0].rstrip()
        for line in f"# before\n{before}\n\n# after\n{after}".splitlines()
    )
    file = GOLDEN / f"loop_{name}.txt"
    if renew_golden:
        file.write_text(text + "\n")
    assert text + "\n" == file.read_text()


def test_the_products_of_inputs_are_one_product_before_the_loop():
    outside, (body,) = count(last_graph(layer, *LAYER))
    assert outside["matmul"] == 1
    assert body["matmul"] == 1


def test_the_gradient_of_a_layer_has_two_products_in_its_loops_and_one_for_each_weight_outside():
    outside, (forward, backward) = count(last_graph(pb.grad(layer, wrt=(0, 1, 2)), *LAYER))
    assert (forward["matmul"], backward["matmul"]) == (1, 1)
    assert outside["matmul"] == 3  # w @ xs, and the gradients of w and u
    assert forward["mul"] + backward["mul"] == 1  # the derivative of tanh; no outer products


def test_the_gradient_of_the_inputs_is_one_product_behind_the_loop():
    outside, (_, backward) = count(last_graph(pb.grad(layer, wrt=4), *LAYER))
    assert backward["matmul"] == 1
    assert outside["matmul"] == 2  # w @ xs, and w^T @ delta


def test_the_backward_loop_carries_the_cotangent_of_the_state_alone():
    _, backward = loops_of(last_graph(pb.grad(layer, wrt=(0, 1, 2)), *LAYER))
    assert dict(backward.params)["carries"] == 1


def test_only_what_the_way_back_reads_is_saved():
    forward, _ = loops_of(last_graph(pb.grad(layer, wrt=(0, 1, 2)), *LAYER))
    stacked = [var for var in forward.outputs if var.type.shape[:1] == (STEPS,)]
    assert len(stacked) == 2  # the states, and the states before


def test_a_gradient_by_what_comes_after_the_loop_saves_nothing():
    def weighted(v, *layer_args):
        return layer(*layer_args) * np.sum(v)

    (forward,) = loops_of(last_graph(pb.grad(weighted), np.ones(2), *LAYER))
    assert len(forward.outputs) == 2  # the state, and the states


def test_what_no_step_changes_is_computed_once():
    outside, (body,) = count(last_graph(scaled, *SCALED))
    assert (outside["exp"], body["exp"]) == (1, 0)


def test_dead_carries_and_results_are_dropped():
    (loop,) = loops_of(last_graph(scaled, *SCALED))
    assert dict(loop.params)["carries"] == 1
    assert len(loop.outputs) == 2


def test_a_carry_that_is_handed_on_as_it_came_is_a_constant():
    def unchanged(a, xs):
        (_, last), _ = pb.scan(lambda carry, x: ((carry[0], carry[0] * carry[1] + x), None), (a, a), xs)
        return last

    (loop,) = loops_of(last_graph(unchanged, np.ones(3), np.ones((4, 3))))
    assert dict(loop.params)["carries"] == 1


def test_loops_in_loops_are_simplified_too():
    def nested(w, xs):
        def outer(c, x):
            def inner(c, y):
                return np.tanh(c * y + np.exp(w)), None

            return pb.scan(inner, c, x)[0], None

        return np.sum(pb.scan(outer, 0 * w, xs)[0])

    args = (np.ones(2), rng.normal(size=(3, 4, 2)))
    graph = last_graph(pb.grad(nested), *args)
    text = str([body for loop in loops_of(graph) for _, body in loop.bodies()])
    assert "exp" not in text
    np.testing.assert_allclose(pb.compile(pb.grad(nested), tier="fused")(*args), pb.grad(nested)(*args), rtol=1e-10)


def test_negatives_and_transposes_of_outer_products_are_products_after_the_loop_too():
    def total(w, xs):
        def outers(c, x):
            return c + -(x[:, None] * x[::-1]) + (x[:, None] @ np.cos(x)[None]).T, None

        return pb.scan(outers, w, xs)[0]

    args = (rng.normal(size=(3, 3)), rng.normal(size=(STEPS, 3)))
    graph = last_graph(total, *args)
    outside, bodies = count(graph)
    assert outside["matmul"] == 2
    assert all(not {"matmul", "add", "neg", "transpose"} & body.keys() for body in bodies)
    np.testing.assert_allclose(pb.compile(total, tier="fused")(*args), total(*args), rtol=1e-12)


def test_a_product_with_a_number_of_the_step_is_no_outer_product():
    def loss(x, y):
        return np.sum(pb.fori_loop(0, 3, lambda i, h: np.tanh(h + x * i), x) * y)

    args = np.ones((1, 1)), np.ones(1)
    np.testing.assert_allclose(pb.compile(pb.grad(loss))(*args), pb.grad(loss)(*args))

"""Sums of outer products in straight code are one product."""

import numpy as np
import pytest

import pullback as pb
from pullback.backends import interpreter
from pullback.core.types import type_of
from pullback.passes.outer_products import join_outer_products
from pullback.planning.schedule import plan_memory
from pullback.traces.recorder import record


def rng():
    return np.random.default_rng(2)


def joined(function, *args):
    """The rules of a function after the pass, and that its value is the same."""
    graph, _ = record(lambda *traced: ([function(*traced)], None), [type_of(arg) for arg in args], list(args))
    after = join_outer_products(graph)
    captured = [capture.value for capture in after.captures]
    found = interpreter.emit(plan_memory(after)).program(*args, *captured)[0]
    np.testing.assert_allclose(found, function(*args), rtol=1e-12, atol=1e-12)
    return [node.primitive.name for node in after.nodes]


ROWS, COLUMNS, MATRIX = rng().normal(size=(6, 20)), rng().normal(size=(6, 30)), rng().normal(size=(20, 30))


def test_outer_products_by_broadcasting_are_one_product():
    def total(a, b, c):
        for x, y in zip(a, b, strict=True):
            c = c + x[:, None] * y
        return c

    names = joined(total, ROWS, COLUMNS, MATRIX)
    assert names.count("matmul") == 1
    assert names.count("add") == 1
    assert "mul" not in names


def test_negatives_transposes_and_thin_products_are_terms_too():
    def total(a, b, c):
        for k in range(6):
            c = c - 0 if k < 0 else c + (-(a[k][:, None] @ b[k][None])) + (b[k][:, None] * a[k][None]).T
        return c + a[:2].T @ b[:2] + (b[:3].T @ a[:3]).T

    names = joined(total, ROWS, COLUMNS, MATRIX)
    assert names.count("matmul") == 2  # what is added, and what is taken off
    assert names.count("sub") == 1


def test_nothing_but_negative_terms_give_a_negative():
    def total(a, b):
        return -(a[0][:, None] * b[0]) + -(a[1][:, None] * b[1]) + -(a[2][:, None] * b[2]) + -(a[3][:, None] * b[3])

    assert joined(total, ROWS, COLUMNS).count("matmul") == 1


@pytest.mark.parametrize(
    "total",
    [
        lambda a, b: sum(x[:, None] * y for x, y in zip(a[:3], b[:3], strict=True)),  # few terms
        lambda a, b: sum(x[:5, None] * y[:5] for x, y in zip(a, b, strict=True)),  # a small matrix
        lambda a, b: sum(x[:, None] * y[:20] * y[0] for x, y in zip(a, b, strict=True)),  # no outer products
        lambda a, b: sum((x[:, None] * np.ones((20, 30))) for x in a),  # no rows
        lambda a, b: sum((x[:, None].astype("f4") * y.astype("f4")) for x, y in zip(a, b, strict=True)) + a[0, 0],
        lambda a, b: sum((x[:1, None] * y) for x, y in zip(a, b, strict=True)) + a[0][:, None],  # rows of the sum
    ],
)
def test_other_sums_stay(total):
    assert "matmul" not in joined(total, ROWS, COLUMNS)


def test_a_term_that_is_read_elsewhere_stays():
    def total(a, b):
        terms = [x[:, None] * y for x, y in zip(a, b, strict=True)]
        return np.sum(terms[0]) + terms[0] + terms[1] + terms[2] + terms[3] + terms[4]

    assert joined(total, ROWS, COLUMNS).count("mul") == 1


def test_the_gradient_by_a_matrix_that_is_used_again_and_again_is_one_product():
    def scaled(kernel, a):
        u = np.ones(40)
        for _ in range(8):
            v = a / (kernel.T @ u)
            u = a / (kernel @ v)
        return np.sum(u * v)

    kernel, a = rng().uniform(0.5, 1.5, size=(40, 40)), rng().uniform(0.5, 1.5, size=40)
    plan = pb.compile(pb.value_and_grad(scaled, wrt=(0, 1)), tier="native")
    for found, expected in zip(plan(kernel, a)[1], pb.grad(scaled, wrt=(0, 1))(kernel, a), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)
    names = [name for name, _ in plan._last.stages.graphs]
    if "outer products" in names:  # programs are native here
        graph = plan._last.stages.graphs[-1][1]
        large = [node for node in graph.nodes if node.outputs[0].type.shape == (40, 40)]
        assert sum(node.primitive.name in ("mul", "add") for node in large) == 0
        assert plan.summary()["state_bytes"] < 4 * kernel.nbytes

"""Sums of products with a common factor become one product, where that can be trusted."""

import numpy as np
import pytest

import pullback as pb
from pullback.core.types import type_of
from pullback.passes.common_factors import LEAST_LENGTH, factor_out
from pullback.traces.recorder import record

N = LEAST_LENGTH
rng = np.random.default_rng(5)
A, B, C, X, Y = rng.normal(size=(5, N + 1, N + 1))
WIDE = rng.normal(size=(N + 1, N + 8))


def factored(function, *args):
    graph = record(lambda *traced: ([function(*traced)], None), [type_of(arg) for arg in args], list(args))[0]
    return graph, factor_out(graph)


def products_of(graph):
    return sum(node.primitive.name == "matmul" for node in graph.nodes)


def branches_of(graph):
    return [branch for node in graph.nodes for _, branch in node.bodies()]


def check_native(function, *args, **tolerance):
    with np.errstate(all="ignore"):
        expected = function(*args)
    np.testing.assert_allclose(pb.compile(function, tier="native")(*args), expected, **tolerance)


@pytest.mark.sample(every=4)
@pytest.mark.parametrize(
    ("function", "args", "products"),
    [
        (lambda a, b, x: a @ x + b @ x, (A, B, X), 1),
        (lambda a, b, x: x @ a + x @ b, (A, B, X), 1),
        (lambda a, b, x: a @ x - b @ x, (A, B, WIDE), 1),
        (lambda a, b, x: -(a @ x) - b @ x, (A, B, X), 1),
        (lambda a, b, x: a @ x + b @ (0.5 * x), (A, B, X), 1),
        (lambda a, b, x: 3 * (a @ (0.5 * -x)) - 2 * (b @ x), (A, B, X), 1),
        (lambda a, b, x: (a @ x) * a[0, 0] + (b * a[0, 1]) @ x, (A, B, X), 1),
        (lambda a, x: a @ x + a.T @ x, (A, X), 1),
        (lambda a, x: a @ x.T + a.T @ x.T, (A, X), 1),
        (lambda a, b, c, x: 1.5 * c - (a @ x + c + b @ x), (A, B, C, X), 1),
        (lambda a, b, x, y: a @ x + a @ y + b @ x + b @ y, (A, B, X, Y), 2),
        (lambda a, b, x, y: a @ x + a @ y + b @ x, (A, B, X, Y), 2),
    ],
)
def test_products_with_a_common_factor_are_one(function, args, products):
    graph, new = factored(function, *args)
    assert products_of(new) == products < products_of(graph)
    written, given = branches_of(new)
    assert products_of(written) == products_of(graph)
    assert not given.nodes
    assert new.outputs[0].type == graph.outputs[0].type
    check_native(function, *args, rtol=1e-11, atol=1e-11)
    single = [arg.astype("f4") for arg in args]
    check_native(function, *single, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (lambda a, b, x: a @ x + b @ x.T, (A, B, X)),
        (lambda a, b, x: a @ x + np.tanh(b @ x), (A, B, X)),
        (lambda a, b, x: a @ x + b[0] * (b @ x), (A, B, X)),  # a number for each column
        (lambda a, b, x: a @ x + b @ x, (A.astype(int), B.astype(int), X.astype(int))),
        (lambda a, b, x: a @ x + b @ x, (A[: N - 1], B[: N - 1], X)),  # small
        (lambda a, b, x: a @ x + b @ x, (A, B, X[:, : N - 1])),
        (lambda a, b, x: a @ x + b @ x, (A[:, : N - 1], B[:, : N - 1], X[: N - 1])),
        (lambda a, b, x: a @ x + b @ x[:, :1], (A, B, X)),  # stretched
        (lambda a, b, x: a @ x + (b.astype("f4") @ x.astype("f4")), (A, B, X)),
    ],
)
def test_other_sums_stay(function, args):
    graph, new = factored(function, *args)
    assert new is graph


def test_a_product_that_somebody_else_reads_stays():
    def function(a, b, x):
        product = a @ x
        return (product + b @ x) / product

    graph, new = factored(function, A, B, X)
    assert new is graph


LARGEST = np.finfo("f8").max
ONE_INFINITE = np.where(np.arange(X.size).reshape(X.shape) == 3, np.inf, X)


@pytest.mark.parametrize(
    ("a", "b", "x"),
    [
        (np.full_like(A, 0.7 * LARGEST), np.full_like(A, 0.6 * LARGEST), np.full_like(X, 1e-3)),  # a + b overflows
        (A, -A, ONE_INFINITE),  # inf - inf as it is written
        (A, B, ONE_INFINITE),
        (ONE_INFINITE, B, X),
        (ONE_INFINITE, -ONE_INFINITE, X),
        (np.where(A > 2, np.nan, A), B, X),
    ],
)
def test_what_is_not_finite_is_computed_as_written(a, b, x):
    check_native(lambda a, b, x: a @ x + b @ x, a, b, x, rtol=1e-11)


def test_products_in_steps_of_a_loop_are_one():
    def loss(x, target):
        for _ in range(10):
            x = 1.5 * x - 0.5 * x @ x.T @ x
        return np.sum((x - target) ** 2)

    plan = pb.compile(pb.value_and_grad(loss), tier="native")
    x = np.eye(N) + 0.1 * rng.normal(size=(N, N)) / N**0.5
    value, gradient = plan(x, Y[:N, :N])
    expected_value, expected = pb.value_and_grad(loss)(x, Y[:N, :N])
    np.testing.assert_allclose(value, expected_value, rtol=1e-12)
    np.testing.assert_allclose(gradient, expected, rtol=1e-9, atol=1e-11)
    assert "switch" in plan.explain()

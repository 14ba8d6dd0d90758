"""Sums of products become products of sums."""

from collections import Counter

import numpy as np
import pytest

import pullback as pb
from pullback.ir.types import type_of
from pullback.passes.sums import sum_factors
from pullback.traces.recorder import record

rng = np.random.default_rng(2)
A, B, C = rng.normal(size=(4, 3)), rng.normal(size=(3, 50)), rng.normal(size=(4, 1))
STACK = rng.normal(size=(6, 3, 5))


def recorded(function, *args):
    return record(lambda *traced: ([function(*traced)], None), [type_of(arg) for arg in args], list(args))[0]


def summed(function, *args):
    return sum_factors(recorded(function, *args))


def largest_product(graph):
    return max(node.outputs[0].type.size for node in graph.nodes if node.primitive.name == "matmul")


@pytest.mark.parametrize(
    ("function", "args", "size"),
    [
        (lambda a, b: np.sum(a @ b, axis=1), (A, B), 4),
        (lambda a, b: np.sum(a @ b, axis=0), (A, B), 50),
        (lambda a, b: np.sum(a @ b), (A, B), 1),
        (lambda a, b: np.sum(a @ b, axis=1, keepdims=True), (A, B), 4),
        (lambda a, b: np.sum((a @ b).T, axis=0), (A, B), 4),
        (lambda a, b, c: np.sum(-(c * (a @ b) - (a @ b) / c), axis=1), (A, B, C), 4),
        (lambda a, b, x: np.sum(a @ b + x, axis=1), (A, B, rng.normal(size=(4, 50))), 4),
        (lambda a, b: np.sum(2.5 * (a @ b), axis=1), (A, B), 4),
        (lambda a, b, c: np.sum(a @ (b @ c), axis=1), (A, B, rng.normal(size=(50, 7))), 4),
        (lambda a, s: np.sum(a @ s, axis=2), (A, STACK), 24),
        (lambda a, s: np.sum(np.transpose(a @ s, (2, 0, 1)), axis=0), (A, STACK), 24),
    ],
)
def test_a_sum_over_rows_or_columns_is_taken_of_the_factor(function, args, size):
    graph = summed(function, *args)
    assert largest_product(graph) == size
    assert graph.outputs[0].type == recorded(function, *args).outputs[0].type
    plan = pb.compile(function, tier="native")
    np.testing.assert_allclose(plan(*args), function(*args), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (lambda a, b: np.sum(np.tanh(a @ b), axis=1), (A, B)),  # not linear
        (lambda a, b: np.sum((a @ b) * b[:1], axis=1), (A, B)),  # a weight for each term
        (lambda a, s: np.sum(a @ s, axis=0), (A, STACK)),  # over the batch
        (lambda a, b, c: np.sum(a @ b + c, axis=1), (A, B, C)),  # stretched along the axis
        (lambda a, b: np.sum(b[0] / (a @ b), axis=1), (A, B)),
        (lambda a, b: np.sum(a @ b, axis=1), (A.astype(int), B.astype(int))),
        (lambda a, b: np.max(a @ b, axis=1), (A, B)),
    ],
)
def test_other_sums_stay(function, args):
    graph = recorded(function, *args)
    assert sum_factors(graph).nodes == graph.nodes


def test_a_product_that_is_read_elsewhere_stays():
    def both(a, b):
        c = a @ b
        return np.sum(c, axis=1) @ c

    assert largest_product(summed(both, A, B)) == 200


def test_one_sum_of_a_factor_serves_all():
    def function(a, b):
        return np.sum(a @ b, axis=1) + np.sum((3 * a) @ b, axis=1) + np.sum(b, axis=1, keepdims=True)[0, 0]

    names = Counter(node.primitive.name for node in summed(function, A, B).nodes)
    assert names["sum"] == 1


def test_the_gradient_by_an_offset_takes_no_product():
    """The gradient by the means is a product of a sum; only the products forth and for the weights have all points."""

    def loss(w, m, x):
        return np.sum(np.tanh((x - m) @ w) ** 2)

    points = rng.normal(size=(200, 3))
    w, m = rng.normal(size=(3, 4)), rng.normal(size=3)
    differentiated = pb.value_and_grad(loss, wrt=("w", "m"))
    plan = pb.compile(differentiated, tier="native")
    value, slopes = plan(w, m, points)
    expected, expected_slopes = differentiated(w, m, points)
    np.testing.assert_allclose(value, expected, rtol=1e-13)
    for slope, expected_slope in zip(slopes, expected_slopes, strict=True):
        np.testing.assert_allclose(slope, expected_slope, rtol=1e-12)
    assert plan.summary()["flops"] < 2 * 2 * 200 * 3 * 4 + 200 * 40
    assert plan.summary()["copies"] == 0


def test_sums_inside_of_loops_are_found():
    def function(w, xs):
        def step(carry, x):
            return carry + np.sum(w @ np.tanh(x), axis=1), None

        return pb.scan(step, np.zeros(4), xs)[0]

    graph = summed(function, A, STACK)
    ((_, body),) = (body for node in graph.nodes for body in node.bodies())
    assert largest_product(body) == 4
    np.testing.assert_allclose(pb.compile(function, tier="native")(A, STACK), function(A, STACK), rtol=1e-12)


def test_what_is_not_finite_is_so_afterwards():
    b = B.copy()
    b[1, 7], b[2, 9] = np.inf, np.nan
    plan = pb.compile(lambda a, b: np.sum(a @ b, axis=1), tier="native")
    with np.errstate(invalid="ignore"):
        assert not np.isfinite(plan(A, b)).any()

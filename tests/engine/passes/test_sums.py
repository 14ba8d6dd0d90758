"""Sums of products become products of sums, where these can be trusted."""

from collections import Counter

import numpy as np
import pytest

import pullback as pb
from pullback.core.types import type_of
from pullback.passes.sums import FEWEST_ELEMENTS, sum_factors
from pullback.traces.recorder import record

rng = np.random.default_rng(2)
A, B, C = rng.normal(size=(4, 3)), rng.normal(size=(3, 1100)), rng.normal(size=(4, 1))
STACK = rng.normal(size=(30, 3, 50))
LARGE = rng.normal(size=(1100, 3))


def recorded(function, *args):
    return record(lambda *traced: ([function(*traced)], None), [type_of(arg) for arg in args], list(args))[0]


def summed(function, *args):
    return sum_factors(recorded(function, *args))


def branches_of(graph):
    return [branch for node in graph.nodes for _, branch in node.bodies()]


def largest_product(graph):
    return max(node.outputs[0].type.size for node in graph.nodes if node.primitive.name == "matmul")


def names_of(graph):
    return [node.primitive.name for node in graph.nodes]


@pytest.mark.sample(every=3)
@pytest.mark.parametrize(
    ("function", "args", "size"),
    [
        (lambda a, b: np.sum(a @ b, axis=1), (A, B), 4),
        (lambda b, a: np.sum(b @ a, axis=0), (LARGE, A.T), 4),
        (lambda a, b: np.sum(a @ b), (A, B), 1),
        (lambda a, b: np.sum(a @ b, axis=1, keepdims=True), (A, B), 4),
        (lambda a, b: np.sum((a @ b).T, axis=0), (A, B), 4),
        (lambda a, b, c: np.sum(-(c * (a @ b) - (a @ b) / c), axis=1), (A, B, C), 4),
        (lambda a, b, x: np.sum(a @ b + x, axis=1), (A, B, rng.normal(size=(4, 1100))), 4),
        (lambda a, b: np.sum(2.5 * (a @ b), axis=1), (A, B), 4),
        (lambda a, s: np.sum(a @ s, axis=2), (A, STACK), 120),
        (lambda a, s: np.sum(np.transpose(a @ s, (2, 0, 1)), axis=0), (A, STACK), 120),
    ],
)
def test_a_sum_over_rows_or_columns_is_taken_of_the_factor(function, args, size):
    graph = summed(function, *args)
    assert largest_product(graph) == size
    written, given = branches_of(graph)
    assert not given.nodes
    assert largest_product(written) >= FEWEST_ELEMENTS
    assert graph.outputs[0].type == recorded(function, *args).outputs[0].type
    expected = function(*args)
    np.testing.assert_allclose(pb.compile(function, tier="native")(*args), expected, rtol=1e-12, atol=1e-12)


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
        (lambda a, b: np.sum(a @ b, axis=0), (A, B)),  # the magnitudes of the large factor would be computed
        (lambda a, b: np.sum(a @ b, axis=1), (A, B[:, :1000])),  # small
        (lambda x, y: np.sum(x + y, axis=1), (B, B)),  # no product in it
    ],
)
def test_other_sums_stay(function, args):
    graph = recorded(function, *args)
    assert sum_factors(graph).nodes == graph.nodes


def test_a_product_that_is_read_elsewhere_stays():
    def both(a, b):
        c = a @ b
        return np.sum(c, axis=1) @ c

    assert not branches_of(summed(both, A, B))


def test_terms_without_a_product_are_summed_together():
    """Terms that cancel are exact together: large ones apart would leave errors of their own."""

    def function(a, b, x, y):
        return np.sum(a @ b + (x - y), axis=1)

    x = 1e12 * rng.normal(size=(4, 1100))
    y = x + rng.integers(-3, 3, size=x.shape)
    graph = summed(function, A, B, x, y)
    assert names_of(graph).count("sub") == 1
    value = pb.compile(function, tier="native")(A, B, x, y)
    np.testing.assert_allclose(value, np.sum(A @ B, axis=1) + np.sum(x - y, axis=1), rtol=1e-11)


def test_one_sum_of_a_factor_serves_all():
    def function(a, b):
        return np.sum(a @ b, axis=1) + np.sum((3 * a) @ b, axis=1) + np.sum(b, axis=1, keepdims=True)[0, 0]

    counts = Counter(names_of(summed(function, A, B)))
    assert counts["sum"] == 1 + 1 + 2  # b and |b|, and whether each of two results is finite


def loss_of_offsets(w, m, x):
    return np.sum(np.tanh((x - m) @ w) ** 2)


@pytest.mark.parametrize(("dtype", "tolerance"), [("f4", 1e-5), ("f8", 1e-12)])
def test_the_gradient_by_an_offset_takes_no_product(dtype, tolerance):
    """The gradient by the means is a product of a sum; only the products forth and for the weights have all points."""
    w, m, points = (rng.normal(size=shape).astype(dtype) for shape in ((5, 4), 5, (1000, 5)))
    differentiated = pb.value_and_grad(loss_of_offsets, wrt=("w", "m"))
    plan = pb.compile(differentiated, tier="native")
    value, slopes = plan(w, m, points)
    expected, expected_slopes = differentiated(w, m, points)
    np.testing.assert_allclose(value, expected, rtol=tolerance)
    for slope, expected_slope in zip(slopes, expected_slopes, strict=True):
        np.testing.assert_allclose(slope, expected_slope, rtol=tolerance, atol=tolerance * abs(expected_slope).max())
    assert plan.summary()["copies"] == 0
    assert "switch" in plan.explain()


def test_sums_inside_of_loops_stay():
    def function(w, xs):
        def step(carry, x):
            return carry + np.sum(w @ np.tanh(x), axis=1), None

        return pb.scan(step, np.zeros(4), xs)[0]

    xs = rng.normal(size=(3, 3, 1100))
    assert all("switch" not in names_of(body) for body in branches_of(summed(function, A, xs)))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ([[1.0, 0.0]], {(0, 7): np.inf}),
        ([[1.0, 0.0]], {(1, 7): np.nan}),
        ([[0.0, 1.0]], {(0, 7): 1e308, (0, 8): 1e308}),  # their sum overflows, and would meet a zero
        ([[1e200, 1.0]], {(0, 7): 1e200, (0, 8): -1e200}),  # products overflow, and the sum would be zero
        ([[np.inf, 1.0]], {}),
        ([[-np.inf, np.inf]], {}),
    ],
)
def test_what_is_not_finite_is_as_it_is_written(a, b):
    factors = np.array(a * 4), rng.uniform(1, 2, size=(2, 1100))
    for place, value in b.items():
        factors[1][place] = value

    def function(a, b):
        return np.sum(a @ b, axis=1)

    with np.errstate(invalid="ignore", over="ignore"):
        expected = function(*factors)
        np.testing.assert_allclose(pb.compile(function, tier="native")(*factors), expected, rtol=1e-12)


def test_errors_are_no_larger_than_those_of_the_sum_as_written():
    """Also where sums cancel, as gradients by means do where the means fit."""
    a, b = rng.normal(size=(8, 10)), rng.normal(size=(10, 3000)) + 5
    b -= b.mean(axis=1, keepdims=True)

    def function(a, b):
        return np.sum(a @ b, axis=1)

    exact = np.array(
        [[float(x) for x in row] for row in a.astype(np.longdouble) @ b.sum(axis=1, dtype=np.longdouble)[:, None]]
    )
    magnitude = np.abs(a) @ np.abs(b).sum(axis=1)
    error = np.abs(pb.compile(function, tier="native")(a, b) - exact[:, 0])
    assert (error / magnitude).max() < 1e-17

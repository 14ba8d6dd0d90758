"""Sums over stacks of products become one product where its factors are views."""

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

import pullback as pb
from pullback.core.types import type_of
from pullback.ir.checker import check_graph
from pullback.passes.stacked_products import sum_within_products
from pullback.traces.recorder import record

RNG = np.random.default_rng(11)


def rewritten(function, *args):
    """The graph of a function before and after the pass."""
    graph, _ = record(lambda *traced: ([function(*traced)], None), [type_of(arg) for arg in args], list(args))
    return graph, check_graph(sum_within_products(graph))


def names(graph):
    return [node.primitive.name for node in graph.nodes]


def test_a_gradient_by_a_matrix_that_a_stack_is_multiplied_by_is_one_product():
    x, w = RNG.normal(size=(4, 6, 5)), RNG.normal(size=(5, 3))
    plan = pb.compile(pb.value_and_grad(lambda w, x: np.sum(np.tanh(x @ w))), tier="native")
    value, slope = plan(w, x)
    assert "# stacked products" in plan.explain()
    assert "f8[4,5,3]" not in plan.explain().rpartition("# stacked products")[2]
    np.testing.assert_allclose(slope, np.einsum("sij,sik->jk", x, 1 - np.tanh(x @ w) ** 2), rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(value, np.sum(np.tanh(x @ w)))


@pytest.mark.parametrize(
    "function",
    [
        lambda a, b: np.sum(a @ b, axis=(0, 1)) + (a @ b)[0, 0],
        lambda a, b: np.sum(a @ b, axis=2),
        lambda a, b: np.sum(a @ b, axis=(1, 2)),
        lambda a, b: np.sum(a[0] @ b, axis=0),
        lambda a, b: np.sum(a @ b[:, :1], axis=1),
        lambda a, b: np.sum(np.max(a @ b, axis=0), axis=0),
        lambda a, b: np.sum(a @ b[0, 0, :, 0], axis=0),
    ],
)
def test_other_sums_stay(function):
    graph, after = rewritten(function, RNG.normal(size=(2, 3, 4, 5)), RNG.normal(size=(2, 3, 5, 6)))
    assert names(after) == names(graph)


def test_factors_that_would_have_to_be_copied_stay_a_stack():
    a, b = RNG.normal(size=(4, 6, 5)), RNG.normal(size=(4, 5, 3))
    graph, after = rewritten(lambda a, b: np.sum(a @ b, axis=0), a, b)
    assert after is not graph or names(after) == names(graph)
    assert "transpose" not in names(after)  # rows of a, whose places lie between them, have no common stride
    assert "transpose" in names(
        rewritten(lambda a, b: np.sum(np.swapaxes(a, 1, 2) @ b, axis=0), a, b.reshape(4, 5, 3)[:, [0, 1, 2, 3, 4, 0]])[
            1
        ]
    )


@pytest.mark.long
@hypothesis.given(
    stack=st.lists(st.integers(1, 3), min_size=1, max_size=3),
    sizes=st.tuples(*(st.integers(1, 4),) * 3),
    data=st.data(),
)
@hypothesis.settings(deadline=None, max_examples=60)
def test_sums_are_those_of_numpy(stack, sizes, data):
    rows, steps, columns = sizes
    axes = tuple(data.draw(st.sets(st.integers(0, len(stack) - 1), min_size=1)))
    transposed, keepdims = data.draw(st.booleans()), data.draw(st.booleans())
    a = RNG.normal(size=(*stack, steps, rows) if transposed else (*stack, rows, steps))
    b = RNG.normal(size=(*stack, steps, columns))

    def function(a, b):
        return np.sum((np.swapaxes(a, -1, -2) if transposed else a) @ b, axis=axes, keepdims=keepdims)

    expected = function(a, b)
    for tier in ("stateful", "native"):
        found = pb.compile(function, tier=tier)(a, b)
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_stays_so(number):
    x, v = RNG.normal(size=(3, 4, 2)), RNG.normal(size=(3, 4, 5))
    x[1, 2, 0] = number
    with np.errstate(all="ignore"):
        expected = np.sum(np.swapaxes(x, 1, 2) @ v, axis=0)
    np.testing.assert_allclose(pb.compile(lambda x, v: np.sum(np.swapaxes(x, 1, 2) @ v, axis=0))(x, v), expected)


def test_sums_in_the_steps_of_a_loop_are_one_product():
    w, x = RNG.normal(size=(5, 5)), RNG.normal(size=(9, 3, 4, 5))

    def loss(w):
        def step(total, x):
            return total + np.sum(np.swapaxes(np.tanh(x @ w), 1, 2) @ x, axis=0), 0.0

        return np.sum(np.sin(pb.scan(step, np.zeros((5, 5)), x)[0]))

    plan = pb.compile(pb.value_and_grad(loss), tier="native")
    for planned, expected in zip(plan(w), pb.value_and_grad(loss)(w), strict=True):
        np.testing.assert_allclose(planned, expected, rtol=1e-10)
    assert "# stacked products" in plan.explain()

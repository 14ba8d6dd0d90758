"""Stores that are read again, stored over, or fill an array."""

from collections import Counter

import numpy as np
import pytest

import pullback as pb
from pullback.backends.native import availability
from pullback.ir.types import type_of
from pullback.passes.pipeline import Stages, simplify
from pullback.passes.stores import forward_stores
from pullback.traces.recorder import record

X = np.random.default_rng(0).normal(size=(6, 8))


def forwarded(function, *args):
    """The graph after the pass, and how often each primitive is in it; its values are those of the function."""
    graph, _ = record(lambda *traced: ([function(*traced)], None), [type_of(x) for x in args], list(args))
    found = forward_stores(graph)
    simplify(found, Stages())
    expected = function(*(np.array(x) for x in args))
    np.testing.assert_allclose(pb.compile(function, tier="fused")(*args), expected, rtol=1e-13)
    return Counter(node.primitive.name for node in found.nodes)


def copied(x):
    return pb.numpy.array(x)


@pytest.mark.parametrize(
    ("program", "left"),
    [
        (lambda y, x: y.__setitem__(2, x[0]) or y[2] * 1, {}),
        (lambda y, x: y.__setitem__(2, x[0]) or y[2, 1:-1] * 1, {}),
        (lambda y, x: y.__setitem__(slice(1, 5), x[:4]) or y[3] * 1, {}),
        (lambda y, x: y.__setitem__(slice(1, 6, 2), x[:3]) or y[1:6:4, 2:] * 1, {}),
        (lambda y, x: y.__setitem__(2, x[0]) or y[3] * 1, {}),
        (lambda y, x: y.__setitem__((slice(None), slice(0, 8, 2)), x[:, :4]) or y[:, 1::2] * 1, {}),
        (lambda y, x: y.__setitem__(2, x[0, 0]) or y[2] * 1, {}),
        (lambda y, x: y.__setitem__(slice(1, 4), x[:3]) or y[2:5] * 1, {"set_at": 1}),
        (lambda y, x: y.__setitem__(slice(0, 6, 2), x[:3]) or y[:3] * 1, {"set_at": 1}),
        (lambda y, x: y.__setitem__(2, x[0]) or y.__setitem__(2, x[1]) or y, {"set_at": 1}),
        (lambda y, x: y.__setitem__((2, 3), 1.0) or y.__setitem__(2, x[1]) or y, {"set_at": 1}),
        (lambda y, x: y.__setitem__(2, x[1]) or y.__setitem__((2, 3), 1.0) or y, {"set_at": 2}),
    ],
)
def test_what_was_stored_is_read_where_it_was_computed(program, left):
    found = forwarded(lambda x: program(copied(x) * 2, x), X)
    assert {name: count for name, count in found.items() if name == "set_at"} == left


def rows(x):
    u = np.zeros_like(x)
    u[0] = x[0]
    for t in range(len(x) - 1):
        u[t + 1] = np.sin(u[t]) * x[t]
    return u


def columns_with_a_gap(x):
    y = copied(x) * 3
    y[:, :2] = x[:, 2:4]
    y[:, 4:] = x[:, 4:] ** 2
    return y


def out_of_order(x):
    y = copied(x) * 3
    for row in (3, 0, 5, 1):
        y[row] = x[row] * row
    return y


@pytest.mark.parametrize("function", [rows, columns_with_a_gap, out_of_order])
def test_an_array_that_stores_fill_is_joined(function):
    found = forwarded(function, X)
    assert (found["set_at"], found["concatenate"]) == (0, 1)


def test_few_stores_are_made_in_the_array():
    def function(x):
        y = copied(x) * 3
        y[0] = x[1]
        y[-1] = 0.0
        return y

    found = forwarded(function, X)
    assert (found["set_at"], found["concatenate"]) == (2, 0)


def test_the_gradient_of_a_loop_of_stores_has_neither_stores_nor_copies():
    if availability.why_not():
        pytest.skip(availability.why_not())
    plan = pb.compile(pb.value_and_grad(lambda x: np.sum(rows(x) ** 2)), tier="native")
    for _ in range(2):
        value, gradient = plan(X)
    assert value == pytest.approx(np.sum(rows(X) ** 2))
    np.testing.assert_allclose(gradient, pb.grad(lambda x: np.sum(rows(x) ** 2))(X), rtol=1e-12)
    summary = plan.summary()
    assert summary["arrays"] == summary["copies"] == 0
    assert summary["fallbacks"] == []
    assert "set_at" not in plan.explain().rsplit("# program", 1)[-1]

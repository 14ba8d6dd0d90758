"""Stores that are read again, stored over, or fill an array."""

from collections import Counter

import numpy as np
import pytest

import pullback as pb
from pullback.backends.native import availability
from pullback.core.types import type_of
from pullback.passes.pipeline import Stages, simplify
from pullback.passes.store_forwarding import forward_stores
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


def ends_and_inside(u, x):
    for t in range(4):
        u[t + 1, 0] = 1.0
        u[t + 1, -1] = u[t, -1]
        u[t + 1, 1:-1] = u[t, 2:] - u[t, :-2] * x[t, 1:-1]
    return np.sin(u[4])


def inside_then_ends(u, x):
    for t in range(8):
        u[t + 1, 1:-1] = u[t, 2:] - u[t, :-2] * x[t % 6, 1:-1]
        u[t + 1, 0] = u[t + 1, 1]
        u[t + 1, -2:] = u[t + 1, 2] * x[0, 0]
    return np.sin(u[8])


def halves(u, x):
    u[1:3, :4, 2] = u[1:3, 4:, 0] * x[0, :4]
    u[1:3, 4:, 2] = x[1, 4:]
    return u[1:3, 2:6, 2] * 2


def one_by_one(u, x):
    for column in range(8):
        u[2, column] = x[0, column] * (u[2, column - 1] if column else 1.0)
    return u[2, 1:-1] * 2


def inside_alone(u, x):
    u[:, 0] = x[0, 0]
    for t in range(8):
        u[t + 1, 1:-1] = u[t, 2:] - u[t, :-2] * x[t % 6, 1:-1]
    return np.sin(u[8])


@pytest.mark.parametrize(
    ("program", "shape", "stores", "joined"),
    [
        (ends_and_inside, (6, 8), 1, 3),  # of the first row the ends are known, and there is no loop
        (inside_alone, (9, 8), 1, 8),  # the column
        (inside_then_ends, (9, 8), 0, 8),
        (halves, (6, 8, 3), 0, 1),
        (one_by_one, (6, 8), 0, 1),
    ],
)
def test_a_row_that_stores_fill_is_joined_and_read_as_one(program, shape, stores, joined):
    def function(x):
        return program(np.zeros_like(x, shape=shape), x)

    found = forwarded(function, X)
    assert (found["set_at"], found["concatenate"]) == (stores, joined)


def test_a_row_is_stored_at_once_in_an_array_that_is_read():
    def function(x):
        u = copied(x) * 2
        u[3, 0] = x[0, 0]
        u[3, 1:] = x[1, 1:]
        return np.sum(np.sin(u)) + u

    assert forwarded(function, X)["set_at"] == 1


def read_with_one_end(u, x):
    u[2, 0] = x[0, 0]
    first = np.sum(u[1:3])
    u[2, 1:] = x[1, 1:]
    return u * first


def returned_with_one_end(u, x):
    u[2, 0] = x[0, 0]
    first = u * 1
    u[2, 1:] = x[1, 1:]
    return u + first


def overlapping(u, x):
    u[2, :5] = x[0, :5]
    u[2, 3:6] = x[1, 3:6]
    return u * 2


def twice_and_a_gap(u, x):
    u[2, :5] = x[0, :5]
    u[2, 2:5] = x[1, 2:5]
    return u * 2


def with_steps(u, x):
    u[2, ::2] = x[0, ::2]
    u[2, 1::2] = x[1, 1::2]
    return u * 2


@pytest.mark.parametrize(
    "program", [read_with_one_end, returned_with_one_end, overlapping, twice_and_a_gap, with_steps]
)
def test_a_row_that_is_not_filled_or_seen_before_is_stored_as_it_was(program):
    assert forwarded(lambda x: program(copied(x) * 3, x), X)["set_at"] == 2


def test_a_wave_whose_ends_are_stored_apart_becomes_a_loop():
    if availability.why_not():
        pytest.skip(availability.why_not())

    def function(start, speed):
        u = np.zeros_like(start, shape=(42, 30))
        u[0] = start
        u[1] = start
        for t in range(1, 41):
            u[t + 1, 0] = u[t, 0]
            u[t + 1, -1] = u[t, -1]
            u[t + 1, 1:-1] = 2 * u[t, 1:-1] - u[t - 1, 1:-1] + speed * (u[t, 2:] - 2 * u[t, 1:-1] + u[t, :-2])
        return np.sum(u[-1] ** 2) + np.sum(u[20])

    start, speed = np.sin(np.linspace(0, 6, 30)), np.full(28, 0.2)
    gradient = pb.value_and_grad(function, wrt=(0, 1))
    plan = pb.compile(gradient, tier="native")
    (value, slopes), (expected, expected_slopes) = plan(start, speed), gradient(start, speed)
    assert value == pytest.approx(expected)
    for slope, other in zip(slopes, expected_slopes, strict=True):
        np.testing.assert_allclose(slope, other, rtol=1e-10, atol=1e-12)
    assert plan.summary()["copies"] == 0
    assert plan.summary()["kernels"] < 60  # 430 without a loop
    assert "scan" in plan.explain().rsplit("# program", 1)[-1]


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

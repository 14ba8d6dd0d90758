"""The order of stores and of what reads the array before them."""

from collections import Counter

import numpy as np
import pytest

import pullback as pb
from pullback.core.types import type_of
from pullback.passes.store_order import order_stores
from pullback.traces.recorder import record

X = np.random.default_rng(0).normal(size=(6, 8))


def ordered(function, *args):
    """The names of the nodes after the pass; the values of the graph stay those of the function."""
    graph, _ = record(lambda *traced: (list(function(*traced)), None), [type_of(x) for x in args], list(args))
    found = order_stores(graph)
    assert Counter(n.primitive.name for n in found.nodes) - Counter(copy=len(found.nodes)) == Counter(
        node.primitive.name for node in graph.nodes
    )
    expected = function(*(np.array(x) for x in args))
    for one, other in zip(pb.compile(function, tier="stateful")(*args), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13)
    return [node.primitive.name for node in found.nodes]


def test_what_reads_the_array_comes_before_the_store():
    def function(x):
        y = np.sin(x)
        old = y[1]
        new = pb.numpy.updated(y, 0, x[0])
        return (new, old * 2)

    assert ordered(function, X) == ["sin", "index", "index", "mul", "set_at"]


def test_what_it_needs_comes_with_it():
    def function(x):
        y = np.sin(x)
        new = pb.numpy.updated(y, 0, x[0])
        return (new, y * np.exp(np.cos(x)))

    assert ordered(function, X) == ["sin", "index", "cos", "exp", "mul", "set_at"]


def test_a_part_is_copied_for_what_needs_the_store():
    def function(x):
        y = np.sin(x)
        new = pb.numpy.updated(y, 0, x[0])
        return (new, y[0] * np.sum(new))

    assert ordered(function, X) == ["sin", "index", "index", "copy", "set_at", "sum", "mul"]


def test_a_part_that_is_returned_is_copied_once():
    def function(x):
        y = np.sin(x)
        new = pb.numpy.updated(y, 0, x[0])
        part = y[:2]
        return (new, part, part * np.sum(new))

    assert Counter(ordered(function, X))["copy"] == 1


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (pb.numpy.updated(x, 0, 1.0), x[0] * 2),  # the caller's array is copied all the same
        lambda x: ((y := np.sin(x)), pb.numpy.updated(y, 0, 1.0), y * 2),  # it is returned
        lambda x: ((y := np.sin(x)), (new := pb.numpy.updated(y, 0, 1.0)), y * new)[1:],  # all of it is read
    ],
)
def test_nothing_is_moved_before_a_store_that_copies(function):
    graph, _ = record(lambda x: (list(function(x)), None), [type_of(X)], [X])
    assert order_stores(graph) is graph


def test_a_store_that_reads_what_it_writes_reads_a_copy():
    def function(x):
        y = np.sin(x)
        y[1:] = y[:-1]
        return (y,)

    assert ordered(function, X) == ["sin", "index", "copy", "set_at"]


def test_a_store_that_reads_apart_from_what_it_writes_reads_the_array():
    def function(x):
        y = np.sin(x)
        y[0] = y[-1]
        return (y,)

    assert ordered(function, X) == ["sin", "index", "set_at"]


def test_two_stores_into_one_array_copy_it_once():
    def function(x):
        y = np.sin(x)
        return (pb.numpy.updated(y, 0, 1.0), pb.numpy.updated(y, 1, 2.0))

    assert ordered(function, X) == ["sin", "set_at", "set_at"]
    plan = pb.compile(function, tier="stateful")
    plan(X)
    assert plan.summary()["copies"] == 1


def test_stores_that_wait_for_each_other_are_put_in_some_order():
    def function(x):
        y, z = np.sin(x), np.cos(x)
        new_y = pb.numpy.updated(y, 0, z[0])
        new_z = pb.numpy.updated(z, 0, new_y[1])
        return (new_y + z, new_z + y)

    assert sorted(ordered(function, X)).count("set_at") == 2


def test_bodies_are_ordered_too():
    def function(x):
        def step(carry, row):
            y = np.sin(carry)
            new = pb.numpy.updated(y, 0, row[0])
            return new, y[1] * 2

        return pb.scan(step, x[0], x)

    graph, _ = record(lambda x: (list(function(x)), None), [type_of(X)], [X])
    found = order_stores(graph)
    (loop,) = (node for node in found.nodes if node.bodies())
    names = [node.primitive.name for node in dict(loop.bodies())["body"].nodes]
    assert names.index("mul") < names.index("set_at")


@pytest.mark.long
def test_a_chain_of_a_thousand_stores_is_ordered():
    def function(x):
        y = np.sin(x)
        total = 0.0
        for step in range(1000):
            old = y[step % 6]
            y = pb.numpy.updated(y, step % 6, x[0] * step)
            total = total + np.sum(old)
        return (y, total)

    assert Counter(ordered(function, X))["copy"] == 0

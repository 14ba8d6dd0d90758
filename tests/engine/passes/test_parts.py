"""Parts of arrays that are joined instead of written into zeros, and taken from what they were joined of."""

from collections import Counter

import numpy as np
import pytest

import pullback as pb
from pullback.core.types import type_of
from pullback.passes.parts import join_parts
from pullback.rules.indexing import scatter
from pullback.rules.storing import add_at
from pullback.traces.recorder import record

F8 = np.dtype(np.float64)
rng = np.random.default_rng(1)
A, B = rng.normal(size=(2, 3)), rng.normal(size=(4, 3))


def counted(function, *args):
    graph, _ = record(lambda *traced: ([function(*traced)], None), [type_of(arg) for arg in args], list(args))
    return Counter(node.primitive.name for node in join_parts(graph).nodes)


def written(*pairs, shape):
    """Parts, written into zeros one after the other."""
    (first, key), *others = pairs
    whole = scatter(first, key=key, shape=shape, dtype=F8)
    for value, key in others:
        whole = add_at(whole, value, key=key)
    return whole


def test_parts_that_fill_an_array_are_joined():
    found = counted(lambda a, b: written((b, slice(2, 6)), (a, slice(0, 2)), shape=(6, 3)), A, B)
    assert found == {"concatenate": 1}


def test_parts_along_the_last_axis_are_joined_in_order():
    key = (slice(None), slice(3, 6))
    found = counted(lambda a: written((a, (slice(None), slice(0, 3))), (a, key), shape=(2, 6)), A)
    assert found == {"concatenate": 1}


@pytest.mark.parametrize(
    ("keys", "shape"),
    [
        pytest.param((slice(0, 2), slice(1, 3)), (3, 3), id="overlapping"),
        pytest.param((slice(0, 2), slice(3, 5)), (5, 3), id="with a gap"),
        pytest.param((slice(0, 2), slice(2, 4)), (5, 3), id="not to the end"),
        pytest.param((slice(0, 4, 2), slice(1, 4, 2)), (4, 3), id="in turns"),
        pytest.param((slice(1, None, -1), slice(2, 4)), (4, 3), id="backwards"),
    ],
)
def test_other_parts_stay(keys, shape):
    found = counted(lambda a: written((a, keys[0]), (a, keys[1]), shape=shape), A)
    assert found == {"scatter": 1, "add_at": 1}


def test_a_chain_that_somebody_else_reads_stays():
    def function(a, b):
        first = scatter(a, key=slice(0, 2), shape=(6, 3), dtype=F8)
        return add_at(first, b, key=slice(2, 6)) + first

    assert counted(function, A, B)["add_at"] == 1


def test_a_part_that_is_stretched_stays():
    found = counted(lambda a: written((a, slice(0, 2)), (a[0], slice(2, 4)), shape=(4, 3)), A)
    assert found["concatenate"] == 0


def test_what_was_joined_is_taken_from_where_it_was():
    assert counted(lambda a, b: np.concatenate([a, b])[2:6] * 2.0, A, B) == {"mul": 1}
    assert counted(lambda a, b: np.concatenate([a, b])[1:6], A, B) == {"concatenate": 1, "index": 1}


def test_reshapes_of_reshapes_are_one_or_none():
    assert counted(lambda a: np.reshape(np.reshape(a, 6), (2, 3)) * 2.0, A) == {"mul": 1}
    assert counted(lambda a: np.reshape(np.reshape(a, 6), (3, 2)), A) == {"reshape": 1}


@pytest.mark.parametrize("tier", ["stateful", "native"])
def test_gradients_of_gates_that_are_parts_of_one_product(tier):
    def gates(w, x):
        z = x @ w
        return np.sum(np.tanh(z[:, :3]) * z[:, 3:5].sum() + z[:, 5:8])

    w, x = rng.normal(size=(3, 8)), rng.normal(size=(4, 3))
    gradient = pb.grad(gates, wrt=(0, 1))
    plan = pb.compile(gradient, tier=tier)
    for found, expected in zip(plan(w, x), gradient(w, x), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
    last = plan.explain().partition("# parts")[2]
    assert "concatenate" in last
    assert "add_at" not in last

"""Stores to all of an array are reshapes and sums."""

import numpy as np
import pytest

import pullback as pb
from pullback.core.types import type_of
from pullback.ir.checker import check_graph
from pullback.passes.whole_array_keys import reshape_wholes
from pullback.traces.recorder import record

RNG = np.random.default_rng(3)
X = RNG.normal(size=(4, 3))


def names(function, *args):
    """The nodes of a function after the pass."""
    graph, _ = record(lambda *traced: ([function(*traced)], None), [type_of(arg) for arg in args], list(args))
    return [node.primitive.name for node in check_graph(reshape_wholes(graph)).nodes]


def distances(x):
    return np.sum(np.sin(x[None, :, :] - 2.0 * x[:, None, :]) ** 2)


@pytest.mark.parametrize("tier", ["stateful", "native"])
def test_cotangents_of_new_axes_are_added_without_a_store(tier):
    plan = pb.compile(pb.value_and_grad(distances), tier=tier)
    value, slope = plan(X)
    apart = X[None, :, :] - 2.0 * X[:, None, :]
    both = np.sin(2 * apart)
    np.testing.assert_allclose(value, np.sum(np.sin(apart) ** 2), rtol=1e-13)
    np.testing.assert_allclose(slope, np.sum(both, axis=0) - 2.0 * np.sum(both, axis=1), rtol=1e-12, atol=1e-14)
    after = plan.explain().rpartition("# whole-array keys")[2]
    assert "reshape" in after
    assert "add_at" not in after
    assert "scatter" not in after


@pytest.mark.parametrize(
    ("key", "shape"),
    [
        ((slice(None), None), (4, 1, 3)),
        ((Ellipsis, None), (4, 3, 1)),
        ((slice(0, 4), slice(0, 3)), (4, 3)),
        ((None, Ellipsis), (1, 4, 3)),
    ],
)
def test_what_is_added_by_a_key_of_everything_is_a_sum(key, shape):
    v = RNG.normal(size=shape)
    assert names(lambda x, v: pb.numpy.added(x, key, v), X, v) == ["reshape", "add"]
    for tier in ("stateful", "native"):
        found = pb.compile(lambda x, v: pb.numpy.added(x, key, v), tier=tier)(X, v)
        np.testing.assert_array_equal(found, X + v.reshape(X.shape))


@pytest.mark.parametrize(
    ("key", "shape"),
    [
        ((slice(None, None, -1),), (4, 3)),
        ((slice(1, None),), (3, 3)),
        ((slice(None), slice(None, None, 2)), (4, 2)),
        ((0,), (3,)),
        ((slice(None), None), (4, 1, 1)),
        ((slice(None),), ()),
    ],
)
def test_other_stores_stay(key, shape):
    assert names(lambda x, v: pb.numpy.added(x, key, v), X, RNG.normal(size=shape))[-1] == "add_at"


def test_stores_in_the_steps_of_a_loop_are_reshapes():
    def loss(x):
        return pb.fori_loop(0, 5, lambda _, x: x + 0.1 * np.sum(np.tanh(x[None] - x[:, None]), axis=1), x)[0, 0]

    plan = pb.compile(pb.value_and_grad(loss), tier="native")
    for planned, expected in zip(plan(X), pb.value_and_grad(loss)(X), strict=True):
        np.testing.assert_allclose(planned, expected, rtol=1e-11, atol=1e-15)
    assert "# whole-array keys" in plan.explain()


def test_signs_of_zeros_stay():
    plan = pb.compile(lambda v: pb.numpy.added(np.zeros((2, 1)), (slice(None), 0), v) * 1.0, tier="native")
    np.testing.assert_array_equal(np.signbit(plan(np.array([-0.0, 0.0]))), [[False], [False]])

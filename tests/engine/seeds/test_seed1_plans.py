"""Seed 1 in plans: arrays of the layer by number, and what proves that the product may be overwritten."""

import numpy as np
import pytest

import pullback as pb

N = 100
RNG = np.random.default_rng(0)
W, X = (RNG.normal(size=(N, N)).astype("f4") for _ in range(2))


def layer(w, x):
    return np.sum(pb.nn.dense_bias_act(w, x, None, "tanh"))


def plain(w, x):
    return np.sum(np.tanh(w @ x))


@pytest.mark.parametrize("function", [layer, plain])
@pytest.mark.parametrize(("once", "arrays"), [(False, 4), (True, 3)])
def test_s1_5_four_arrays_for_a_reusable_pullback_and_three_for_one_that_is_called_once(function, once, arrays):
    plan = pb.compile(function, tier="fused")
    plan.vjp(W, X, once=once)[1](1.0)
    summary = plan.pullbacks[once].summary()
    assert summary["arrays"] + summary["backward"]["arrays"] == arrays
    assert summary["bytes"] + summary["backward"]["bytes"] == arrays * W.nbytes


@pytest.mark.parametrize("function", [layer, plain])
def test_s1_5_nothing_new_in_steady_state(function, arrays_in_steady_state):
    plan = pb.compile(function, tier="stateful")
    assert arrays_in_steady_state(lambda: plan.vjp(W, X)[1](1.0)) == {0}
    assert arrays_in_steady_state(lambda: plan.vjp(W, X, once=True)[1](1.0)) == {0}
    gradient = pb.compile(pb.grad(function, wrt=(0, 1)), tier="stateful")
    assert arrays_in_steady_state(lambda: gradient(W, X)) == {0}


def test_s1_2_the_product_is_overwritten_only_where_nobody_else_reads_it():
    """Wrong answers in silence where NNlib's docstring warns of them: here liveness decides."""

    def read_again(w, x):
        z = w @ x
        return np.sum(np.tanh(z)) + np.sum(z * z)

    plan = pb.compile(pb.grad(read_again, wrt=(0, 1)), tier="fused")
    w, x = W[:4, :5].astype("f8"), X[:5, :3].astype("f8")
    for ours, theirs in zip(plan(w, x), pb.grad(read_again, wrt=(0, 1))(w, x), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_s1_8_inputs_are_not_overwritten_whatever_the_plan_does():
    for tier in ("fused", "stateful"):
        w, x = W.copy(), X.copy()
        plan = pb.compile(pb.grad(lambda w, x: np.sum(np.tanh(w) * np.exp(x)), wrt=(0, 1)), tier=tier)
        for _ in range(3):
            plan(w, x)
        np.testing.assert_array_equal(w, W)
        np.testing.assert_array_equal(x, X)

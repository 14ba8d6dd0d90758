"""vjp and jvp as plans: a forward and a backward program, with what is saved between them."""

import numpy as np
import pytest

import pullback as pb
from pullback import trees
from pullback.errors import DifferentiationError, PullbackReuseError

TIERS = pytest.mark.parametrize("tier", ["fused", "stateful"])
RNG = np.random.default_rng(0)
W, X, B = RNG.normal(size=(5, 4)), RNG.normal(size=(4, 3)), RNG.normal(size=5)


def layer(w, x, b):
    return pb.nn.dense_bias_act(w, x, b, "tanh")


def several(w, x):
    y = np.tanh(w @ x)
    return {"y": y, "parts": (np.sum(y * y), y.T @ y)}


@TIERS
@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize(("function", "args"), [(layer, (W, X, B)), (several, (W, X)), (lambda x: x * 2.0, (3.0,))])
def test_values_and_cotangents_are_those_of_the_tape(tier, once, function, args):
    plan = pb.compile(function, tier=tier)
    for _ in range(3):
        y, pullback = plan.vjp(*args, once=once)
        expected_y, expected = pb.vjp(function, *args)
        leaves, rebuild = trees.flatten(expected_y)
        y_bar = rebuild(iter([np.full(np.shape(leaf), 0.5) for leaf in leaves]))
        for ours, theirs in zip(trees.flatten(y)[0], leaves, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-12)
        for ours, theirs in zip(pullback(y_bar), expected(y_bar), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    assert plan.pullbacks[once].summary()["fallbacks"] == []


@TIERS
def test_a_reusable_pullback_gives_the_same_right_answer_each_time(tier):
    plan = pb.compile(layer, tier=tier)
    y, pullback = plan.vjp(W, X, B)
    y[...] = 7.0  # the caller's
    _, other = plan.vjp(W * 2, X, B)
    first = [np.array(part) for part in pullback(np.ones((5, 3)))]
    other(np.ones((5, 3)))
    for _ in range(3):
        for ours, theirs in zip(pullback(np.ones((5, 3))), first, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    for ours, theirs in zip(first, pb.vjp(layer, W, X, B)[1](np.ones((5, 3))), strict=True):
        np.testing.assert_allclose(ours, theirs)


@TIERS
def test_a_once_only_pullback_called_again_raises(tier):
    _, pullback = pb.compile(layer, tier=tier).vjp(W, X, B, once=True)
    pullback(np.ones((5, 3)))
    with pytest.raises(PullbackReuseError, match="once=True"):
        pullback(np.ones((5, 3)))


@TIERS
def test_jvp_is_a_plan(tier):
    plan = pb.compile(layer, tier=tier)
    tangents = (W + 1, X, B)
    for _ in range(2):
        for ours, theirs in zip(plan.jvp((W, X, B), tangents), pb.jvp(layer, (W, X, B), tangents), strict=True):
            np.testing.assert_allclose(ours, theirs)
    assert plan.pushed.summary()["fallbacks"] == []


@TIERS
def test_guards_choose_the_pullback_too(tier):
    def function(x):
        return np.sum(x * x) if x[0] > 0 else np.sum(3 * x)

    plan = pb.compile(function, tier=tier)
    for x in (np.ones(2), -np.ones(2), np.ones(2)):
        np.testing.assert_array_equal(plan.vjp(x)[1](1.0)[0], pb.grad(function)(x))
    assert plan.pullbacks[False].summary()["fallbacks"] == []


def test_nothing_is_allocated_in_steady_state(arrays_in_steady_state):
    plan = pb.compile(layer, tier="stateful")
    y_bar = np.ones((5, 3))
    for once in (False, True):
        assert arrays_in_steady_state(lambda once=once: plan.vjp(W, X, B, once=once)[1](y_bar)) == {0}


@pytest.mark.parametrize("wrong", ["1.0", None, {}, object()])
def test_a_cotangent_that_is_no_number_is_refused_in_words(wrong):
    for _, pullback in (pb.vjp(np.sum, np.ones(3)), pb.compile(np.sum, tier="native").vjp(np.ones(3))):
        with pytest.raises(DifferentiationError, match="cotangent"):
            pullback(wrong)


def test_what_overwrites_runs_on_the_tape():
    plan = pb.compile(lambda a, c: pb.inplace.matmul(c, a, a), tier="fused")
    c = np.full((2, 2), 9.0)
    _, pullback = plan.vjp(np.eye(2), c)
    pullback(np.ones((2, 2)))
    assert plan.pullbacks[False].summary()["fallbacks"]


def _arrays(once, function):
    plan = pb.compile(function, tier="fused")
    plan.vjp(W, X, once=once)[1](1.0)
    summary = plan.pullbacks[once].summary()
    return summary["arrays"] + summary["backward"]["arrays"]


@pytest.mark.parametrize(
    "function",
    [lambda w, x: np.sum(pb.nn.dense_bias_act(w, x, None, "tanh")), lambda w, x: np.sum(np.tanh(w @ x))],
    ids=["fused rule", "plain NumPy"],
)
def test_a_layer_makes_four_arrays_to_be_pulled_back_often_and_three_once(function):
    """The output, its cotangent (in the memory of the output, once), dW and dX."""
    assert (_arrays(False, function), _arrays(True, function)) == (4, 3)

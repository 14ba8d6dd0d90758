"""Layers in plain NumPy live in as few arrays as the fused rules they are."""

import numpy as np
import pytest

import pullback as pb

RNG = np.random.default_rng(0)
W, X, B = RNG.normal(size=(6, 5)), RNG.normal(size=(5, 4)), RNG.normal(size=(6, 1))
PLAIN = {
    "tanh": np.tanh,
    "sigmoid": lambda z: 1 / (1 + np.exp(-z)),
    "softplus": lambda z: np.log1p(np.exp(z)),
    "identity": lambda z: z,
}


def planned(function):
    plan = pb.compile(pb.value_and_grad(function, wrt=(0, 1, 2)), tier="fused")
    return plan, plan(W, X, B)


@pytest.mark.parametrize("act", PLAIN)
def test_a_layer_in_plain_numpy_makes_as_many_arrays_as_the_fused_rule(act):
    form = PLAIN[act]
    plain, (value, gradients) = planned(lambda w, x, b: np.sum(form(w @ x + b)))
    fused, (expected_value, expected) = planned(lambda w, x, b: np.sum(pb.nn.dense_bias_act(w, x, b, act)))
    assert plain.summary()["arrays"] == fused.summary()["arrays"]
    assert plain.summary()["bytes"] == fused.summary()["bytes"]
    np.testing.assert_allclose(value, expected_value)
    for ours, theirs in zip(gradients, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_what_somebody_else_reads_is_left_alone():
    def function(w, x, b):
        z = w @ x + b
        e = np.exp(-z)
        return np.sum(1 / (1 + e)) + np.sum(e * z)

    plan, (value, gradients) = planned(function)
    assert "sigmoid" not in plan.explain()
    expected_value, expected = pb.value_and_grad(function, wrt=(0, 1, 2))(W, X, B)
    np.testing.assert_allclose(value, expected_value)
    for ours, theirs in zip(gradients, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: 2 / (1 + np.exp(-x)),
        lambda x: 1 / (2 + np.exp(-x)),
        lambda x: 1 / (1 - np.exp(-x)),
        lambda x: 1 / (1 + np.exp(x)),
    ],
)
def test_what_only_looks_like_a_pattern_is_none(function):
    x = np.array([0.5, 1.5])
    plan = pb.compile(function, tier="fused")
    np.testing.assert_array_equal(plan(x), function(x))
    assert "sigmoid" not in plan.explain()


def test_a_chain_of_products_runs_the_needed_ones_and_elementwise_chains_write_in_place():
    matrices = [RNG.normal(size=(5, 5)) for _ in range(3)]

    def function(x, a, b, c):
        return np.sum(np.exp(np.sin(a @ b @ c @ x) * 2 + 1))

    plan = pb.compile(pb.grad(function), tier="fused")
    x = RNG.normal(size=(5, 5))
    np.testing.assert_allclose(plan(x, *matrices), pb.grad(function)(x, *matrices))
    text = plan.explain().partition("# program")[2]
    assert text.count("matmul(") == 4  # a @ b, (a @ b) @ c, … @ x, and one product back
    # The two products on the way, what sin and exp read or give, and the gradient.
    assert plan.summary()["arrays"] <= 5

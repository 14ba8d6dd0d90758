"""checkpoint: the same derivative, less kept, more computed."""

import numpy as np
import pytest

import pullback as pb
from pullback.traces.tape import Tape

RNG = np.random.default_rng(3)
A = RNG.normal(size=(4, 4))
X = RNG.normal(size=4)


def layer(x):
    return np.tanh(A @ x) * 2


def network(x, wrap):
    return np.sum(wrap(layer)(wrap(layer)(x)) * x)


def plain(function):
    return function


def test_the_gradient_is_the_same_and_the_inside_is_computed_again():
    with pb.debug.counting() as counts:
        gradient = pb.grad(lambda x: network(x, pb.checkpoint))(X)
    np.testing.assert_array_equal(gradient, pb.grad(lambda x: network(x, plain))(X))
    assert counts.evaluated["tanh"] == 4


@pytest.mark.parametrize(
    "derivative",
    [
        pb.hessian,
        lambda f: pb.jacobian(pb.grad(f), mode="reverse"),
        lambda f: pb.grad(lambda x: np.sum(pb.grad(f)(x) ** 2)),
        lambda f: lambda x: pb.jvp(f, (x,), (x,))[1],
        lambda f: lambda x: pb.linearize(f, x)[1](x),
        lambda f: lambda x: pb.vmap(f)(np.stack([x, 2 * x])),
    ],
)
def test_every_derivative_goes_through(derivative):
    ours = derivative(lambda x: network(x, pb.checkpoint))(X)
    np.testing.assert_allclose(ours, derivative(lambda x: network(x, plain))(X), rtol=1e-12, atol=1e-14)


def test_what_is_kept_are_the_inputs():
    def deep(x):
        for _ in range(50):
            x = np.sin(x)
        return x

    with Tape() as tape:
        x = tape.watch(np.ones(1000))
        pb.checkpoint(deep)(x)
    (record,) = tape.records
    assert [operand is x.value for operand in record.operands] == [True]
    assert record.y is None


def test_traced_values_from_around_the_function_get_their_gradient():
    gradient = pb.grad(lambda w: np.sum(pb.checkpoint(lambda x: np.sin(x * w) * w)(X)))(X)
    np.testing.assert_allclose(gradient, X * X * np.cos(X * X) + np.sin(X * X))


def test_checkpoints_nest():
    inner = pb.checkpoint(layer)
    nested = pb.grad(lambda x: np.sum(pb.checkpoint(lambda x: inner(inner(x)))(x)))(X)
    np.testing.assert_allclose(nested, pb.grad(lambda x: np.sum(layer(layer(x))))(X))


def test_the_users_function_runs_once():
    """Random numbers drawn in it are those of its one run."""
    rng = np.random.default_rng(4)
    drawn = []

    def noisy(x):
        drawn.append(rng.normal(size=4))
        return np.exp(x * drawn[-1])

    gradient = pb.grad(lambda x: np.sum(pb.checkpoint(noisy)(x)))(X)
    assert len(drawn) == 1
    np.testing.assert_allclose(gradient, drawn[0] * np.exp(X * drawn[0]))


def test_without_a_derivative_it_is_the_function():
    np.testing.assert_array_equal(pb.checkpoint(layer)(X), layer(X))
    assert pb.checkpoint(layer).__name__ == "layer"


def test_trees_and_keywords_go_through():
    function = pb.checkpoint(lambda p, *, scale: {"y": np.sin(p["w"]) * np.cos(p["w"]) * scale})
    gradient = pb.grad(lambda p: np.sum(function(p, scale=2.0)["y"]))({"w": X})
    np.testing.assert_allclose(gradient["w"], 2 * np.cos(2 * X))

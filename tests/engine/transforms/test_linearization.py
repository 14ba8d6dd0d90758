"""vjp, jvp and linearize, on trees of arguments and of results."""

import numpy as np
import pytest

import pullback as pb
from pullback.errors import DifferentiationError, PullbackReuseError

RNG = np.random.default_rng(2)
A = RNG.normal(size=(3, 4))
X = RNG.normal(size=4)


def layer(x):
    return np.tanh(A @ x)


def test_a_pullback_gives_a_tuple_with_one_cotangent_per_argument():
    y, pullback = pb.vjp(lambda a, x: a @ x, A, X)
    v = RNG.normal(size=3)
    a_bar, x_bar = pullback(v)
    np.testing.assert_allclose(y, A @ X)
    np.testing.assert_allclose(a_bar, np.outer(v, X))
    np.testing.assert_allclose(x_bar, A.T @ v)


def test_trees_go_in_and_come_out():
    value, pullback = pb.vjp(lambda p, q: {"y": p["w"] * q, "z": [np.sum(q), None]}, {"w": X, "none": None}, X + 1)
    np.testing.assert_allclose(value["y"], X * (X + 1))
    p_bar, q_bar = pullback({"y": np.ones(4), "z": [2.0, None]})
    np.testing.assert_allclose(p_bar["w"], X + 1)
    assert p_bar["none"] is None
    np.testing.assert_allclose(q_bar, X + 2)


def test_a_pullback_is_reusable_unless_it_is_once():
    _, pullback = pb.vjp(layer, X)
    rows = np.stack([pullback(unit)[0] for unit in np.eye(3)])
    np.testing.assert_allclose(rows, pb.jacobian(layer)(X))
    _, once = pb.vjp(layer, X, once=True)
    once(np.ones(3))
    with pytest.raises(PullbackReuseError, match="once=True"):
        once(np.ones(3))


def test_what_is_returned_beside_comes_third():
    y, pullback, beside = pb.vjp(lambda x: (layer(x), x[0]), X, has_aux=True)
    np.testing.assert_allclose(pullback(np.ones(3))[0], pb.vjp(layer, X)[1](np.ones(3))[0])
    np.testing.assert_allclose(y, layer(X))
    assert beside == X[0]
    _, _, beside = pb.jvp(lambda x: (layer(x), x[0]), (X,), (X,), has_aux=True)
    assert beside == X[0]


def test_linearize_runs_the_function_once_for_any_number_of_tangents():
    runs = []

    def counted(x, s):
        runs.append(None)
        return {"y": layer(x) * s}

    value, push = pb.linearize(counted, X, 2.0)
    for tangent in RNG.normal(size=(3, 4)):
        expected = pb.jvp(lambda x, s: {"y": layer(x) * s}, (X, 2.0), (tangent, 0.5))[1]["y"]
        np.testing.assert_allclose(push(tangent, 0.5)["y"], expected)
    np.testing.assert_allclose(value["y"], 2 * layer(X))
    assert len(runs) == 1


def test_an_argument_that_leads_nowhere_moves_nothing():
    assert pb.linearize(lambda x: 3.0, X)[1](X) == 0.0
    np.testing.assert_array_equal(pb.jvp(lambda x: np.ones(2), (X,), (X,))[1], np.zeros(2))


def test_the_value_is_the_callers_to_write_to():
    y, pullback = pb.vjp(np.exp, X)
    y[:] = 0
    np.testing.assert_allclose(pullback(np.ones(4))[0], np.exp(X))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pb.vjp(layer, X)[1](np.ones(4)), r"cotangent of shape \(4,\), the value has shape \(3,\)"),
        (lambda: pb.vjp(lambda x: (x, x), X)[1](X), "nested like the value"),
        (lambda: pb.jvp(layer, (X,), (X[:2],)), r"tangent of shape \(2,\), its argument has shape \(4,\)"),
        (lambda: pb.jvp(layer, (X,), (X, X)), "nested like the primals"),
        (lambda: pb.jvp(layer, (X,), (X * 1j,)), "complex, its argument is real"),
        (lambda: pb.linearize(layer, X)[1](X, X), "nested like the arguments"),
        (lambda: pb.vjp(lambda x: "text", X), "returned a str"),
        (lambda: pb.vjp(layer, "text"), "by a str"),
        (lambda: pb.vjp(layer, np.arange(4)), "dtype int64"),
        (lambda: pb.vjp(layer, X, has_aux=True), r"returns \(value, aux\)"),
    ],
)
def test_bad_use_is_one_sentence(call, message):
    with pytest.raises(DifferentiationError, match=message):
        call()

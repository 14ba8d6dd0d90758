"""Jacobians, Hessians and products with them, and every nesting of the modes."""

from dataclasses import dataclass

import numpy as np
import pytest

import pullback as pb
from pullback.errors import DifferentiationError

RNG = np.random.default_rng(1)
A = RNG.normal(size=(3, 4))
X = RNG.normal(size=4)


def layer(x):
    return np.tanh(A @ x)


def cubic(x):
    return np.sum(x**3 * np.sin(x[::-1]))


def differences(function, x, step=1e-6):
    columns = [(function(x + step * unit) - function(x - step * unit)) / (2 * step) for unit in np.eye(x.size)]
    return np.stack(columns, axis=-1)


@pytest.mark.parametrize("mode", ["auto", "forward", "reverse"])
def test_every_mode_gives_the_same_jacobian(mode):
    np.testing.assert_allclose(pb.jacobian(layer, mode=mode)(X), (1 - layer(X) ** 2)[:, None] * A, rtol=1e-12)


def test_auto_takes_the_mode_with_fewer_sweeps():
    with pb.debug.counting() as few_results:
        pb.jacobian(lambda x: A @ x)(X)
    with pb.debug.counting() as few_arguments:
        pb.jacobian(lambda x: A.T @ x)(X[:3])
    assert few_results.pulled["matmul"] == 1
    assert few_results.pushed["matmul"] == 0
    assert few_arguments.pulled["matmul"] == 0
    assert few_arguments.pushed["matmul"] == 1


def test_a_jacobian_runs_the_function_once():
    runs = []
    pb.jacobian(lambda x: (runs.append(None), layer(x))[1])(X)
    assert len(runs) == 1


def test_shapes_are_those_of_the_result_then_of_the_argument():
    x = RNG.normal(size=(2, 3))
    jacobian = pb.jacobian(lambda x: np.sum(x[:, None, :] * x[None, :, :], axis=-1))(x)
    assert jacobian.shape == (2, 2, 2, 3)
    np.testing.assert_allclose(jacobian[0, 1, 0], x[1])


def test_trees_of_results_hold_trees_of_arguments():
    @dataclass
    class Point:
        u: object
        v: object

    jacobian = pb.jacobian(lambda p: {"sum": np.sum(p.u * p.v), "twice": 2 * p.u})(Point(X, X + 1))
    np.testing.assert_allclose(jacobian["sum"].u, X + 1)
    np.testing.assert_allclose(jacobian["twice"].u, 2 * np.eye(4))
    np.testing.assert_allclose(jacobian["twice"].v, np.zeros((4, 4)))


def test_several_arguments_by_position_or_name():
    def product(a, b):
        return a * b

    by_a, by_b = pb.jacobian(product, wrt=("a", 1))(X, X + 1)
    np.testing.assert_allclose(by_a, np.diag(X + 1))
    np.testing.assert_allclose(by_b, np.diag(X))
    np.testing.assert_allclose(pb.jacobian(product, argnums=1)(X, X + 1), np.diag(X))


def test_a_number_has_a_jacobian_of_the_shape_of_the_result():
    np.testing.assert_allclose(pb.jacobian(lambda t: t * X)(2.0), X)
    assert pb.jacobian(np.sin)(0.0) == 1.0


def test_what_is_returned_beside_comes_beside():
    jacobian, beside = pb.jacobian(lambda x: (layer(x), {"x": x, "name": 3.0}), has_aux=True)(X)
    np.testing.assert_allclose(jacobian, pb.jacobian(layer)(X))
    np.testing.assert_array_equal(beside["x"], X)


def test_the_hessian_is_symmetric_and_agrees_with_differences():
    hessian = pb.hessian(cubic)(X)
    np.testing.assert_allclose(hessian, hessian.T)
    np.testing.assert_allclose(hessian, differences(pb.grad(cubic), X), rtol=1e-5, atol=1e-6)


def test_a_hessian_by_two_arguments_has_four_blocks():
    blocks = pb.hessian(lambda a, b: np.sum(a**2 * b), wrt=(0, 1))(X, X + 1)
    np.testing.assert_allclose(blocks[0][0], np.diag(2 * (X + 1)))
    np.testing.assert_allclose(blocks[0][1], np.diag(2 * X))
    np.testing.assert_allclose(blocks[1][0], np.diag(2 * X))
    np.testing.assert_allclose(blocks[1][1], np.zeros((4, 4)))


def test_hvp_is_the_hessian_times_a_vector_without_the_hessian():
    v = RNG.normal(size=4)
    with pb.debug.counting() as counts:
        product = pb.hvp(cubic, X, v)
    np.testing.assert_allclose(product, pb.hessian(cubic)(X) @ v)
    assert counts.pushed["sin"] == 1
    tree = pb.hvp(lambda p: np.sum(p["a"] ** 2 * p["b"]), {"a": X, "b": X}, {"a": v, "b": 0 * v})
    np.testing.assert_allclose(tree["b"], 2 * X * v)


def forward(function):
    return lambda x: pb.jvp(function, (x,), (1.0,))[1]


def reverse(function):
    return lambda x: pb.vjp(function, x)[1](1.0)[0]


@pytest.mark.parametrize("inner", [forward, reverse, pb.grad])
@pytest.mark.parametrize("outer", [forward, reverse, pb.grad])
@pytest.mark.parametrize("outermost", [forward, reverse, pb.grad])
def test_modes_nest_in_every_order(inner, outer, outermost):
    third = outermost(outer(inner(lambda t: np.exp(2 * t) * np.sin(t))))
    # (e^(2t) sin t)''' = e^(2t) (2 sin t + 11 cos t)
    assert third(0.3) == pytest.approx(np.exp(0.6) * (2 * np.sin(0.3) + 11 * np.cos(0.3)), rel=1e-12)


@pytest.mark.parametrize("order", range(1, 7))
def test_derivatives_of_any_order(order):
    function = np.exp
    for _ in range(order):
        function = pb.grad(lambda t, inner=function: inner(3 * t) / 3)
    assert np.isfinite(function(0.1))
    nested = lambda t: t**8  # noqa: E731
    for _ in range(order):
        nested = pb.grad(nested)
    assert nested(1.5) == pytest.approx(np.prod(np.arange(8, 8 - order, -1.0)) * 1.5 ** (8 - order))


def test_an_inner_derivative_does_not_see_the_outer_one():
    """Perturbation confusion: d/dx (x * d/dy (x + y)) = 1, not 2."""
    assert pb.grad(lambda x: x * pb.grad(lambda y: x + y)(1.0))(2.0) == 1.0
    assert forward(lambda x: x * forward(lambda y: x + y)(1.0))(2.0) == 1.0
    assert pb.grad(lambda x: x * forward(lambda y: x + y)(1.0))(2.0) == 1.0
    assert forward(lambda x: x * pb.grad(lambda y: x * y)(1.0))(2.0) == 4.0


def test_bad_use_is_one_sentence():
    with pytest.raises(DifferentiationError, match="none of auto, forward, reverse"):
        pb.jacobian(layer, mode="sideways")
    with pytest.raises(DifferentiationError, match="two names of one thing"):
        pb.jacobian(layer, wrt=0, argnums=0)
    with pytest.raises(DifferentiationError, match="holomorphic=True"):
        pb.jacobian(lambda x: x * 1j)(X)


def test_a_vector_that_fits_no_hessian_is_refused():
    def cubic_sum(x):
        return np.sum(x**3)

    with pytest.raises(DifferentiationError, match=r"^cubic_sum got a tangent of shape \(3,\)"):
        pb.hvp(cubic_sum, np.ones(2), np.ones(3))

"""Complex values: the convention, and what is refused."""

import numpy as np
import pytest

import pullback as pb
from pullback.errors import DifferentiationError

RNG = np.random.default_rng(6)
Z = RNG.normal(size=4) + 1j * RNG.normal(size=4)
X = RNG.normal(size=4)


@pytest.mark.parametrize("tier", pb.TIERS)
def test_the_gradient_of_the_squared_modulus_is_twice_the_conjugate(tier):
    with pb.tier(tier):
        np.testing.assert_allclose(pb.grad(lambda z: np.sum(np.abs(z) ** 2))(Z), 2 * np.conj(Z))
        np.testing.assert_allclose(pb.grad(lambda z: np.sum(np.real(z * np.conj(z))))(Z), 2 * np.conj(Z))


@pytest.mark.parametrize(
    ("function", "derivative"),
    [
        (np.exp, np.exp),
        (np.sin, np.cos),
        (np.log, lambda z: 1 / z),
        (np.sqrt, lambda z: 0.5 / np.sqrt(z)),
        (np.tanh, lambda z: 1 - np.tanh(z) ** 2),
        (lambda z: z**3, lambda z: 3 * z**2),
        (lambda z: 1 / z, lambda z: -1 / z**2),
    ],
)
def test_holomorphic_functions_have_their_complex_derivative(function, derivative):
    np.testing.assert_allclose(pb.grad(lambda z: np.sum(function(z)), holomorphic=True)(Z), derivative(Z), rtol=1e-12)
    np.testing.assert_allclose(pb.jacobian(function, holomorphic=True)(Z), np.diag(derivative(Z)), rtol=1e-12)
    np.testing.assert_allclose(pb.jvp(function, (Z,), (np.ones(4) * 1j,))[1], 1j * derivative(Z), rtol=1e-12)


def test_a_step_against_the_conjugate_of_the_gradient_goes_down():
    def loss(z):
        return np.sum(np.abs(np.exp(z) - 2) ** 2)

    z = Z.copy()
    for _ in range(200):
        z = z - 0.02 * np.conj(pb.grad(loss)(z))
    assert loss(z) < 0.05 * loss(Z)


def test_a_real_argument_has_a_real_gradient_through_complex_values():
    def loss(x):
        return np.abs(np.sum(np.exp(1j * x) * Z))

    gradient = pb.grad(loss)(X)
    assert gradient.dtype == np.float64
    expected = [(loss(X + 1e-6 * unit) - loss(X - 1e-6 * unit)) / 2e-6 for unit in np.eye(4)]
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-8)


def test_both_modes_agree_on_the_pairing_of_tangents_and_cotangents():
    """Re <y_bar, J dz> = Re <J^T y_bar, dz> for real results of complex operands."""
    function = lambda z: np.abs(z) * np.angle(z) + np.imag(z) ** 2  # noqa: E731
    dz, y_bar = RNG.normal(size=4) + 1j * RNG.normal(size=4), RNG.normal(size=4)
    _, dy = pb.jvp(function, (Z,), (dz,))
    (z_bar,) = pb.vjp(function, Z)[1](y_bar)
    assert dy.dtype == np.float64
    assert np.sum(y_bar * dy) == pytest.approx(np.sum(z_bar * dz).real)


def test_second_derivatives():
    hessian = pb.hessian(lambda x: np.sum(np.abs(np.exp(1j * x) + x) ** 2))(X)
    # |e^(ix) + x|^2 = 1 + 2 x cos x + x^2
    np.testing.assert_allclose(np.diag(hessian), -4 * np.sin(X) - 2 * X * np.cos(X) + 2, rtol=1e-12)


def test_a_number_stays_a_number():
    assert pb.grad(lambda z: abs(z) ** 2)(3.0 + 4.0j) == 6.0 - 8.0j
    assert type(pb.grad(lambda z: abs(z) ** 2)(3.0 + 4.0j)) is complex


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pb.grad(lambda z: np.sum(z * z))(Z), "say holomorphic=True"),
        (lambda: pb.grad(lambda x: np.sum(x), holomorphic=True)(X), "holomorphic=True needs a complex value"),
        (lambda: pb.vjp(np.abs, Z)[1](np.ones(4) * 1j), "complex, the value is real"),
    ],
)
def test_what_has_no_derivative_is_refused(call, message):
    with pytest.raises(DifferentiationError, match=message):
        call()

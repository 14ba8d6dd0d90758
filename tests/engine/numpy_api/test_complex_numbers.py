"""Complex numbers: derivatives follow the pairing Re(v * dx), without conjugation, as in JAX."""

import numpy as np
import pytest

import pullback as pb
from pullback.errors import DifferentiationError, TracingError

RNG = np.random.default_rng(0)
Z = RNG.normal(size=(2, 3)) + 1j * RNG.normal(size=(2, 3))
W = RNG.normal(size=(3, 2)) + 1j * RNG.normal(size=(3, 2))
R = RNG.normal(size=(2, 3))

HOLOMORPHIC = [
    np.negative, np.square, np.reciprocal, np.exp, np.exp2, np.expm1, np.log, np.log2, np.log10, np.log1p, np.sqrt,
    np.sin, np.cos, np.tan, np.sinh, np.cosh, np.tanh, np.arcsin, np.arccos, np.arctan, np.arcsinh, np.arccosh,
    np.arctanh, np.sinc,
]  # fmt: skip
STEP = 1e-6


def differences(function, x, dx):
    return (function(x + STEP * dx) - function(x - STEP * dx)) / (2 * STEP)


def direction(x):
    rng = np.random.default_rng(1)
    real = rng.normal(size=np.shape(x))
    return real + 1j * rng.normal(size=np.shape(x)) if np.iscomplexobj(x) else real


def agree(function, *args):
    """Forward, reverse and differences, argument by argument."""
    tangents = [direction(x) for x in args]
    value, moved = pb.jvp(function, args, tuple(tangents))
    np.testing.assert_allclose(value, function(*args), rtol=1e-12)
    along = lambda t: function(*(x + t * dx for x, dx in zip(args, tangents, strict=True)))  # noqa: E731 (one line)
    np.testing.assert_allclose(moved, (along(STEP) - along(-STEP)) / (2 * STEP), rtol=1e-5, atol=1e-7)
    v = direction(value)
    cotangents = pb.vjp(function, *args)[1](v)
    for cotangent, x in zip(cotangents, args, strict=True):
        assert np.iscomplexobj(cotangent) == np.iscomplexobj(x)
    pulled = sum(np.sum(cotangent * dx) for cotangent, dx in zip(cotangents, tangents, strict=True))
    np.testing.assert_allclose(np.real(pulled), np.real(np.sum(v * moved)), rtol=1e-9)


@pytest.mark.parametrize("function", HOLOMORPHIC, ids=lambda f: f.__name__)
def test_holomorphic_functions(function):
    agree(function, Z)
    rate = pb.jvp(function, (Z,), (np.ones_like(Z),))[1]
    np.testing.assert_allclose(pb.vjp(function, Z)[1](np.ones_like(Z))[0], rate)


@pytest.mark.parametrize("function", [np.abs, np.conj, np.real, np.imag, np.angle, np.sign], ids=lambda f: f.__name__)
def test_functions_that_are_not_holomorphic(function):
    agree(function, Z)
    agree(lambda z: function(z * z), Z)


@pytest.mark.parametrize(
    "function",
    [
        np.add, np.subtract, np.multiply, np.divide, np.power,
        lambda a, b: np.where(R > 0, a, b),
        lambda a, b: np.vdot(a, b),
        lambda a, b: a @ b.T,
        lambda a, b: np.vecdot(a, b),
        lambda a, b: np.einsum("ij,ij->i", a, b),
        lambda a, b: np.correlate(a[0], b[0]),
        lambda a, b: np.outer(a, b),
    ],
)  # fmt: skip
def test_of_two(function):
    agree(function, Z, Z[::-1] * 0.7j)
    agree(function, Z, R)
    agree(function, np.abs(R), Z)


@pytest.mark.parametrize(
    "function",
    [
        lambda z: np.sum(z, axis=0),
        lambda z: np.prod(z, axis=1),
        lambda z: np.mean(z),
        lambda z: np.var(z, axis=1),
        lambda z: np.std(z),
        lambda z: np.cumsum(z, axis=0),
        lambda z: np.cumprod(z, axis=1),
        lambda z: z @ W,
        lambda z: z.T.conj() @ z,
        lambda z: z.real * z.imag,
        lambda z: np.concatenate([z, R]),
        lambda z: z[[0, 0]],
        lambda z: np.linalg.norm(z),
        lambda z: (z + z.conj()).real,
        lambda z: np.abs(z) ** 2,
    ],
)
def test_of_arrays(function):
    agree(function, Z)


def test_the_gradient_of_a_squared_modulus_is_twice_the_conjugate():
    np.testing.assert_allclose(pb.grad(lambda z: np.sum(np.abs(z) ** 2))(Z), 2 * np.conj(Z))
    np.testing.assert_allclose(pb.grad(lambda z: np.sum((z * np.conj(z)).real))(Z), 2 * np.conj(Z))


def test_a_real_argument_has_a_real_gradient():
    gradient = pb.grad(lambda r: np.sum(np.abs(np.exp(1j * r) + r) ** 2))(R)
    assert gradient.dtype == np.float64
    pb.testing.check_grads(lambda r: np.sum(np.abs(np.exp(1j * r) + r) ** 2), (R,))


def test_the_modulus_at_zero_has_gradient_zero():
    assert pb.grad(np.abs)(0j) == 0


def test_the_second_derivative_of_a_real_function_of_a_complex_one():
    def curvature(r):
        return pb.grad(lambda r: np.sum(np.abs(np.sin(r + 1j * r)) ** 2))(r)

    pb.testing.check_grads(curvature, (R,))


@pytest.mark.parametrize("z", [-4.8 - 7.6j, 0.01 + 0.02j, 0.2 + 0.3j, 0j, 1e-200j])
def test_sinc_of_complex_numbers(z):
    y, pullback = pb.vjp(np.sinc, z)
    np.testing.assert_allclose(y, np.sinc(z), rtol=1e-13)
    slope = (np.sinc(z + 1e-5) - np.sinc(z - 1e-5)) / 2e-5
    np.testing.assert_allclose(pullback(1.0)[0], slope, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(("a", "b"), [(2 + 0.7j, 4 + 3.7j), (2.0, 1 - 2j), (-2.0, 1 - 2j), (2 + 0.7j, 2.5)])
@pytest.mark.parametrize("wrapped", [lambda x: x, np.asarray, lambda x: np.asarray(x)[()]])
def test_complex_powers_of_numbers(a, b, wrapped):
    _, pullback = pb.vjp(lambda a, b: a**b, wrapped(a), wrapped(b))
    by_base, by_exponent = pullback(1.0)
    base = complex(a)
    for found, exact, like in ((by_base, b * base ** (b - 1), a), (by_exponent, base**b * np.log(base), b)):
        np.testing.assert_allclose(found, exact if isinstance(like, complex) else np.real(exact), rtol=1e-12)


def test_a_real_power_that_turns_complex_is_refused():
    with pytest.raises(DifferentiationError, match="is complex"):
        pb.grad(lambda x: x**0.5)(-1.0)


@pytest.mark.parametrize("tier", pb.TIERS)
def test_parts_that_are_no_numbers_are_replaced_alone(tier):
    z = np.array([complex(np.nan, 2), complex(3, -np.inf), 1 - 2j])
    for dtype in (np.complex128, np.complex64):
        with pb.tier(tier):
            y, pullback = pb.vjp(lambda z: np.nan_to_num(z, nan=5.0), z.astype(dtype))
        np.testing.assert_array_equal(y, np.nan_to_num(z.astype(dtype), nan=5.0), strict=True)
        np.testing.assert_array_equal(pullback(np.full(3, 1 + 1j, dtype))[0], [1j, 1, 1 + 1j])


@pytest.mark.parametrize("part", ["real", "imag"])
def test_a_store_of_one_part_is_refused(part):
    def function(z):
        y = z * 1
        setattr(y, part, R)
        return np.sum(np.abs(y))

    with pytest.raises(TracingError, match="store both"):
        pb.grad(function)(Z)
    np.testing.assert_allclose(pb.compile(function)(Z), function(Z))


def test_fabs_is_not_for_complex_numbers():
    with pytest.raises(TypeError, match=r"use numpy\.abs"):
        pb.vjp(np.fabs, Z)


@pytest.mark.parametrize("tier", pb.TIERS[1:])
def test_parts_of_a_number_of_python_take_the_dtype_of_arrays(tier):
    z = Z.astype(np.complex64)
    plan = pb.compile(lambda z, c: z * c.real + c.imag, tier=tier)
    for c in (2 - 1j, 0.5j, 3 + 0j):
        np.testing.assert_allclose(plan(z, c), z * c.real + c.imag, rtol=1e-6, strict=True)

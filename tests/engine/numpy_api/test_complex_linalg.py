"""numpy.linalg of complex matrices: real functions of a real and an imaginary part, and the complex gradient itself."""

import numpy as np
import pytest
from numpy import linalg

import pullback as pb
from pullback.errors import DifferentiationError


def normal(*shape):
    rng = np.random.default_rng(sum(shape))
    return rng.normal(size=shape) + 1j * rng.normal(size=shape)


def adjoint(a):
    return np.conj(np.swapaxes(a, -1, -2))


def positive(a):
    return a @ adjoint(a) + 3 * np.eye(a.shape[-1])


def hermitian(a):
    return a + adjoint(a)


def separated(a):
    return 0.1 * a + np.diag([1.0, 2.0, 5.0])


def both_parts(z):
    """A real function that sees the real and the imaginary part."""
    return 1.3 * np.real(z) + 0.7 * np.imag(z)


def recomposed(values):
    """A function of all vectors together that their phases do not change."""

    def function(a):
        _, v = linalg.eigh(hermitian(a))
        return both_parts((v * values) @ adjoint(v))

    return function


def polar_like(a):
    u, _, vh = linalg.svd(a, full_matrices=False)
    return both_parts((u * np.array([1.0, 2.0, 3.0])) @ vh)


SQUARE, STACK, TALL, WIDE = normal(3, 3), normal(2, 3, 3), normal(4, 3), normal(2, 3)

FUNCTIONS = {
    "solve": (lambda a, b: both_parts(linalg.solve(a, b)), SQUARE, normal(3, 2)),
    "inv": (lambda a: both_parts(linalg.inv(a)), STACK),
    "det": (lambda a: both_parts(linalg.det(a)), SQUARE),
    "slogdet": (lambda a: linalg.slogdet(a)[1] + both_parts(linalg.slogdet(a)[0]), STACK),
    "cholesky": (lambda a: both_parts(linalg.cholesky(positive(a))), STACK),
    "cholesky, upper": (lambda a: both_parts(linalg.cholesky(positive(a), upper=True)), SQUARE),
    "qr, q": (lambda a: both_parts(linalg.qr(a).Q), TALL),
    "qr, r": (lambda a: both_parts(linalg.qr(a).R), SQUARE),
    "qr, wide": (lambda a: both_parts(linalg.qr(a).R), WIDE),
    "eigh, values": (lambda a: linalg.eigh(hermitian(a))[0], SQUARE),
    "eigh, magnitudes": (lambda a: np.abs(linalg.eigh(hermitian(a), "U")[1]), STACK),
    "eigh, recomposed": (recomposed(np.array([1.0, 2.0, 3.0])), SQUARE),
    "eigvalsh": (lambda a: linalg.eigvalsh(hermitian(a)), STACK),
    "eig, values": (lambda a: both_parts(linalg.eig(separated(a))[0]), SQUARE),
    "eig, vectors": (lambda a: both_parts(linalg.eig(separated(a))[1]), SQUARE),
    "eigvals": (lambda a: both_parts(linalg.eigvals(separated(a))), SQUARE),
    "svd, u": (lambda a: np.abs(linalg.svd(a, full_matrices=False).U), TALL),
    "svd, s": (lambda a: linalg.svd(a, full_matrices=False).S, TALL),
    "svd, vh": (lambda a: np.abs(linalg.svd(a, full_matrices=False).Vh), WIDE),
    "svd, recomposed": (polar_like, SQUARE),
    "svd, recomposed, tall": (polar_like, TALL),
    "svdvals": (linalg.svdvals, WIDE),
    "pinv": (lambda a: both_parts(linalg.pinv(a)), TALL),
    "pinv, Hermitian": (lambda a: both_parts(linalg.pinv(hermitian(a), hermitian=True)), SQUARE),
    "lstsq": (lambda a, b: both_parts(linalg.lstsq(a, b)[0]), TALL, normal(4, 2)),
    "lstsq, residuals": (lambda a, b: linalg.lstsq(a, b)[1], TALL, normal(4, 2)),
    "cond": (linalg.cond, SQUARE),
    "multi_dot": (lambda *x: both_parts(linalg.multi_dot(x)), normal(2, 3), normal(3, 2), normal(2, 4)),
    "vecdot": (lambda a, b: both_parts(linalg.vecdot(a, b)), normal(2, 3), normal(3)),
    "outer": (lambda a, b: both_parts(linalg.outer(a, b)), normal(2), normal(3)),
    "matrix_power": (lambda a: both_parts(linalg.matrix_power(a, -3)), SQUARE),
}
for _order in (None, 1, 2, 3, 0.5, -2, np.inf, -np.inf):
    FUNCTIONS[f"norm of a vector, {_order}"] = (lambda a, order=_order: linalg.norm(a, order), normal(4))
for _order in (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
    FUNCTIONS[f"norm of a matrix, {_order}"] = (lambda a, order=_order: linalg.norm(a, order), TALL)

every_function = pytest.mark.parametrize("name", FUNCTIONS)


def of_parts(function):
    """The function of real parts and imaginary parts, alternating."""
    return lambda *parts: function(*(re + 1j * im for re, im in zip(parts[::2], parts[1::2], strict=True)))


def parts_of(args):
    return [part for z in args for part in (z.real, z.imag)]


@pytest.mark.sample(every=5)
@every_function
def test_values_derivatives_tiers_and_batches_agree(name, agrees_everywhere):
    function, *args = FUNCTIONS[name]
    agrees_everywhere(of_parts(function), *parts_of(args))


@every_function
def test_the_complex_gradient_is_made_of_the_real_ones(name):
    function, *args = FUNCTIONS[name]
    weights = np.random.default_rng(4).normal(size=np.shape(function(*args)))

    def loss(*operands):
        return np.sum(weights * function(*operands))

    by_parts = pb.grad(of_parts(loss), wrt=tuple(range(2 * len(args))))(*parts_of(args))
    for gradient, re, im in zip(
        pb.grad(loss, wrt=tuple(range(len(args))))(*args), by_parts[::2], by_parts[1::2], strict=True
    ):
        np.testing.assert_allclose(gradient, re - 1j * im, rtol=1e-10, atol=1e-12)


def test_eigenvalues_of_a_real_matrix_may_be_complex():
    turn = np.array([[0.0, -2.0], [1.0, 0.5]])
    pb.testing.check_grads(lambda a: np.imag(linalg.eigvals(a)), [turn])
    pb.testing.check_grads(lambda a: np.real(linalg.eig(a)[0]), [turn])
    pb.testing.check_grads(lambda a: both_parts(linalg.eig(a)[1]), [turn])
    assert pb.grad(lambda a: np.sum(np.abs(linalg.eigvals(a))))(turn).dtype == float


@pytest.mark.parametrize(
    "function",
    [
        lambda a: np.sum(np.real(linalg.eigh(hermitian(a))[1])),
        lambda a: np.sum(np.real(linalg.svd(a)[0])),
        lambda a: np.sum(np.imag(linalg.svd(a)[2])),
    ],
)
def test_a_function_of_an_arbitrary_phase_is_refused(function):
    with pytest.raises(DifferentiationError, match="phase"):
        pb.grad(function)(SQUARE)


def test_holomorphic_functions_follow_the_complex_step():
    step = 1e-30
    direction = normal(3, 3).real
    for function in (linalg.det, lambda a: np.sum(linalg.inv(a)), lambda a: np.sum(linalg.solve(a, np.ones((3, 1))))):
        real = SQUARE.real
        expected = np.imag(function(real + 1j * step * direction)) / step
        np.testing.assert_allclose(np.sum(pb.grad(function)(real) * direction), expected, rtol=1e-10)

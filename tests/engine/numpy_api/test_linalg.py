"""numpy.linalg under differentiation: plain NumPy code against itself, and what is refused."""

import numpy as np
import pytest
from numpy import linalg

import pullback as pb
from pullback.errors import DifferentiationError, TracingError


def normal(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape)


def positive(a):
    return a @ np.swapaxes(a, -1, -2) + 3 * np.eye(a.shape[-1])


def symmetric(a):
    return a + np.swapaxes(a, -1, -2)


def separated(a):
    """Eigenvalues near 1, 2, 5: real, and far apart."""
    return 0.1 * a + np.diag([1.0, 2.0, 5.0])


SQUARE, STACK, TALL, WIDE = normal(3, 3), normal(2, 3, 3), normal(4, 3), normal(2, 4)

FUNCTIONS = {
    "solve": (linalg.solve, SQUARE, normal(3, 2)),
    "solve, a vector": (linalg.solve, SQUARE, normal(3)),
    "solve, a vector for a stack": (linalg.solve, STACK, normal(3)),
    "solve, stacks": (linalg.solve, STACK, normal(2, 3, 1)),
    "inv": (linalg.inv, STACK),
    "det": (linalg.det, STACK),
    "slogdet": (lambda a: linalg.slogdet(a).logabsdet, STACK),
    "slogdet by position": (lambda a: linalg.slogdet(a)[1] * linalg.slogdet(a)[0], SQUARE),
    "tensorsolve": (linalg.tensorsolve, normal(2, 3, 6), normal(2, 3)),
    "tensorsolve, axes": (lambda a, b: linalg.tensorsolve(a, b, axes=(0, 2)), normal(2, 6, 3), normal(6)),
    "tensorinv": (linalg.tensorinv, normal(2, 3, 3, 2)),
    "cholesky": (lambda a: linalg.cholesky(positive(a)), STACK),
    "cholesky, upper": (lambda a: linalg.cholesky(positive(a), upper=True), SQUARE),
    "qr, q": (lambda a: linalg.qr(a).Q, TALL),
    "qr, r": (lambda a: linalg.qr(a)[1], STACK),
    "qr, both": (lambda a: linalg.qr(a).Q * linalg.qr(a).R, STACK),
    "qr, wide, q": (lambda a: linalg.qr(a).Q, WIDE),
    "qr, wide, r": (lambda a: linalg.qr(a).R, normal(2, 2, 3)),
    "qr, r only": (lambda a: linalg.qr(a, "r"), TALL),
    "qr, complete of wide": (lambda a: linalg.qr(a, mode="complete").R, WIDE),
    "eigh, values": (lambda a: linalg.eigh(symmetric(a)).eigenvalues, SQUARE),
    "eigh, vectors": (lambda a: linalg.eigh(symmetric(a))[1], STACK),
    "eigh, both": (lambda a: linalg.eigh(symmetric(a), "U")[1] * linalg.eigh(symmetric(a))[0], SQUARE),
    "eigvalsh": (lambda a: linalg.eigvalsh(symmetric(a), UPLO="U"), STACK),
    # The real parts are all there is, but NumPy 2.5 gives complex numbers for every matrix.
    "eig, values": (lambda a: np.real(linalg.eig(separated(a)).eigenvalues), SQUARE),
    "eig, vectors": (lambda a: np.real(linalg.eig(separated(a)).eigenvectors), SQUARE),
    "eigvals": (lambda a: np.real(linalg.eigvals(separated(a))), SQUARE),
    "svd, u": (lambda a: linalg.svd(a, full_matrices=False).U, TALL),
    "svd, s": (lambda a: linalg.svd(a, full_matrices=False).S, STACK),
    "svd, vh": (lambda a: linalg.svd(a, full_matrices=False)[2], normal(2, 3, 4)),
    "svd, square": (lambda a: linalg.svd(a)[2] * linalg.svd(a)[0], SQUARE),
    "svd, values only": (lambda a: linalg.svd(a, compute_uv=False), TALL),
    "svdvals": (linalg.svdvals, normal(2, 4, 3)),
    "pinv": (linalg.pinv, TALL),
    "pinv, wide": (lambda a: linalg.pinv(a, rcond=1e-12), normal(2, 2, 3)),
    "pinv, Hermitian": (lambda a: linalg.pinv(symmetric(a), hermitian=True), SQUARE),
    "lstsq": (lambda a, b: linalg.lstsq(a, b)[0], TALL, normal(4, 2)),
    "lstsq, a vector": (lambda a, b: linalg.lstsq(a, b)[0], TALL, normal(4)),
    "lstsq, residuals": (lambda a, b: linalg.lstsq(a, b)[1], TALL, normal(4, 2)),
    "lstsq, singular values": (lambda a, b: linalg.lstsq(a, b)[3] * np.sum(b), TALL, normal(4, 2)),
    "lstsq, wide": (lambda a, b: linalg.lstsq(a, b)[0], normal(2, 3), normal(2)),
    "matrix_power": (lambda a: linalg.matrix_power(a, 5), SQUARE),
    "matrix_power, negative": (lambda a: linalg.matrix_power(a, -2), STACK),
    "multi_dot": (lambda *x: linalg.multi_dot(x), normal(2, 3), normal(3, 4), normal(4, 2)),
    "multi_dot, vectors": (lambda *x: linalg.multi_dot(x), normal(3), normal(3, 4), normal(4)),
    "matmul": (linalg.matmul, normal(2, 3), normal(3, 2)),
    "tensordot": (lambda a, b: linalg.tensordot(a, b, axes=1), normal(2, 3), normal(3, 4)),
    "outer": (linalg.outer, normal(3), normal(2)),
    "vecdot": (linalg.vecdot, normal(2, 3), normal(3)),
    "cross": (linalg.cross, normal(2, 3), normal(3)),
    "trace": (linalg.trace, STACK),
    "diagonal": (lambda a: linalg.diagonal(a, offset=1), STACK),
    "matrix_transpose": (linalg.matrix_transpose, normal(2, 3, 4)),
    "cond": (linalg.cond, STACK),
    "cond, smallest": (lambda a: linalg.cond(a, -2), SQUARE),
    "cond, 1": (lambda a: linalg.cond(a, 1), SQUARE),
    "vector_norm": (lambda a: linalg.vector_norm(a, axis=(0, 2), keepdims=True, ord=3), STACK),
    "vector_norm of all": (linalg.vector_norm, STACK),
    "matrix_norm": (lambda a: linalg.matrix_norm(a, ord=np.inf), STACK),
    "norm of a stack": (linalg.norm, STACK),
    "norm, axis": (lambda a: linalg.norm(a, axis=1, keepdims=True), STACK),
}
for _order in (None, 1, 2, 3, 0.5, -2, np.inf, -np.inf):
    FUNCTIONS[f"norm of a vector, {_order}"] = (lambda a, order=_order: linalg.norm(a, order), normal(4))
for _order in (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
    FUNCTIONS[f"norm of a matrix, {_order}"] = (lambda a, order=_order: linalg.norm(a, order), TALL)
    FUNCTIONS[f"norm over two axes, {_order}"] = (
        lambda a, order=_order: linalg.norm(a, order, axis=(2, 0), keepdims=True),
        normal(3, 2, 4),
    )


@pytest.mark.sample(every=7)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_derivatives_tiers_and_batches_agree(name, agrees_everywhere):
    function, *args = FUNCTIONS[name]
    agrees_everywhere(function, *args)


WITHOUT_RULE = {"LinAlgError": "an exception", "test": "numpy's own tests", "matrix_rank": "its value moves in steps"}


def test_every_function_has_a_rule_or_a_reason():
    called = {name.split(",")[0].split(" ")[0] for name in FUNCTIONS}
    assert called | set(WITHOUT_RULE) == set(linalg.__all__) | {"test"}


# --- points where something is special -----------------------------------------------------------------------------
def test_a_determinant_has_a_gradient_where_it_is_zero():
    singular = np.array([[1.0, 2.0], [2.0, 4.0]])
    np.testing.assert_allclose(pb.grad(linalg.det)(singular), [[4.0, -2.0], [-2.0, 1.0]], atol=1e-12)
    np.testing.assert_allclose(pb.grad(linalg.det)(np.zeros((2, 2))), np.zeros((2, 2)))


def test_the_two_norm_has_a_gradient_of_zero_at_zero_and_no_second_one():
    np.testing.assert_array_equal(pb.grad(linalg.norm)(np.zeros(3)), np.zeros(3))
    assert pb.grad(lambda x: np.sum(linalg.norm(x, axis=1)))(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist() == [
        [0.6, 0.8],
        [0.0, 0.0],
    ]
    with pytest.raises(DifferentiationError, match="second derivative of a norm or deviation at zero"):
        pb.hessian(linalg.norm)(np.zeros(3))


@pytest.mark.parametrize("order", [0.5, 0.9, 1, 2, 2.5, 3, np.inf])
def test_every_norm_has_a_gradient_of_zero_at_zero(order):
    np.testing.assert_array_equal(pb.grad(lambda x: linalg.norm(x, order))(np.zeros(3)), np.zeros(3))
    np.testing.assert_array_equal(pb.grad(lambda x: linalg.norm(x, order))(np.zeros(3, complex)), np.zeros(3))


def test_rank_is_a_number_without_derivative():
    assert pb.grad(lambda a: linalg.matrix_rank(a) * np.sum(a))(np.eye(2)).tolist() == [[2.0, 2.0], [2.0, 2.0]]
    for tier in pb.TIERS:
        ranked = pb.compile(pb.grad(lambda a: linalg.matrix_rank(a) * np.sum(a)), tier=tier)
        assert ranked(np.array([0.0, 3.0])).tolist() == [1.0, 1.0]
        assert ranked(np.zeros(2)).tolist() == [0.0, 0.0]


def test_vectors_of_repeated_eigenvalues_are_refused_and_their_values_are_not():
    with pytest.raises(DifferentiationError, match="eigvalsh"):
        pb.grad(lambda a: np.sum(linalg.eigh(a)[1]))(np.eye(3))
    np.testing.assert_allclose(pb.grad(lambda a: np.sum(linalg.eigvalsh(a) ** 2))(np.eye(3)), 2 * np.eye(3), atol=1e-12)
    np.testing.assert_allclose(pb.grad(lambda a: np.sum(linalg.eigh(a)[0]))(np.eye(3)), np.eye(3), atol=1e-12)


def test_vectors_of_other_eigenvalues_are_differentiable_beside_repeated_ones():
    a = np.diag([1.0, 1.0, 2.0])

    def alignment(a):
        return linalg.eigh(a)[1][0, 2] ** 2 + linalg.eigh(a)[1][1, 2]

    np.testing.assert_allclose(pb.grad(alignment)(a), [[0, 0, 0], [0, 0, 0.5], [0, 0.5, 0]], atol=1e-12)


def test_vectors_of_repeated_singular_values_are_refused():
    with pytest.raises(DifferentiationError, match="svdvals"):
        pb.grad(lambda a: np.sum(linalg.svd(a)[0]))(np.eye(3))
    np.testing.assert_allclose(pb.grad(lambda a: np.sum(linalg.svdvals(a)))(np.eye(2)), np.eye(2), atol=1e-12)


def test_bases_that_are_arbitrary_are_refused():
    with pytest.raises(TracingError, match="full_matrices=False"):
        pb.grad(lambda a: np.sum(linalg.svd(a)[1]))(TALL)
    with pytest.raises(TracingError, match="mode='reduced'"):
        pb.grad(lambda a: np.sum(linalg.qr(a, "complete")[0]))(TALL)


def test_a_cotangent_of_a_symmetric_matrix_is_symmetric():
    for function in (linalg.cholesky, lambda a: linalg.eigh(a)[1], linalg.eigvalsh):
        gradient = pb.grad(lambda a, f=function: np.sum(WEIGHTS * f(a)))(positive(SQUARE))
        np.testing.assert_allclose(gradient, gradient.T)


WEIGHTS = normal(3, 3)[0] + normal(3, 3)


def test_only_what_is_needed_is_computed():
    with pb.debug.counting() as counts:
        pb.vjp(lambda b: linalg.solve(SQUARE, b), normal(3, 2))[1](normal(3, 2))
    assert counts.evaluated["matmul"] == 0
    with pb.debug.counting() as counts:
        pb.vjp(lambda a: linalg.eigh(a)[0], positive(SQUARE))[1](normal(3))
    assert counts.evaluated["quotient"] == 0


def test_shapes_that_do_not_fit_are_said_so():
    with pytest.raises(linalg.LinAlgError, match="square matrices"):
        pb.trace(linalg.inv)(TALL)
    with pytest.raises(TypeError, match="float16"):
        pb.trace(linalg.inv)(np.ones((2, 2), np.float16))


def test_empty_matrices():
    assert pb.grad(lambda a: np.sum(linalg.inv(a)))(np.zeros((0, 0))).shape == (0, 0)
    assert pb.grad(lambda a: np.sum(linalg.det(a)))(np.zeros((2, 0, 0))).shape == (2, 0, 0)
    assert pb.grad(lambda a: np.sum(linalg.solve(a, np.ones((0, 2, 1)))))(np.zeros((0, 2, 2))).shape == (0, 2, 2)


@pytest.mark.parametrize("function", [linalg.inv, linalg.det, linalg.cholesky, linalg.eigvalsh, linalg.svdvals])
def test_single_precision_stays_single(function):
    gradient = pb.grad(lambda a: np.sum(function(a)))(positive(SQUARE).astype(np.float32))
    assert gradient.dtype == np.float32


@pytest.mark.parametrize("tier", pb.TIERS)
@pytest.mark.parametrize("size", [1, 3, 5])
@pytest.mark.parametrize("special", [np.nan, np.inf])
def test_the_gradient_of_a_determinant_is_nan_where_the_matrix_is_not_finite(tier, size, special):
    a = np.random.default_rng(4).normal(size=(2, size, size))
    expected = pb.grad(lambda a: np.sum(np.linalg.det(a)))(a)
    a[1, 0, -1] = special
    expected[1] = np.nan
    with pb.tier(tier), np.errstate(all="ignore"):
        np.testing.assert_allclose(pb.grad(lambda a: np.sum(np.linalg.det(a)))(a), expected, rtol=1e-12)

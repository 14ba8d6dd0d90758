"""pb.scipy.linalg against SciPy's values and against differences."""

import numpy as np
import pytest
import scipy.linalg

import pullback as pb
from pullback.errors import NoRuleError, TracingError
from pullback.scipy import linalg


def normal(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape)


def dominant(a):
    return a + 4 * np.eye(a.shape[-1])


def positive(a):
    return a @ np.swapaxes(a, -1, -2) + 3 * np.eye(a.shape[-1])


def symmetric(a):
    return a + np.swapaxes(a, -1, -2)


def both_parts(z):
    return 1.3 * np.real(z) + 0.7 * np.imag(z)


SQUARE, OTHER, RIGHT = normal(3, 3), normal(3, 3)[::-1] * 0.7, normal(3, 2)

# Functions of the namespace `m`: ours under differentiation, SciPy's for the value.
FUNCTIONS = {
    "solve_triangular": (lambda m, a, b: m.solve_triangular(dominant(a), b), SQUARE, RIGHT),
    "solve_triangular, lower": (lambda m, a, b: m.solve_triangular(dominant(a), b, lower=True), SQUARE, normal(3)),
    "solve_triangular, transposed": (lambda m, a, b: m.solve_triangular(dominant(a), b, trans="T"), SQUARE, RIGHT),
    "solve_triangular, unit": (lambda m, a, b: m.solve_triangular(a, b, 1, True, True), SQUARE, RIGHT),
    "solve": (lambda m, a, b: m.solve(dominant(a), b), SQUARE, normal(3)),
    "solve, transposed": (lambda m, a, b: m.solve(dominant(a), b, transposed=True), SQUARE, RIGHT),
    "solve, symmetric": (lambda m, a, b: m.solve(dominant(a), b, assume_a="sym", lower=True), SQUARE, RIGHT),
    "solve, positive": (lambda m, a, b: m.solve(positive(a), b, assume_a="pos"), SQUARE, RIGHT),
    "solve, upper": (lambda m, a, b: m.solve(dominant(a), b, assume_a="upper triangular"), SQUARE, RIGHT),
    "inv": (lambda m, a: m.inv(dominant(a)), SQUARE),
    "det": (lambda m, a: m.det(a), SQUARE),
    "pinv": (lambda m, a: m.pinv(a), normal(4, 3)),
    "cholesky": (lambda m, a: m.cholesky(positive(a)), SQUARE),
    "cholesky, lower": (lambda m, a: m.cholesky(positive(a), lower=True), SQUARE),
    "cho_solve": (lambda m, a, b: m.cho_solve(m.cho_factor(positive(a)), b), SQUARE, RIGHT),
    "cho_solve, lower": (lambda m, a, b: m.cho_solve(m.cho_factor(positive(a), lower=True), b), SQUARE, normal(3)),
    "lu_factor": (lambda m, a: m.lu_factor(a)[0], SQUARE),
    "lu_solve": (lambda m, a, b: m.lu_solve(m.lu_factor(a), b), SQUARE, RIGHT),
    "lu_solve, transposed": (lambda m, a, b: m.lu_solve(m.lu_factor(a), b, trans=1), SQUARE, normal(3)),
    "lu, l": (lambda m, a: m.lu(a)[1], SQUARE),
    "lu, u": (lambda m, a: m.lu(a)[2], SQUARE),
    "lu, permuted l": (lambda m, a: m.lu(a, permute_l=True)[0], SQUARE),
    "qr": (lambda m, a: m.qr(a)[0], SQUARE),
    "qr, economic": (lambda m, a: m.qr(a, mode="economic")[1], normal(4, 3)),
    "qr, r": (lambda m, a: m.qr(a, mode="r")[0], normal(2, 3)),
    "svd": (lambda m, a: m.svd(a, full_matrices=False)[0], normal(4, 3)),
    "svd, values": (lambda m, a: m.svd(a, compute_uv=False), normal(4, 3)),
    "svdvals": (lambda m, a: m.svdvals(a), normal(4, 3)),
    "eigh": (lambda m, a: np.abs(m.eigh(symmetric(a))[1]), SQUARE),
    "eigh, values": (lambda m, a: m.eigh(symmetric(a), eigvals_only=True), SQUARE),
    "eigvalsh": (lambda m, a: m.eigvalsh(symmetric(a), lower=False), SQUARE),
    "eigh of a pair, values": (lambda m, a, b: m.eigh(symmetric(a), positive(b))[0], SQUARE, OTHER),
    "eigh of a pair, vectors": (lambda m, a, b: np.abs(m.eigh(symmetric(a), positive(b))[1]), SQUARE, OTHER),
    "eigvalsh of a pair": (lambda m, a, b: m.eigvalsh(symmetric(a), positive(b), lower=False), SQUARE, OTHER),
    "eigvals": (lambda m, a: both_parts(m.eigvals(a)), SQUARE),
    "expm": (lambda m, a: m.expm(a), SQUARE),
    "expm_frechet": (lambda m, a, e: m.expm_frechet(a, e)[1], SQUARE, OTHER),
    "sqrtm": (lambda m, a: m.sqrtm(positive(a)), SQUARE),
    "sqrtm, complex": (lambda m, a: both_parts(m.sqrtm(dominant(a) + 1j * a)), SQUARE),
    "solve_sylvester": (lambda m, a, b, q: m.solve_sylvester(dominant(a), b, q), SQUARE, normal(2, 2), RIGHT),
    "solve_continuous_lyapunov": (lambda m, a, q: m.solve_continuous_lyapunov(dominant(a), q), SQUARE, OTHER),
    "norm": (lambda m, a: m.norm(a), SQUARE),
    "norm, nuclear": (lambda m, a: m.norm(a, "nuc"), SQUARE),
    "block_diag": (lambda m, a, b, c: m.block_diag(a, b, c), SQUARE, RIGHT, normal(2)),
    "toeplitz": (lambda m, c: m.toeplitz(c), normal(4)),
    "toeplitz, row": (lambda m, c, r: m.toeplitz(c, r), normal(4), normal(3)),
    "circulant": (lambda m, c: m.circulant(c), normal(4)),
}


@pytest.mark.sample(every=5)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_derivatives_tiers_and_batches_agree(name):
    function, *args = FUNCTIONS[name]
    value, _ = pb.vjp(lambda *xs: function(linalg, *xs), *args)
    np.testing.assert_allclose(value, function(scipy.linalg, *args), rtol=1e-9, atol=1e-12)
    pb.testing.check_grads(lambda *xs: function(linalg, *xs), args)
    weights = np.random.default_rng(3).normal(size=np.shape(value))
    gradient = pb.grad(lambda *xs: np.sum(weights * function(linalg, *xs)), wrt=tuple(range(len(args))))
    pb.testing.check_grads(lambda *xs: sum(np.sum(g * g) for g in gradient(*xs)), args, rtol=1e-4)
    with pb.tier("unfused"):
        eager = gradient(*args)
    for ours, theirs in zip(gradient(*args), eager, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["expm", "sqrtm", "solve_sylvester", "solve_triangular"])
def test_batches(name):
    function, *args = FUNCTIONS[name]
    batches = [np.stack([x, 1.25 * x]) for x in args]
    one_by_one = [function(scipy.linalg, *(batch[example] for batch in batches)) for example in range(2)]
    np.testing.assert_allclose(pb.vmap(lambda *xs: function(linalg, *xs))(*batches), np.stack(one_by_one), rtol=1e-9)


@pytest.mark.parametrize("trans", [0, 1, 2])
def test_complex_triangular_systems(trans):
    def function(re, im, b):
        return both_parts(linalg.solve_triangular(dominant(re + 1j * im), b + 1j * b * b, trans=trans))

    pb.testing.check_grads(function, [SQUARE, OTHER, RIGHT])


@pytest.mark.parametrize(
    "function",
    [
        lambda a, b: linalg.expm(a + 1j * b),
        lambda a, b: linalg.solve_sylvester(a + 4j * np.eye(3), b * 1j, a),
        lambda a, b: linalg.cho_solve(linalg.cho_factor(complex_positive(a, b)), a),
        lambda a, b: linalg.toeplitz(a[0] + 1j * b[1]),
        lambda a, b: linalg.solve(complex_positive(a, b), a, assume_a="her"),
        lambda a, b: linalg.lu_solve(linalg.lu_factor(a + 1j * b), a),
    ],
)
def test_complex_functions(function):
    pb.testing.check_grads(lambda a, b: both_parts(function(a, b)), [SQUARE, OTHER])


def complex_positive(a, b):
    z = a + 1j * b
    return z @ np.conj(z.T) + 3 * np.eye(3)


def test_roots_that_become_complex_run_on_the_tape():
    turn = np.array([[-1.0, 0.3], [0.1, -2.0]])
    pb.testing.check_grads(lambda a: np.imag(linalg.sqrtm(a)), [turn])
    assert np.isrealobj(pb.grad(lambda a: np.sum(np.abs(linalg.sqrtm(a))))(turn))


def test_a_triangular_system_gives_no_cotangent_to_what_it_does_not_read():
    gradient = pb.grad(lambda a: np.sum(linalg.solve_triangular(a, np.ones(3), lower=True, unit_diagonal=True)))(SQUARE)
    np.testing.assert_array_equal(np.triu(gradient), 0)


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda a: linalg.qr(a, mode="full"), "economic"),
        (lambda a: linalg.qr(a, pivoting=True), "pivoting"),
        (lambda a: linalg.solve(a, a, assume_a="banded"), "assume_a"),
        (lambda a: linalg.eigh(a, subset_by_index=[0, 1]), "subset_by_index"),
        (lambda a: linalg.eigvals(a, a), "pair"),
        (lambda a: linalg.pinv(a, atol=1.0), "atol"),
        (lambda a: linalg.inv(a, assume_a="sym"), "assume_a"),
    ],
)
def test_what_has_no_rule_is_refused(call, word):
    with pytest.raises((TracingError, NoRuleError), match=word):
        pb.grad(lambda a: np.sum(call(a)[0]))(normal(4, 3))


def test_plain_values_are_left_to_scipy():
    assert linalg.qr(SQUARE, pivoting=True)[2].dtype == scipy.linalg.qr(SQUARE, pivoting=True)[2].dtype
    np.testing.assert_array_equal(linalg.expm(SQUARE), scipy.linalg.expm(SQUARE))
    assert linalg.hadamard is scipy.linalg.hadamard

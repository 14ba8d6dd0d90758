"""The parts of SciPy that autograd's programs use: SciPy's values, and derivatives in both modes."""

import numpy as np
import pytest
import scipy  # its parts load when a test uses them: every worker collects every test

import pullback as pb
from pullback.compat.autograd.scipy import integrate, linalg, signal, stats
from pullback.compat.autograd.test_util import check_grads
from pullback.errors import NoRuleError

RNG = np.random.default_rng(0)
X = RNG.uniform(0.2, 0.8, 4)
A, B = RNG.uniform(1.5, 3.0, 4), RNG.uniform(1.5, 3.0, 4)

ELEMENTWISE = [
    *[("norm", name, (X, A, B)) for name in ("pdf", "cdf", "sf", "logpdf", "logcdf", "logsf")],
    *[("t", name, (X, A, B, A)) for name in ("pdf", "logpdf")],
    *[("gamma", name, (X, A)) for name in ("pdf", "logpdf")],
    *[("chi2", name, (X, A)) for name in ("pdf", "logpdf")],
    *[("beta", name, (X, A, B)) for name in ("pdf", "logpdf")],
]


@pytest.mark.parametrize(("distribution", "name", "args"), ELEMENTWISE, ids=lambda v: v if isinstance(v, str) else "")
def test_densities_and_distribution_functions(distribution, name, args):
    function = getattr(getattr(stats, distribution), name)
    np.testing.assert_allclose(function(*args), getattr(getattr(scipy.stats, distribution), name)(*args))
    pb.testing.check_grads(function, args, order=2)


@pytest.mark.parametrize("distribution", ["t", "gamma", "chi2", "beta"])
def test_a_distribution_function_without_derivative_by_its_shape_says_so(distribution):
    cdf = getattr(stats, distribution).cdf
    shapes = (A, B) if distribution == "beta" else (A,)
    pb.testing.check_grads(lambda x: cdf(x, *shapes), (X,), order=2)
    with pytest.raises(NoRuleError, match="no rule for its derivative"):
        pb.vjp(lambda a: cdf(X, a, *shapes[1:]), A)[1](np.ones(4))


def test_counts_are_held_and_their_mean_moves():
    counts = np.array([0.0, 1.0, 3.0, 2.0])
    for name in ("pmf", "logpmf", "cdf"):
        function = getattr(stats.poisson, name)
        pb.testing.check_grads(lambda mu, function=function: function(counts, mu), (A,), order=2)


def test_parameters_by_keyword_are_differentiated_too():
    by_keyword = pb.grad(lambda loc: np.sum(stats.norm.logpdf(X, loc=loc, scale=2.0)))(0.5)
    assert by_keyword == pytest.approx(np.sum(X - 0.5) / 4)


def test_multivariate_normal():
    root = RNG.normal(size=(3, 3))
    cov, mean, x = root @ root.T + np.eye(3), RNG.normal(size=3), RNG.normal(size=(5, 3))
    mvn = stats.multivariate_normal
    np.testing.assert_allclose(mvn.logpdf(x, mean, cov), scipy.stats.multivariate_normal.logpdf(x, mean, cov))
    np.testing.assert_allclose(mvn.entropy(mean, cov), scipy.stats.multivariate_normal.entropy(mean, cov))
    pb.testing.check_grads(lambda x, mean, cov: mvn.logpdf(x, mean, (cov + cov.T) / 2), (x, mean, cov), order=1)
    pb.testing.check_grads(lambda cov: mvn.entropy(mean, cov), (cov,), order=1)


def test_dirichlet():
    x = np.array([0.2, 0.3, 0.5])
    alpha = np.array([1.5, 2.0, 3.0])
    for name in ("pdf", "logpdf"):
        function = getattr(stats.dirichlet, name)
        assert function(x, alpha) == pytest.approx(getattr(scipy.stats.dirichlet, name)(x, alpha))
        pb.testing.check_grads(lambda a, function=function: function(x, a), (alpha,), order=1)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolutions_are_scipys(mode):
    a, b = RNG.normal(size=(6, 5)), RNG.normal(size=(3, 2))
    np.testing.assert_allclose(signal.convolve(a, b, mode=mode), scipy.signal.convolve(a, b, mode))
    pb.testing.check_grads(lambda a, b: signal.convolve(a, b, mode=mode), (a, b), order=2)


def test_convolutions_over_some_axes_sum_over_others():
    a, b = RNG.normal(size=(3, 5)), RNG.normal(size=(3, 4))
    found = signal.convolve(a, b, axes=([1], [1]), dot_axes=([0], [0]))
    np.testing.assert_allclose(found, sum(np.convolve(x, y) for x, y in zip(a, b, strict=True)))
    with pytest.raises(ValueError, match="larger along all"):
        signal.convolve(np.ones((2, 5)), np.ones((3, 4)), mode="valid")


def test_matrix_equations():
    a, b, q = (RNG.normal(size=(3, 3)) for _ in range(3))
    spd = a @ a.T + np.eye(3)
    pb.testing.check_grads(linalg.sqrtm, (spd,), order=2)
    pb.testing.check_grads(linalg.solve_sylvester, (a, b, q), order=2)


@pytest.mark.parametrize("shape", [(5,), (5, 2)])
def test_banded_systems(shape):
    ab, b = RNG.normal(size=(4, 5)) + np.array([0, 5, 0, 0])[:, None], RNG.normal(size=shape)
    np.testing.assert_allclose(linalg.solve_banded((2, 1), ab, b), scipy.linalg.solve_banded((2, 1), ab, b))
    pb.testing.check_grads(lambda ab, b: linalg.solve_banded((2, 1), ab, b), (ab, b), order=2)


def test_odes_are_differentiated_by_their_adjoint():
    def motion(y, t, rate):
        return -rate * y + np.sin(t)

    times = np.linspace(0.1, 0.5, 4)
    check_grads(lambda y0, t, rate: integrate.odeint(motion, y0, t, (rate,)), (0, 1, 2), modes=["rev"], order=1)(
        np.array([1.0, 2.0]), times, np.array([0.5, 0.7])
    )

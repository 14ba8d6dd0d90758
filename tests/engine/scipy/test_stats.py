"""pb.scipy.stats: the formulas against SciPy's values, and their derivatives against differences."""

import numpy as np
import pytest
import scipy  # its parts load when a test uses them: every worker collects every test

import pullback as pb
from pullback.errors import NoRuleError, TracingError
from pullback.scipy import stats

INSIDE = {
    "norm": (np.array([-1.5, 0.2, 2.5]), ()),
    "t": (np.array([-1.5, 0.2, 2.5]), (3.5,)),
    "beta": (np.array([0.2, 0.5, 0.9]), (1.7, 2.4)),
    "gamma": (np.array([0.3, 1.1, 4.0]), (2.3,)),
    "chi2": (np.array([0.3, 1.1, 4.0]), (3.5,)),
}
DENSITIES = ("pdf", "logpdf")
PROBABILITIES = ("cdf", "logcdf", "sf", "logsf")


@pytest.mark.sample(every=5)
@pytest.mark.parametrize("name", INSIDE)
@pytest.mark.parametrize("method", DENSITIES + PROBABILITIES)
def test_values_and_derivatives_by_point_location_and_scale(name, method, agrees_everywhere):
    z, shapes = INSIDE[name]
    ours, scipys = getattr(getattr(stats, name), method), getattr(getattr(scipy.stats, name), method)

    def function(x, loc, log_scale):
        return ours(x, *shapes, loc, np.exp(log_scale))

    x = 0.5 + 1.3 * z
    traced, _ = pb.vjp(lambda x: ours(x, *shapes, loc=0.5, scale=1.3), x)
    np.testing.assert_allclose(traced, scipys(x, *shapes, 0.5, 1.3), rtol=1e-12)
    np.testing.assert_array_equal(ours(x, *shapes, 0.5, 1.3), scipys(x, *shapes, 0.5, 1.3))
    pb.testing.check_grads(function, [x, 0.5, np.log(1.3)])
    agrees_everywhere(lambda x: ours(x, *shapes, 0.5, 1.3), x)


@pytest.mark.parametrize("name", ["t", "beta", "gamma", "chi2"])
def test_densities_are_differentiated_by_shapes_and_probabilities_refuse_to(name):
    z, shapes = INSIDE[name]
    distribution = getattr(stats, name)
    for method in DENSITIES:
        pb.testing.check_grads(lambda *shapes, m=method: getattr(distribution, m)(z, *shapes), shapes)
    with pytest.raises(NoRuleError, match="hold"):
        pb.grad(lambda *shapes: np.sum(distribution.cdf(z, *shapes)))(*shapes)


@pytest.mark.parametrize("name", ["beta", "gamma", "chi2"])
def test_outside_the_support_the_density_is_zero_and_does_not_move(name):
    _, shapes = INSIDE[name]
    distribution = getattr(stats, name)
    with np.errstate(divide="ignore"):
        value, slope = pb.value_and_grad(lambda x: distribution.logpdf(x, *shapes))(-1.0)
        assert (value, slope) == (-np.inf, 0.0)
    assert pb.value_and_grad(lambda x: distribution.pdf(x, *shapes))(-1.0) == (0.0, 0.0)
    assert pb.value_and_grad(lambda x: distribution.cdf(x, *shapes))(-1.0) == (0.0, 0.0)
    assert pb.value_and_grad(lambda x: distribution.sf(x, *shapes))(-1.0) == (1.0, 0.0)


def test_tails_of_the_normal_distribution_stay_finite():
    np.testing.assert_allclose(pb.grad(stats.norm.logcdf)(-40.0), 40.024968848, rtol=1e-9)
    np.testing.assert_allclose(pb.grad(stats.norm.logsf)(40.0), -40.024968848, rtol=1e-9)


def test_the_rest_is_scipys():
    assert stats.norm.ppf(0.975) == scipy.stats.norm.ppf(0.975)
    assert stats.cauchy is scipy.stats.cauchy
    with pytest.raises(TypeError, match="parameters a, loc, scale"):
        pb.grad(lambda x: stats.gamma.pdf(x, 1.0, b=2.0))(1.0)
    with pytest.raises(TypeError, match="gamma needs a"):
        pb.grad(stats.gamma.pdf)(1.0)


@pytest.mark.parametrize("method", ["pmf", "logpmf", "cdf", "sf"])
def test_poisson_by_its_mean(method, agrees_everywhere):
    ours, scipys = getattr(stats.poisson, method), getattr(scipy.stats.poisson, method)
    k, mu = np.array([0, 1, 4]), np.array([0.5, 1.7, 3.0])
    np.testing.assert_allclose(pb.vjp(lambda mu: ours(k, mu), mu)[0], scipys(k, mu), rtol=1e-12)
    agrees_everywhere(lambda mu: ours(k, mu), mu)
    np.testing.assert_array_equal(ours(k, mu), scipys(k, mu))
    with pytest.raises(TracingError, match="steps"):
        pb.grad(lambda k: ours(k, 1.0))(2.0)


def test_impossible_counts():
    assert pb.value_and_grad(lambda mu: stats.poisson.pmf(1.5, mu))(2.0) == (0.0, 0.0)
    assert pb.value_and_grad(lambda mu: stats.poisson.cdf(-1, mu))(2.0) == (0.0, 0.0)


def factor(seed=0):
    return np.random.default_rng(seed).normal(size=(3, 3)) + 2 * np.eye(3)


@pytest.mark.parametrize("method", ["pdf", "logpdf"])
@pytest.mark.parametrize("shape", [(3,), (4, 3), (2, 4, 3)])
def test_multivariate_normal(method, shape):
    rng = np.random.default_rng(1)
    x, mean = rng.normal(size=shape), rng.normal(size=3)
    ours, scipys = getattr(stats.multivariate_normal, method), getattr(scipy.stats.multivariate_normal, method)

    def function(x, mean, f):
        return ours(x, mean, f @ f.T)

    value, _ = pb.vjp(function, x, mean, factor())
    np.testing.assert_allclose(value, scipys(x, mean, factor() @ factor().T), rtol=1e-10)
    np.testing.assert_array_equal(ours(x, mean, np.eye(3)), scipys(x, mean, np.eye(3)))
    pb.testing.check_grads(function, [x, mean, factor()])


@pytest.mark.parametrize(
    ("x", "mean", "cov"),
    [(0.3, None, 1.0), (np.array([0.3, 1.0]), 0.5, 2.0), (np.array([0.3, 1.0]), np.zeros(2), np.array([2.0, 3.0]))],
)
def test_numbers_and_diagonals_as_covariance(x, mean, cov):
    function = stats.multivariate_normal.logpdf
    value, _ = pb.vjp(lambda x: function(x, mean, cov), x)
    np.testing.assert_allclose(value, scipy.stats.multivariate_normal.logpdf(x, mean, cov), rtol=1e-12)


def test_entropy_and_symmetry():
    covariance = factor() @ factor().T
    gradient = pb.grad(lambda cov: stats.multivariate_normal.entropy(None, cov))(covariance)
    np.testing.assert_allclose(gradient, np.linalg.inv(covariance) / 2)
    value, _ = pb.vjp(lambda cov: stats.multivariate_normal.entropy(np.zeros(3), cov), covariance)
    np.testing.assert_allclose(value, scipy.stats.multivariate_normal.entropy(np.zeros(3), covariance))
    with pytest.raises(TracingError, match="allow_singular"):
        pb.grad(lambda cov: stats.multivariate_normal.pdf(np.ones(3), None, cov, allow_singular=True))(covariance)


@pytest.mark.parametrize("method", ["pdf", "logpdf"])
def test_dirichlet(method):
    ours, scipys = getattr(stats.dirichlet, method), getattr(scipy.stats.dirichlet, method)
    alpha, x = np.array([0.7, 1.5, 3.0]), np.array([0.2, 0.5, 0.3])
    np.testing.assert_allclose(pb.vjp(ours, x, alpha)[0], scipys(x, alpha), rtol=1e-12)
    pb.testing.check_grads(lambda e, alpha: ours(e / np.sum(e), alpha), [x, alpha])
    pb.testing.check_grads(ours, [x[:2], alpha])
    columns = np.stack([x, x[::-1]], axis=1)
    np.testing.assert_allclose(pb.vjp(lambda alpha: ours(columns, alpha), alpha)[0], scipys(columns, alpha))
    np.testing.assert_array_equal(ours(x, alpha), scipys(x, alpha))
    with pytest.raises(ValueError, match="do not fit"):
        pb.vjp(ours, np.ones(5) / 5, alpha)

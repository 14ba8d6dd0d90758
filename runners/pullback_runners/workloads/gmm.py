"""Log-posterior of points under a mixture of Gaussians with a Wishart prior, as GradBench has it.

    L = -n d log(2 pi) / 2 + sum over i of logsumexp over k of (alpha_k + sum(q_k) - |Q_k (x_i - mu_k)|^2 / 2)
        - n logsumexp(alpha) + prior

Q_k is the triangular root of a precision: exp(q_k) on its diagonal and l_k below it, column by column. The prior of
degrees of freedom p = d + m + 1 and scale gamma is

    sum over k of (d p log(gamma / sqrt(2)) - log Gamma_d(p / 2) - gamma^2 (|exp(q_k)|^2 + |l_k|^2) / 2 + m sum(q_k))

alpha (k,), mu (k, d), q (k, d), l (k, d (d - 1) / 2), x (n, d). x is a constant. ADBench has the same function with the
prior subtracted: `gmm_adbench`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy  # its parts are loaded when they are used first: 0.15 s for each timed process

import pullback as pb
from pullback_runners.workloads.gmm_likelihood import positions_below_diagonal
from pullback_runners.workloads.registry import Inputs, ValueAndGradients, grid, workload


def prior_constant(d: int, k: int, n: int, *, gamma: float, m: int, prior_sign: float) -> float:
    """The part of the function that depends on sizes alone."""
    freedom = d + m + 1
    of_prior = freedom * d * (np.log(gamma) - 0.5 * np.log(2)) - scipy.special.multigammaln(0.5 * freedom, d)
    return float(prior_sign * k * of_prior - 0.5 * n * d * np.log(2 * np.pi))


def log_posterior(
    d: int, k: int, n: int, *, gamma: float = 1.0, m: int = 0, prior_sign: float = 1.0
) -> Callable[..., Any]:
    """The function of alpha, mu, q, l and x, for a prior of `m` and `gamma` that is added or subtracted."""
    rows, columns = positions_below_diagonal(d)
    # Where in a row of l, with a zero put behind it, each element of the matrix below the diagonal is.
    places = np.full((d, d), len(rows))
    places[rows, columns] = np.arange(len(rows))
    identity = np.eye(d)
    constant = prior_constant(d, k, n, gamma=gamma, m=m, prior_sign=prior_sign)

    def posterior(alpha: Any, mu: Any, q: Any, l: Any, x: Any) -> Any:  # noqa: E741 - the letter of the formula
        roots = np.exp(q)[:, :, None] * identity.astype(x.dtype)
        if d > 1:
            roots = roots + np.concatenate([l, np.zeros((k, 1), x.dtype)], axis=1)[:, places]
        # All roots are one matrix, so that the product of all of them with all points is one. Points and means are moved
        # to the middle of the points first: Q x - Q mu would lose digits where both are far from zero.
        middle = np.mean(x, axis=0)
        moved = np.reshape(roots, (k * d, d)) @ (x - middle).T
        offsets = np.sum(roots * (mu - middle)[:, None, :], axis=2)
        scaled = np.reshape(moved, (k, d, n)) - offsets[:, :, None]
        sums = np.sum(q, axis=1)
        exponents = (alpha + sums)[:, None] - 0.5 * np.sum(scaled**2, axis=1)
        likelihood = np.sum(pb.nn.logsumexp(exponents, axis=0)) - n * pb.nn.logsumexp(alpha, axis=0)
        squares = np.sum(np.exp(2 * q)) + (np.sum(l**2) if d > 1 else 0.0)
        prior = m * np.sum(sums) - 0.5 * gamma**2 * squares
        return likelihood + prior_sign * prior + constant

    return posterior


@workload(
    wrt=("alpha", "mu", "q", "l"),
    quick=grid(d=(2,), k=(5,), n=(100,)),
    standard=grid(d=(10,), k=(25,), n=(1000,)),
    full=grid(d=(2, 10, 20, 32, 64), k=(5, 25, 100), n=(1000,)),
)
def gmm(d: int, k: int, n: int) -> Callable[..., Any]:
    """Log-posterior of a mixture of Gaussians with respect to weights, means and precisions."""
    return log_posterior(d, k, n)


def draw_mixture(rng: np.random.Generator, dtype: np.dtype[Any], d: int, k: int, n: int) -> Inputs:
    """Parameters and points, distributed as GradBench draws them."""
    return {
        "alpha": rng.normal(size=k).astype(dtype),
        "mu": rng.uniform(size=(k, d)).astype(dtype),
        "q": rng.normal(size=(k, d)).astype(dtype),
        "l": rng.normal(size=(k, d * (d - 1) // 2)).astype(dtype),
        "x": rng.normal(size=(n, d)).astype(dtype),
    }


def by_component(
    alpha: Any,
    mu: Any,
    q: Any,
    l: Any,  # noqa: E741
    x: Any,
    *,
    gamma: float,
    m: int,
    prior_sign: float,
) -> ValueAndGradients:
    """Value and gradients, component by component, with the formulas of one Gaussian and of one Wishart matrix."""
    (k, d), n = mu.shape, len(x)
    rows, columns = positions_below_diagonal(d)
    exponents, scaled, roots = np.empty((k, n)), [], []
    prior, freedom = 0.0, d + m + 1
    for component in range(k):
        root = np.diag(np.exp(q[component]))
        root[rows, columns] = l[component]
        roots.append(root)
        scaled.append((x - mu[component]) @ root.T)
        exponents[component] = alpha[component] + np.sum(q[component]) - 0.5 * np.sum(scaled[component] ** 2, 1)
        # The logarithm of the density of the precision root.T @ root, by its determinant and trace.
        prior += (
            0.5 * m * np.linalg.slogdet(root.T @ root)[1]
            - 0.5 * gamma**2 * np.trace(root.T @ root)
            + freedom * d * np.log(gamma)
            - 0.5 * freedom * d * np.log(2)
            - scipy.special.multigammaln(0.5 * freedom, d)
        )
    highest = exponents.max(0)
    shares = np.exp(exponents - highest)
    totals = shares.sum(0)
    shares /= totals
    weights = np.exp(alpha - alpha.max())
    value = (
        np.sum(highest + np.log(totals)) - n * (alpha.max() + np.log(weights.sum())) - 0.5 * n * d * np.log(2 * np.pi)
    )
    mu_bar, q_bar, l_bar = np.empty_like(mu), np.empty_like(q), np.empty_like(l)
    for component in range(k):
        scaled_bar = -shares[component][:, None] * scaled[component]
        mu_bar[component] = -scaled_bar.sum(0) @ roots[component]
        root_bar = scaled_bar.T @ (x - mu[component]) - prior_sign * gamma**2 * roots[component]
        q_bar[component] = np.diag(root_bar) * np.diag(roots[component]) + shares[component].sum() + prior_sign * m
        l_bar[component] = root_bar[rows, columns]
    return value + prior_sign * prior, {
        "alpha": shares.sum(1) - n * weights / weights.sum(),
        "mu": mu_bar,
        "q": q_bar,
        "l": l_bar,
    }


gmm.inputs(draw_mixture)


@gmm.oracle
def _(alpha: Any, mu: Any, q: Any, l: Any, x: Any, **_: int) -> ValueAndGradients:  # noqa: E741
    return by_component(alpha, mu, q, l, x, gamma=1.0, m=0, prior_sign=1.0)

"""Log-likelihood of points under a mixture of Gaussians, as in ADBench, without the prior.

    L = sum over points i of logsumexp over k of (a_k + sum(q_k) - |Q_k (x_i - m_k)|^2 / 2), minus n logsumexp(a)

a (k,) logits of the weights, m (k, d) means. Row k of `factors` (k, d + d (d - 1) / 2) holds Q_k, the triangular root of a
precision: first the logarithms q_k of its diagonal, then what is below it, column by column.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import pullback as pb
from pullback_runners.workloads.registry import Inputs, ValueAndGradients, grid, workload


def positions_below_diagonal(d: int) -> tuple[Any, Any]:
    """Rows and columns of the elements below the diagonal of a (d, d) matrix, column by column."""
    columns, rows = np.triu_indices(d, 1)
    return rows, columns


@workload(
    wrt=("weights", "means", "factors"),
    quick=grid(d=(2,), k=(5,), n=(100,), dtype=("f8",)),
    standard=grid(d=(10,), k=(25,), n=(1_000,), dtype=("f8",)),
    full=grid(d=(2, 10, 20), k=(5, 25), n=(1_000,), dtype=("f8",)) + grid(d=(10,), k=(25,), n=(1_000,), dtype=("f4",)),
)
def gmm_likelihood(d: int, k: int, n: int) -> Callable[..., Any]:
    """Log-likelihood of a mixture of Gaussians with respect to weights, means and precisions."""
    rows, columns = positions_below_diagonal(d)
    # Where in a row of `factors`, with a zero put behind it, each element of the matrix below the diagonal is.
    places = np.full((d, d), len(rows))
    places[rows, columns] = np.arange(len(rows))

    def likelihood(weights: Any, means: Any, factors: Any, x: Any) -> Any:
        logs = factors[:, :d]
        below = np.concatenate([factors[:, d:], np.zeros((k, 1), x.dtype)], axis=1)[:, places]
        centred = x[:, None, :] - means
        scaled = np.exp(logs) * centred + np.einsum("kij,nkj->nki", below, centred)
        exponents = weights + np.sum(logs, axis=1) - 0.5 * np.sum(scaled**2, axis=2)
        return np.sum(pb.nn.logsumexp(exponents, axis=1)) - n * pb.nn.logsumexp(weights, axis=0)

    return likelihood


@gmm_likelihood.inputs
def _(rng: np.random.Generator, dtype: np.dtype[Any], d: int, k: int, n: int) -> Inputs:
    return {
        "weights": rng.standard_normal(k).astype(dtype),
        "means": rng.standard_normal((k, d)).astype(dtype),
        "factors": (0.3 * rng.standard_normal((k, d * (d + 1) // 2))).astype(dtype),
        "x": rng.standard_normal((n, d)).astype(dtype),
    }


@gmm_likelihood.oracle
def _(weights: Any, means: Any, factors: Any, x: Any, *, d: int, k: int, n: int) -> ValueAndGradients:
    # Component by component, with the dense inverse-free formulas of one Gaussian.
    rows, columns = positions_below_diagonal(d)
    exponents, scaled, roots = np.empty((k, n)), [], []
    for component in range(k):
        root = np.diag(np.exp(factors[component, :d]))
        root[rows, columns] = factors[component, d:]
        roots.append(root)
        scaled.append((x - means[component]) @ root.T)
        exponents[component] = (
            weights[component] + np.sum(factors[component, :d]) - 0.5 * np.sum(scaled[component] ** 2, 1)
        )
    highest = exponents.max(0)
    shares = np.exp(exponents - highest)
    totals = shares.sum(0)
    shares /= totals
    prior = np.exp(weights - weights.max())
    value = np.sum(highest + np.log(totals)) - n * (weights.max() + np.log(prior.sum()))
    weights_bar = shares.sum(1) - n * prior / prior.sum()
    means_bar, factors_bar = np.empty_like(means), np.empty_like(factors)
    for component in range(k):
        scaled_bar = -shares[component][:, None] * scaled[component]
        means_bar[component] = -scaled_bar.sum(0) @ roots[component]
        root_bar = scaled_bar.T @ (x - means[component])
        factors_bar[component, :d] = np.diag(root_bar) * np.diag(roots[component]) + shares[component].sum()
        factors_bar[component, d:] = root_bar[rows, columns]
    return value, {"weights": weights_bar, "means": means_bar, "factors": factors_bar}


@gmm_likelihood.peer("numpy")
def _(weights: Any, means: Any, factors: Any, x: Any, *, d: int, k: int, n: int) -> ValueAndGradients:
    # All components at once: batched products of (n, d) with (d, d).
    rows, columns = positions_below_diagonal(d)
    diagonal = np.arange(d)
    roots = np.zeros((k, d, d), x.dtype)
    roots[:, diagonal, diagonal] = np.exp(factors[:, :d])
    roots[:, rows, columns] = factors[:, d:]
    centred = x - means[:, None, :]
    scaled = centred @ roots.transpose(0, 2, 1)
    shares = np.einsum("kni,kni->kn", scaled, scaled)
    shares *= -0.5
    shares += (weights + factors[:, :d].sum(1))[:, None]
    highest = shares.max(0)
    shares -= highest
    np.exp(shares, out=shares)
    totals = shares.sum(0)
    shares /= totals
    prior = np.exp(weights - weights.max())
    value = np.sum(highest + np.log(totals)) - n * (weights.max() + np.log(prior.sum()))
    share_of = shares.sum(1)
    scaled *= shares[:, :, None]
    roots_bar = -(scaled.transpose(0, 2, 1) @ centred)
    means_bar = (scaled.sum(1)[:, None, :] @ roots)[:, 0]
    factors_bar = np.empty_like(factors)
    factors_bar[:, :d] = roots_bar[:, diagonal, diagonal] * roots[:, diagonal, diagonal] + share_of[:, None]
    factors_bar[:, d:] = roots_bar[:, rows, columns]
    return value, {"weights": share_of - n * prior / prior.sum(), "means": means_bar, "factors": factors_bar}

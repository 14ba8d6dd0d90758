"""The multivariate normal distribution, as a composition of differentiable functions.

A singular covariance (`allow_singular=True`) is taken on the subspace it spans, and cannot itself be differentiated.
"""

from typing import Any

import numpy as np

from pullback.compat.autograd.tracer import getval, isbox
from pullback.namespaces import the_rest_of

_LOG_2PI = float(np.log(2 * np.pi))


def logpdf(x: Any, mean: Any, cov: Any, allow_singular: bool = False) -> Any:  # noqa: FBT001, FBT002 (SciPy's own)
    """Log density at the points in the last axis of x."""
    deviation = x - mean
    if allow_singular:
        return _singular(deviation, cov)
    solved = np.linalg.solve(cov, np.expand_dims(deviation, -1))[..., 0]
    _, logdet = np.linalg.slogdet(cov)
    return -0.5 * (np.shape(cov)[-1] * _LOG_2PI + logdet + np.sum(deviation * solved, axis=-1))


def pdf(x: Any, mean: Any, cov: Any, allow_singular: bool = False) -> Any:  # noqa: FBT001, FBT002 (SciPy's own)
    """Density at the points in the last axis of x."""
    return np.exp(logpdf(x, mean, cov, allow_singular))


def entropy(mean: Any, cov: Any) -> Any:
    """Differential entropy, which the mean does not change."""
    _, logdet = np.linalg.slogdet(cov)
    return 0.5 * (np.shape(cov)[-1] * (_LOG_2PI + 1) + logdet)


def _singular(deviation: Any, cov: Any) -> Any:
    if isbox(cov):
        raise NotImplementedError(
            "the density is not differentiable by a singular covariance; use allow_singular=False"
        )
    sizes, directions = np.linalg.eigh(cov)
    floor = 1e6 * np.finfo(sizes.dtype).eps * np.max(np.abs(sizes))  # SciPy's own threshold for double precision
    spanned = sizes > floor
    scaled = np.matmul(deviation, directions[:, spanned] / np.sqrt(sizes[spanned]))
    outside = np.linalg.norm(np.matmul(getval(deviation), directions[:, ~spanned]), axis=-1) > 10 * floor
    logdet = np.sum(np.log(sizes[spanned]))
    inside = -0.5 * (np.sum(spanned) * _LOG_2PI + logdet + np.sum(scaled**2, axis=-1))
    return np.where(outside, -np.inf, inside)


__getattr__, __dir__ = the_rest_of("scipy.stats:multivariate_normal", __name__)

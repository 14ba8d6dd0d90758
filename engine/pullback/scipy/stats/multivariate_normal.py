"""The multivariate normal distribution: points along the last axis.

With the Cholesky factor l of the covariance and z = l^-1 (x - mean):  log p = -(z^T z + d log(2 pi)) / 2 - sum log diag l.
The cotangent of the covariance is symmetric.
"""

import math
from typing import Any

import numpy as np

from pullback.errors import TracingError
from pullback.namespaces import the_rest_of
from pullback.numpy.creation import asarray
from pullback.scipy.stand_ins import stands_in_for

_in_scipy = stands_in_for("scipy.stats:multivariate_normal")


@_in_scipy
def logpdf(x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Any:
    """Logarithm of the density at x."""
    if allow_singular:
        raise TracingError("multivariate_normal(…, allow_singular=True) has no derivative; leave it out")
    x, mean, cov = _points_and_parameters(x, mean, cov)
    factor = np.linalg.cholesky(cov)
    d = np.shape(cov)[-1]
    deviations = np.reshape(x - mean, (-1, d))
    z = np.linalg.solve(factor, np.transpose(deviations))
    log_density = -(np.sum(np.square(z), axis=0) + d * math.log(2 * math.pi)) / 2 - _half_log_determinant(factor)
    return np.reshape(log_density, np.shape(x - mean)[:-1])


@_in_scipy
def pdf(x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Any:
    """Density at x."""
    return np.exp(logpdf(x, mean, cov, allow_singular))


@_in_scipy
def entropy(mean: Any = None, cov: Any = 1) -> Any:
    """Differential entropy, by the covariance."""
    _, _, cov = _points_and_parameters(0.0, mean, cov)
    d = np.shape(cov)[-1]
    return d * (1 + math.log(2 * math.pi)) / 2 + _half_log_determinant(np.linalg.cholesky(cov))


def _half_log_determinant(factor: Any) -> Any:
    return np.sum(np.log(np.diagonal(factor)))


def _points_and_parameters(x: Any, mean: Any, cov: Any) -> tuple[Any, Any, Any]:
    """Points with an axis of coordinates, a mean, and a covariance matrix: SciPy also takes a number or a diagonal."""
    x, cov = asarray(x), asarray(cov)
    mean = None if mean is None else asarray(mean)
    if np.ndim(cov) == 2:
        d = np.shape(cov)[0]
    elif mean is not None and np.ndim(mean) == 1:
        d = np.shape(mean)[0]
    else:
        d = np.shape(cov)[0] if np.ndim(cov) == 1 else 1
    if np.ndim(cov) < 2:
        cov = cov * np.eye(d)
    if np.shape(cov) != (d, d):
        raise ValueError(f"multivariate_normal: a covariance of shape {np.shape(cov)} does not fit {d} coordinates")
    if np.ndim(x) == 0:
        x = np.reshape(x, (1,))
    elif d == 1 and np.ndim(x) == 1:
        x = np.expand_dims(x, 1)
    return x, np.zeros(d) if mean is None else np.reshape(mean, (d,)), cov


__getattr__, __dir__ = the_rest_of("scipy.stats:multivariate_normal", __name__)

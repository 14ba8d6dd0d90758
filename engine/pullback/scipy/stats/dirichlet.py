"""The Dirichlet distribution: points along the first axis, as SciPy has them."""

from typing import Any

import numpy as np

from pullback.namespaces import the_rest_of
from pullback.numpy.creation import asarray
from pullback.rules.special.entropy import xlogy
from pullback.rules.special.gammas import gammaln
from pullback.scipy.stand_ins import stands_in_for

_in_scipy = stands_in_for("scipy.stats:dirichlet")


@_in_scipy
def logpdf(x: Any, alpha: Any) -> Any:
    """Logarithm of the density at x, a vector that sums to one or a matrix of such columns."""
    x, alpha = asarray(x), asarray(alpha)
    if np.ndim(alpha) != 1 or np.shape(x)[:1] not in (np.shape(alpha), (np.shape(alpha)[0] - 1,)):
        raise ValueError(f"dirichlet: points of shape {np.shape(x)} do not fit an alpha of shape {np.shape(alpha)}")
    if np.shape(x)[0] < np.shape(alpha)[0]:  # the last coordinate may be left out
        x = np.concatenate([x, 1 - np.sum(x, axis=0, keepdims=True)], axis=0)
    exponents = np.reshape(alpha - 1, (-1, *[1] * (np.ndim(x) - 1)))
    return np.sum(xlogy(exponents, x), axis=0) - np.sum(gammaln(alpha)) + gammaln(np.sum(alpha))


@_in_scipy
def pdf(x: Any, alpha: Any) -> Any:
    """Density at x."""
    return np.exp(logpdf(x, alpha))


__getattr__, __dir__ = the_rest_of("scipy.stats:dirichlet", __name__)

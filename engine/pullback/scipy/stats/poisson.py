"""The Poisson distribution, by its mean. Counts move in steps and have no derivative."""

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.errors import TracingError
from pullback.namespaces import the_rest_of
from pullback.numpy.creation import asarray, holds_traced
from pullback.rules.special.entropy import xlogy
from pullback.rules.special.gammas import gammainc, gammaincc, gammaln


def logpmf(k: Any, mu: Any, loc: Any = 0) -> Any:
    """Logarithm of the probability of k."""
    return _evaluated("logpmf", _log_probability, k, mu, loc)


def pmf(k: Any, mu: Any, loc: Any = 0) -> Any:
    """Probability of k."""
    return _evaluated("pmf", lambda count, mean: np.exp(_log_probability(count, mean)), k, mu, loc)


def cdf(k: Any, mu: Any, loc: Any = 0) -> Any:
    """Probability of at most k."""
    return _evaluated("cdf", lambda count, mean: _from_zero(gammaincc, count, mean, 0.0), k, mu, loc)


def sf(k: Any, mu: Any, loc: Any = 0) -> Any:
    """Probability of more than k."""
    return _evaluated("sf", lambda count, mean: _from_zero(gammainc, count, mean, 1.0), k, mu, loc)


def _evaluated(method: str, function: Callable[..., Any], k: Any, mu: Any, loc: Any) -> Any:
    if holds_traced(k) or holds_traced(loc):
        raise TracingError(f"poisson.{method} has no derivative by the count or the location: they move in steps")
    if not holds_traced(mu):
        return getattr(importlib.import_module("scipy.stats").poisson, method)(k, mu, loc)
    return function(np.asarray(k, float) - np.asarray(loc, float), asarray(mu))


def _log_probability(count: Any, mean: Any) -> Any:
    possible = (count >= 0) & (count == np.floor(count))
    whole = np.where(possible, count, 0.0)
    return np.where(possible, xlogy(whole, mean) - gammaln(whole + 1) - mean, -np.inf)


def _from_zero(function: Callable[..., Any], count: Any, mean: Any, below: float) -> Any:
    whole = np.floor(count)
    return np.where(whole < 0, below, function(np.maximum(whole, 0) + 1, mean))


__getattr__, __dir__ = the_rest_of("scipy.stats:poisson", __name__)

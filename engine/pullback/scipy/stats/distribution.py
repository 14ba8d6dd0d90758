"""The common part of univariate distributions: a location, a scale, a support, and six functions of them.

Where nothing is traced SciPy computes. Where something is, the formulas below do, written so that they can be
differentiated by the point, the location, the scale and, where a closed form exists, the shapes.
"""

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.numpy.creation import asarray, holds_traced


class Continuous:
    """A distribution in its standard form; functions are of the standardized point and the shapes.

    Outside the support the density is zero, and so is its derivative.
    """

    def __init__(
        self,
        name: str,
        shapes: tuple[str, ...],
        log_density: Callable[..., Any],
        cdf: Callable[..., Any],
        sf: Callable[..., Any],
        *,
        logcdf: Callable[..., Any] | None = None,
        logsf: Callable[..., Any] | None = None,
        support: tuple[float, float] = (-np.inf, np.inf),
        inside: float = 0.0,
    ) -> None:
        self._name = name
        self._shapes = shapes
        self._log_density = log_density
        self._cdf = cdf
        self._sf = sf
        self._logcdf = logcdf or (lambda z, *shapes: np.log(cdf(z, *shapes)))
        self._logsf = logsf or (lambda z, *shapes: np.log(sf(z, *shapes)))
        self._support = support
        self._inside = inside  # a point of the support, where formulas are evaluated for points outside

    def pdf(self, x: Any, *args: Any, **keywords: Any) -> Any:
        """Density at x."""
        return self._evaluated("pdf", lambda *operands: np.exp(self._scaled(*operands)), x, args, keywords)

    def logpdf(self, x: Any, *args: Any, **keywords: Any) -> Any:
        """Logarithm of the density at x."""
        return self._evaluated("logpdf", self._scaled, x, args, keywords)

    def cdf(self, x: Any, *args: Any, **keywords: Any) -> Any:
        """Probability of at most x."""
        return self._evaluated("cdf", self._standardized(self._cdf, 0.0, 1.0), x, args, keywords)

    def sf(self, x: Any, *args: Any, **keywords: Any) -> Any:
        """Probability of more than x."""
        return self._evaluated("sf", self._standardized(self._sf, 1.0, 0.0), x, args, keywords)

    def logcdf(self, x: Any, *args: Any, **keywords: Any) -> Any:
        """Logarithm of the probability of at most x."""
        return self._evaluated("logcdf", self._standardized(self._logcdf, -np.inf, 0.0), x, args, keywords)

    def logsf(self, x: Any, *args: Any, **keywords: Any) -> Any:
        """Logarithm of the probability of more than x."""
        return self._evaluated("logsf", self._standardized(self._logsf, 0.0, -np.inf), x, args, keywords)

    def _evaluated(
        self, method: str, function: Callable[..., Any], x: Any, args: tuple[Any, ...], keywords: dict[str, Any]
    ) -> Any:
        if not any(holds_traced(value) for value in (x, *args, *keywords.values())):
            original = getattr(importlib.import_module("scipy.stats"), self._name)
            return getattr(original, method)(x, *args, **keywords)
        return function(asarray(x), *(asarray(value) for value in self._parameters(args, keywords)))

    def _parameters(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> list[Any]:
        """Location, scale and shapes."""
        names = (*self._shapes, "loc", "scale")
        unknown = set(keywords) - set(names)
        if unknown or len(args) > len(names):
            raise TypeError(f"{self._name} takes the parameters {', '.join(names)}")
        given = {"loc": 0.0, "scale": 1.0, **dict(zip(names, args, strict=False)), **keywords}
        missing = [name for name in self._shapes if name not in given]
        if missing:
            raise TypeError(f"{self._name} needs {', '.join(missing)}")
        return [given["loc"], given["scale"], *(given[name] for name in self._shapes)]

    def _scaled(self, x: Any, loc: Any, scale: Any, *shapes: Any) -> Any:
        log_density = self._standardized(self._log_density, -np.inf, -np.inf)
        return log_density(x, loc, scale, *shapes) - np.log(scale)

    def _standardized(self, function: Callable[..., Any], below: float, above: float) -> Callable[..., Any]:
        """The function of a point, a location, a scale and shapes; outside the support it has constant values."""
        lowest, highest = self._support

        def of_point(x: Any, loc: Any, scale: Any, *shapes: Any) -> Any:
            z = (x - loc) / scale
            if np.isinf(lowest):
                return function(z, *shapes)
            too_low, too_high = z < lowest, z > highest
            y = function(np.where(np.logical_or(too_low, too_high), self._inside, z), *shapes)
            return np.where(too_low, below, np.where(too_high, above, y))

        return of_point

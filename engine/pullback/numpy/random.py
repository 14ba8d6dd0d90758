"""Random numbers: numpy.random, and a generator whose locations and scales may be traced."""

from typing import Any

import numpy as np

from pullback.core.primitive import TracedValue
from pullback.namespaces import the_rest_of

__all__ = ["Generator", "default_rng"]

__getattr__, __dir__ = the_rest_of("numpy.random", __name__)


class Generator(np.random.Generator):
    """NumPy's generator. Draws are differentiable functions of traced locations and scales (reparametrization).

    The numbers are those that NumPy's generator draws, up to rounding. The sample itself is a constant of the derivative:
    d normal(loc, scale) = d loc + z d scale, where z is the standard normal number that was drawn.
    """

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """Normal numbers of a mean and a standard deviation."""
        if not _any_traced(loc, scale):
            return super().normal(loc, scale, size)
        return loc + scale * self.standard_normal(_shape(size, loc, scale))

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        """Numbers between two ends."""
        if not _any_traced(low, high):
            return super().uniform(low, high, size)
        return low + (high - low) * self.random(_shape(size, low, high))

    def exponential(self, scale: Any = 1.0, size: Any = None) -> Any:
        """Exponential numbers of a mean."""
        if not _any_traced(scale):
            return super().exponential(scale, size)
        return scale * self.standard_exponential(_shape(size, scale))

    def lognormal(self, mean: Any = 0.0, sigma: Any = 1.0, size: Any = None) -> Any:
        """Numbers whose logarithm is normal."""
        if not _any_traced(mean, sigma):
            return super().lognormal(mean, sigma, size)
        return np.exp(self.normal(mean, sigma, size))

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """Laplace numbers of a location and a scale."""
        if not _any_traced(loc, scale):
            return super().laplace(loc, scale, size)
        return loc + scale * super().laplace(size=_shape(size, loc, scale))

    def logistic(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """Logistic numbers of a location and a scale."""
        if not _any_traced(loc, scale):
            return super().logistic(loc, scale, size)
        return loc + scale * super().logistic(size=_shape(size, loc, scale))

    def gumbel(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """Gumbel numbers of a location and a scale."""
        if not _any_traced(loc, scale):
            return super().gumbel(loc, scale, size)
        return loc + scale * super().gumbel(size=_shape(size, loc, scale))


def default_rng(seed: Any = None) -> Generator:
    """A generator as `numpy.random.default_rng` makes it, whose locations and scales may be traced.

    >>> def draw(mean, spread):
    ...     return pb.numpy.random.default_rng(0).normal(mean, spread)
    >>> slope, z = pb.grad(draw, wrt=("mean", "spread"))(1.0, 2.0)
    >>> bool(np.isclose(slope, 1.0) and np.isclose(z, np.random.default_rng(0).standard_normal()))
    True
    """
    return Generator(np.random.default_rng(seed).bit_generator)


def _any_traced(*parameters: Any) -> bool:
    return any(isinstance(parameter, TracedValue) for parameter in parameters)


def _shape(size: Any, *parameters: Any) -> Any:
    """The shape of a draw: the requested one, else that of the parameters together; None for one number."""
    return (np.broadcast_shapes(*map(np.shape, parameters)) or None) if size is None else size

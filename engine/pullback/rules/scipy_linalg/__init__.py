"""Functions of scipy.linalg that numpy.linalg lacks. This package imports SciPy, so `pullback.rules` leaves it out."""

from pullback.rules.scipy_linalg import convolution, exponential, lu, sylvester

__all__ = ["convolution", "exponential", "lu", "sylvester"]

"""What scipy.linalg has and numpy.linalg has not. Importing this package imports SciPy, so `pullback.rules` leaves it out."""

from pullback.rules.scipy_linalg import convolution, exponential, lu, sylvester

__all__ = ["convolution", "exponential", "lu", "sylvester"]

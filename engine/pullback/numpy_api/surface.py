"""All families of translations: importing this file fills the table."""

from pullback.numpy_api import (  # noqa: F401 - each registers its functions
    applying,
    complex_numbers,
    contractions,
    creating,
    cumulative,
    einsum,
    elementwise,
    fft,
    joining,
    linalg,
    norms,
    padding,
    polynomials,
    quantiles,
    rearranging,
    reductions,
    selecting,
    sets,
    shapes,
    sorting,
    statistics,
    writing,
)
from pullback.numpy_api.translations import FUNCTIONS

__all__ = ["FUNCTIONS"]

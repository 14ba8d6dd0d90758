"""All families of translations: importing this file fills the table."""

from pullback.numpy_api import (
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

FAMILIES = (
    statistics,
    sets,
    quantiles,
    polynomials,
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
    rearranging,
    reductions,
    selecting,
    shapes,
    sorting,
    writing,
)

__all__ = ["FAMILIES", "FUNCTIONS"]

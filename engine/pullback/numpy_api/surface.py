"""All families of translations: importing this file fills the table."""

from pullback.numpy_api import (  # noqa: F401 - each registers its functions
    complex_numbers,
    contractions,
    creation,
    cumulative,
    einsum,
    elementwise,
    fft,
    higher_order,
    inplace_functions,
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
)
from pullback.numpy_api.translations import FUNCTIONS

__all__ = ["FUNCTIONS"]

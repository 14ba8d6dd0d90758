"""All families of translations: importing this file fills the table."""

from pullback.numpy_api import (
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
)
from pullback.numpy_api.table import FUNCTIONS

FAMILIES = (
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
)

__all__ = ["FAMILIES", "FUNCTIONS"]

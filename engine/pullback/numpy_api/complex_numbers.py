"""Parts of complex numbers."""

from typing import Any

import numpy as np

from pullback.numpy_api.operands import as_operand
from pullback.numpy_api.translations import implements
from pullback.rules import complex_numbers, shapes


@implements(np.real)
def real(val: Any) -> Any:
    return complex_numbers.real(val) if val.dtype.kind == "c" else val


@implements(np.imag)
def imag(val: Any) -> Any:
    return complex_numbers.imag(val) if val.dtype.kind == "c" else np.zeros(np.shape(val), val.dtype)[()]


def conj(x: Any) -> Any:
    """A real number is its own conjugate."""
    return complex_numbers.conj(x) if as_operand(x).dtype.kind == "c" else x


def conjugate(x: Any) -> Any:
    """`numpy.conjugate`, which makes numbers of truth values; the method leaves them as they are."""
    return shapes.astype(x, dtype=np.dtype(np.int8)) if as_operand(x).dtype.kind == "b" else conj(x)


@implements(np.real_if_close)
def real_if_close(a: Any, tol: float = 100) -> Any:
    if a.dtype.kind != "c":
        return a
    tolerance = tol * np.finfo(a.dtype).eps if tol > 1 else tol
    return real(a) if bool(np.all(np.abs(imag(a)) < tolerance)) else a

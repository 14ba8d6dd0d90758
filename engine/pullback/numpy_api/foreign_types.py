"""Array types of other libraries among the operands, and which of them the engine computes with.

NumPy's rule is that an operator leaves the operation to a type with an `__array_ufunc__` of its own (xarray, pint), which
then comes back with the arrays inside. Two subclasses of ndarray change what an operation means, and are refused:
`numpy.matrix`, whose product is that of matrices, and masked arrays, whose mask no derivative would see.
"""

from typing import Any

import numpy as np

from pullback.core.primitive import TracedValue
from pullback.errors import TracingError

OPERANDS: set[type] = {bool, int, float, complex, np.ndarray}
"""Types known to be operands, so that asking costs one look-up; those met later are added."""


def is_operand(value: Any) -> bool:
    """True to compute with a value; otherwise its type does, or Python raises TypeError."""
    return takes_type(type(value))


def takes_type(kind: type) -> bool:
    """True to compute with values of a type."""
    if kind in OPERANDS:
        return True
    if issubclass(kind, np.ndarray) and issubclass(kind, np.matrix | np.ma.MaskedArray):  # numpy.ma takes 25 ms to load
        raise TracingError(
            f"a {kind.__name__} cannot be combined with a traced value; make it a plain array with numpy.asarray"
            + (" and select with numpy.where" if issubclass(kind, np.ma.MaskedArray) else "")
        )
    own = getattr(kind, "__array_ufunc__", np.ndarray.__array_ufunc__)
    if issubclass(kind, TracedValue) or own is np.ndarray.__array_ufunc__:
        OPERANDS.add(kind)
        return True
    return issubclass(kind, np.generic)

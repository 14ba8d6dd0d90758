"""NumPy's integer types, which make integers of traced values: constants, since an integer does not move."""

from typing import Any

import numpy as np

from pullback.compat.autograd.primitives import getval


def _integer(kind: Any) -> Any:
    """A subclass of an integer type, so that it still is one to `numpy.dtype`."""
    return type(kind.__name__, (kind,), {"__new__": lambda cls, *args: kind(*map(getval, args)), "__slots__": ()})


int8, int16, int32, int64 = map(_integer, (np.int8, np.int16, np.int32, np.int64))

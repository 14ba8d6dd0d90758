"""Choosing between arrays, element by element."""

from typing import Any

import numpy as np

from pullback.errors import TracingError
from pullback.numpy_api.table import implements
from pullback.rules import elementwise


@implements(np.where)
def where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    if x is None or y is None:
        raise TracingError(
            "numpy.where with one argument has a shape that depends on values; pass both branches: where(c, x, y)"
        )
    return elementwise.where(condition, x, y)

"""Products of matrices and tensors."""

from typing import Any

import numpy as np

from pullback.errors import TracingError
from pullback.numpy_api.table import implements, refuse
from pullback.rules import elementwise
from pullback.rules.contractions import matmul


@implements(np.dot)
def dot(a: Any, b: Any, out: Any = None) -> Any:
    refuse("numpy.dot", out=out)
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        return elementwise.mul(a, b)
    if np.ndim(b) > 2:
        raise TracingError("numpy.dot of a stack of matrices sums differently from numpy.matmul; write it with matmul")
    return matmul(a, b)

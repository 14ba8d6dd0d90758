"""Operations that write into an array they are given, and can still be differentiated.

The pullback puts the old contents back, bit for bit, so that after `grad` the caller's arrays are as they were.
"""

from typing import Any

import numpy as np

from pullback.primitive import Traced
from pullback.rules.inplace import copy, matmul_into


def matmul(c: Any, a: Any, b: Any) -> Any:
    """C <- a @ b; gives back c, which is the only name its new contents may be read under afterwards."""
    if not any(isinstance(operand, Traced) for operand in (c, a, b)):
        return np.matmul(a, b, out=c)
    return matmul_into(c, a, b, copy(c))

"""Operations that write into an array they are given, and can still be differentiated.

The pullback puts the old contents back, bit for bit, so that after `grad` the caller's arrays are as they were.
"""

from typing import Any

import numpy as np

from pullback.primitive import Traced, innermost_trace
from pullback.rules.inplace import copy, matmul_into


def matmul(c: Any, a: Any, b: Any) -> Any:
    """C <- a @ b; gives back c, which is the only name its new contents may be read under afterwards."""
    trace = innermost_trace()
    if trace is None:
        return np.matmul(a, b, out=c)
    operands = (c, a, b, copy(c))
    if any(isinstance(operand, Traced) and operand.trace.level >= trace.level for operand in operands):
        return matmul_into(*operands)
    # A product of constants is undone with the rest: the trace must know of it.
    return trace.apply(matmul_into, operands, {})

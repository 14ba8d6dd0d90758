"""Numbers of Python in native programs: results that Python's arithmetic may refuse or hold in more than 64 bits.

`python_number(y, size)` is y as a number of Python. A native program declines where `size` is too large: not finite for a
float, for which Python raises an error, or is infinite itself; near the limits of 64 bits for an integer.
"""

from typing import Any

from pullback.core.types import ArrayType
from pullback.rules.complex_parts import PlanPrimitive


class _PythonNumber(PlanPrimitive):
    """A number whose size is known to be right; what declines is its kernel (`backends/native/kernels/declined_values.py`)."""

    moves = False

    def evaluate(self, *operands: Any, **params: Any) -> Any:
        return operands[0].item()

    def infer(self, *types: ArrayType, **params: Any) -> tuple[ArrayType, ...]:
        return (ArrayType((), types[0].dtype, weak=True),)


python_number = _PythonNumber("python_number")

"""Elementwise expressions on large arrays, piece by piece, so that intermediate results stay in the cache.

NumPy makes a temporary array for every operation of `np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))`. Evaluated on
pieces of PIECE_BYTES the temporaries are small and stay in the first cache, and the rule makes one array whatever the
expression: 100 x 100 in single precision are three pieces.

float16 is computed in float32 and rounded once. Traced values go through the expression as a whole, operation by
operation, so an expression that is a derivative can be differentiated again.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.core.primitive import TracedValue

#: A handful of pieces fits a first-level cache; with smaller ones the calls of NumPy cost more than the memory does.
PIECE_BYTES = 16 * 1024

_HALF = np.dtype(np.float16)


class Pieces:
    """An elementwise expression: call it like the expression, or let it write into an array.

    An operand is an array of the shape of the result, a number, or None for one that the expression does not read.
    """

    def __init__(self, name: str, expression: Callable[..., Any]) -> None:
        self.__name__ = name
        self.expression = expression

    def __call__(self, *operands: Any) -> Any:
        """The value, in a fresh array."""
        if any(isinstance(operand, TracedValue) for operand in operands):
            return self.expression(*operands)
        return self._evaluate(None, operands)

    def into(self, out: Any, *operands: Any) -> Any:
        """Write the value into an array, which may be one of the operands, element for element."""
        return self._evaluate(out, operands)

    def _evaluate(self, out: Any, operands: Sequence[Any]) -> Any:
        operands = [np.asarray(operand) if isinstance(operand, list | tuple) else operand for operand in operands]
        half = _all_half(operands)
        flat = _flattened(out, operands)
        if flat is None:
            y = self._whole(operands, half=half)
            if out is None:
                return y
            out[...] = y
            return out
        flat_out, flat_operands, order = flat
        arrays = [operand for operand in flat_operands if isinstance(operand, np.ndarray)]
        step = max(1, PIECE_BYTES // max(array.itemsize for array in arrays))
        for start in range(0, arrays[0].size, step):
            piece = slice(start, start + step)
            y = self._whole([x[piece] if isinstance(x, np.ndarray) else x for x in flat_operands], half=half)
            if flat_out is None:
                out = np.empty_like(_first_of_full_shape(operands), dtype=y.dtype)
                flat_out = _line(out, order)
            flat_out[piece] = y
        return out

    def _whole(self, operands: Sequence[Any], *, half: bool) -> Any:
        if half:
            operands = [_single(operand) for operand in operands]
        y = self.expression(*operands)
        if half:
            y = y.astype(_HALF)
        return y[()] if isinstance(y, np.ndarray) and y.ndim == 0 else y


def _all_half(operands: Sequence[Any]) -> bool:
    dtypes = [operand.dtype for operand in operands if hasattr(operand, "dtype")]
    return bool(dtypes) and all(dtype == _HALF for dtype in dtypes)


def _single(operand: Any) -> Any:
    return operand.astype(np.float32) if hasattr(operand, "dtype") else operand


def _first_of_full_shape(operands: Sequence[Any]) -> Any:
    return next(x for x in operands if isinstance(x, np.ndarray) and _is_line(x))


def _is_line(x: np.ndarray[Any, Any]) -> bool:
    return _line_order(x) is not None


def _line_order(x: np.ndarray[Any, Any]) -> tuple[int, ...] | None:
    """The axes in the order of memory, if there are no gaps; (0, 1, …) is C's order."""
    if x.flags.c_contiguous:
        return tuple(range(x.ndim))
    order = tuple(sorted(range(x.ndim), key=x.strides.__getitem__, reverse=True))
    return order if x.transpose(order).flags.c_contiguous else None


def _line(x: np.ndarray[Any, Any], order: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """The elements in the order of memory, as a view."""
    return x.transpose(order).reshape(-1)


def _flattened(out: Any, operands: Sequence[Any]) -> tuple[Any, list[Any], tuple[int, ...]] | None:
    """Output and operands as lines that run in step, and the order of their axes; None where one evaluation will do.

    One number that is broadcast over the whole shape, which is what the cotangent of a sum is, becomes a number again.
    """
    arrays = [operand for operand in operands if isinstance(operand, np.ndarray)]
    if not arrays or max(array.nbytes for array in arrays) <= PIECE_BYTES:
        return None
    numbers = [x[(0,) * x.ndim] if isinstance(x, np.ndarray) and not any(x.strides) else x for x in operands]
    full = [x for x in (out, *numbers) if isinstance(x, np.ndarray)]
    if not any(isinstance(x, np.ndarray) for x in numbers):
        return None
    order = _line_order(full[0])
    if order is None or any(array.shape != full[0].shape for array in (*arrays, *full)):
        return None
    if not all(x.transpose(order).flags.c_contiguous for x in full):
        return None
    lines = [_line(x, order) if isinstance(x, np.ndarray) else x for x in numbers]
    return (None if out is None else _line(out, order)), lines, order

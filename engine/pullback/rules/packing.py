"""tiles: neighbouring arrays as the one array they already are.

The views of a block lie one after the other in memory; `tiles` gives that memory and copies nothing. Whether arrays lie
so is seen from their data pointers, so code that has the arrays decides (`pullback.packing`); all others concatenate.
Linear: in reverse every operand gets its slice of the one cotangent.
"""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from pullback.core.cases import cases, normal
from pullback.core.primitive import Primitive
from pullback.core.types import ArrayType
from pullback.rules.joining import concatenate


def tiling(views: Sequence[Any]) -> Any:
    """The memory that the views fill, in order and without gaps, as one array; None if they do not.

    If they fill the array that owns the memory, it is that very array.
    """
    if not all(type(view) is np.ndarray and view.flags.c_contiguous for view in views):
        return None
    filled = [view for view in views if view.size]
    owner = _owner(filled[0]) if filled else None
    if owner is None or not all(_owner(view) is owner and view.dtype == owner.dtype for view in filled):
        return None
    if any(after.ctypes.data != before.ctypes.data + before.nbytes for before, after in pairwise(filled)):
        return None
    start = (filled[0].ctypes.data - owner.ctypes.data) // owner.itemsize
    size = sum(view.size for view in filled)
    writeable = all(view.flags.writeable for view in filled)
    if owner.shape == (size,) and writeable == owner.flags.writeable:
        return owner
    part = owner.reshape(-1)[start : start + size]
    part.flags.writeable = writeable
    return part


def _owner(view: np.ndarray[Any, Any]) -> Any:
    """The array whose memory a view shows, if that is one whole piece."""
    owner: Any = view if view.base is None else view.base
    return owner if issubclass(type(owner), np.ndarray) and owner.flags.c_contiguous else None


class _Tiles(Primitive):
    """Gives the memory of its operands."""

    aliases_operand = True

    def evaluate(self, *operands: Any, **params: Any) -> Any:
        whole = tiling(operands)
        # Batches are cut along their first axis, and tiles that are cut so are no tiles.
        return whole if whole is not None else joined(operands)

    def infer(self, *types: ArrayType, **params: Any) -> tuple[ArrayType, ...]:
        return (ArrayType((sum(type_.size for type_ in types),), np.result_type(*(type_.dtype for type_ in types))),)

    def pull(
        self,
        needed: Sequence[bool],
        y_bar: Any,
        y: Any,
        operands: Sequence[Any],
        params: dict[str, Any],
    ) -> Sequence[Any]:
        ends = list(accumulate((np.size(operand) for operand in operands), initial=0))
        return [
            _as_operand(y_bar[start:stop], operand) if need else None
            for need, operand, (start, stop) in zip(needed, operands, pairwise(ends), strict=True)
        ]

    def push(self, tangents: Sequence[Any], y: Any, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        moved = [
            np.zeros(np.shape(operand), operand.dtype) if tangent is None else tangent
            for tangent, operand in zip(tangents, operands, strict=True)
        ]
        return joined(moved)

    def flops(self, types: Sequence[ArrayType], result: ArrayType) -> int:
        return 0


def _as_operand(v: Any, operand: Any) -> Any:
    shaped = np.reshape(v, np.shape(operand))
    return shaped if shaped.dtype == operand.dtype else shaped.astype(operand.dtype)


def joined(operands: Sequence[Any]) -> Any:
    """All elements, one array after the other, in a new array."""
    return concatenate(*[np.ravel(operand) for operand in operands], axis=0)


tiles = _Tiles("tiles")

cases(tiles, normal(3, 4), normal(2), normal(1, 2), because="arrays that are not neighbours are joined")
cases(tiles, normal(5), because="a single array")

"""Orders and positions: which element comes where. Reading by them is `gathering`."""

from typing import Any

import numpy as np

from pullback.core.flat import Flat
from pullback.ir.types import ArrayType

_POSITION = np.dtype(np.intp)


def _position_type(type_: ArrayType, axis: int, *, keepdims: bool) -> ArrayType:
    before, after = type_.shape[:axis], type_.shape[axis + 1 :]
    return ArrayType((*before, *([1] if keepdims else []), *after), _POSITION)


argmax: Flat = Flat(
    "argmax",
    lambda x, axis, keepdims: np.argmax(x, axis=axis, keepdims=keepdims),
    lambda type_, axis, keepdims: _position_type(type_, axis, keepdims=keepdims),
    lambda x, axis, keepdims: argmax(x, axis=axis + 1, keepdims=keepdims),
)
argmin: Flat = Flat(
    "argmin",
    lambda x, axis, keepdims: np.argmin(x, axis=axis, keepdims=keepdims),
    lambda type_, axis, keepdims: _position_type(type_, axis, keepdims=keepdims),
    lambda x, axis, keepdims: argmin(x, axis=axis + 1, keepdims=keepdims),
)
argsort: Flat = Flat(
    "argsort",
    lambda x, axis: np.argsort(x, axis=axis, kind="stable"),
    lambda type_, axis: ArrayType(type_.shape, _POSITION),
    lambda x, axis: argsort(x, axis=axis + 1),
)
argpartition: Flat = Flat(
    "argpartition",
    lambda x, kth, axis: np.argpartition(x, kth, axis=axis),
    lambda type_, kth, axis: ArrayType(type_.shape, _POSITION),
    lambda x, kth, axis: argpartition(x, kth=kth, axis=axis + 1),
)


def _lexsort(*keys: Any, axis: int) -> Any:
    return np.lexsort(keys, axis=axis)


lexsort = Flat("lexsort", _lexsort, lambda *types, axis: ArrayType(types[0].shape, _POSITION))
searchsorted = Flat(
    "searchsorted",
    lambda a, v, side: np.searchsorted(a, v, side=side),
    lambda a, v, side: ArrayType(v.shape, _POSITION),
)
histogram = Flat(
    "histogram",
    lambda x, edges: np.histogram(x, edges)[0],
    lambda x, edges: ArrayType((edges.shape[0] - 1,), _POSITION),
)

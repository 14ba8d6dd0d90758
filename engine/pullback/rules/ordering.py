"""Orders and positions: which element comes where. Reading by them is `gathering`."""

from functools import partial
from typing import Any

import numpy as np

from pullback.core.types import ArrayType
from pullback.core.zero_derivatives import ZeroDerivative

_POSITION = np.dtype(np.intp)


def _position_type(type_: ArrayType, axis: int, *, keepdims: bool) -> ArrayType:
    before, after = type_.shape[:axis], type_.shape[axis + 1 :]
    return ArrayType((*before, *([1] if keepdims else []), *after), _POSITION)


def _in_front(type_: ArrayType, axis: int, **_: Any) -> tuple[ArrayType, ...]:
    """NumPy looks along the last axis; of another it makes a copy, which here has memory of the plan's."""
    if axis == len(type_.shape) - 1:
        return ()
    return (ArrayType((*type_.shape[:axis], *type_.shape[axis + 1 :], type_.shape[axis]), type_.dtype),)


def _position_into(find: Any, out: Any, x: Any, axis: int, *, keepdims: bool, scratch: Any = ()) -> None:
    for moved in scratch:
        np.copyto(moved, np.moveaxis(x, axis, -1))
        x = moved
    find(x, axis=-1, out=np.squeeze(out, axis) if keepdims else out)


argmax: ZeroDerivative = ZeroDerivative(
    "argmax",
    lambda x, axis, keepdims: np.argmax(x, axis=axis, keepdims=keepdims),
    lambda type_, axis, keepdims: _position_type(type_, axis, keepdims=keepdims),
    batch=lambda x, axis, keepdims: argmax(x, axis=axis + 1, keepdims=keepdims),
    into=partial(_position_into, np.argmax),
    scratch=_in_front,
)
argmin: ZeroDerivative = ZeroDerivative(
    "argmin",
    lambda x, axis, keepdims: np.argmin(x, axis=axis, keepdims=keepdims),
    lambda type_, axis, keepdims: _position_type(type_, axis, keepdims=keepdims),
    batch=lambda x, axis, keepdims: argmin(x, axis=axis + 1, keepdims=keepdims),
    into=partial(_position_into, np.argmin),
    scratch=_in_front,
)


def _running_position(extremum: Any, x: Any, axis: int) -> Any:
    """The first position of each running extremum: one is new where the extremum is another, and NaN stays."""
    values = np.moveaxis(extremum.accumulate(x, axis=axis), axis, 0)
    is_new = (values[1:] != values[:-1]) & (values[:-1] == values[:-1])
    steps = np.arange(1, len(values)).reshape(-1, *[1] * (values.ndim - 1))
    found = np.zeros(values.shape, _POSITION)
    np.maximum.accumulate(np.where(is_new, steps, 0), axis=0, out=found[1:])
    return np.moveaxis(found, 0, axis)


running_argmax: ZeroDerivative = ZeroDerivative(
    "running_argmax",
    partial(_running_position, np.maximum),
    lambda type_, axis: ArrayType(type_.shape, _POSITION),
    batch=lambda x, axis: running_argmax(x, axis=axis + 1),
)
running_argmin: ZeroDerivative = ZeroDerivative(
    "running_argmin",
    partial(_running_position, np.minimum),
    lambda type_, axis: ArrayType(type_.shape, _POSITION),
    batch=lambda x, axis: running_argmin(x, axis=axis + 1),
)
argsort: ZeroDerivative = ZeroDerivative(
    "argsort",
    lambda x, axis: np.argsort(x, axis=axis, kind="stable"),
    lambda type_, axis: ArrayType(type_.shape, _POSITION),
    batch=lambda x, axis: argsort(x, axis=axis + 1),
)
argpartition: ZeroDerivative = ZeroDerivative(
    "argpartition",
    lambda x, kth, axis: np.argpartition(x, kth, axis=axis),
    lambda type_, kth, axis: ArrayType(type_.shape, _POSITION),
    batch=lambda x, kth, axis: argpartition(x, kth=kth, axis=axis + 1),
)


def _lexsort(*keys: Any, axis: int) -> Any:
    return np.lexsort(keys, axis=axis)


lexsort = ZeroDerivative("lexsort", _lexsort, lambda *types, axis: ArrayType(types[0].shape, _POSITION))
searchsorted = ZeroDerivative(
    "searchsorted",
    lambda a, v, side: np.searchsorted(a, v, side=side),
    lambda a, v, side: ArrayType(v.shape, _POSITION),
)
histogram = ZeroDerivative(
    "histogram",
    lambda x, edges: np.histogram(x, edges)[0],
    lambda x, edges: ArrayType((edges.shape[0] - 1,), _POSITION),
)

"""Joining arrays: concatenate, stack and their relatives, all by one primitive."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.core.primitive import TracedValue
from pullback.errors import TracingError
from pullback.numpy_api.operands import as_operand, normalized_axis
from pullback.numpy_api.shapes import astype, expand_dims, ravel, reshape, three_dimensional
from pullback.numpy_api.translations import implements, refuse
from pullback.rules import joining

Arrays = Sequence[Any]


@implements(np.concatenate, np.concat)
def concatenate(
    arrays: Arrays, /, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind"
) -> Any:
    refuse("numpy.concatenate", out=out, casting=None if casting == "same_kind" else casting)
    operands = _operands(arrays, "concatenate")
    if axis is None:
        operands, axis = [ravel(x) for x in operands], 0
    elif np.ndim(operands[0]) == 0:
        raise ValueError("numpy.concatenate cannot join numbers; use numpy.stack")
    if dtype is not None:
        operands = [astype(x, dtype) for x in operands]
    return joining.concatenate(*operands, axis=normalized_axis(axis, np.ndim(operands[0])))


@implements(np.stack)
def stack(arrays: Arrays, axis: int = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    operands = _operands(arrays, "stack")
    if len({np.shape(x) for x in operands}) > 1:
        raise ValueError("numpy.stack needs arrays of one shape; got " + ", ".join(str(np.shape(x)) for x in operands))
    place = normalized_axis(axis, np.ndim(operands[0]) + 1)
    return concatenate([expand_dims(x, place) for x in operands], place, out, dtype=dtype, casting=casting)


@implements(np.hstack)
def hstack(tup: Arrays, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    operands = [reshape(x, (1,)) if np.ndim(x) == 0 else x for x in _operands(tup, "hstack")]
    return concatenate(operands, 0 if np.ndim(operands[0]) == 1 else 1, dtype=dtype, casting=casting)


@implements(np.vstack)
def vstack(tup: Arrays, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    operands = [reshape(x, (1, np.size(x))) if np.ndim(x) < 2 else x for x in _operands(tup, "vstack")]
    return concatenate(operands, 0, dtype=dtype, casting=casting)


@implements(np.dstack)
def dstack(tup: Arrays) -> Any:
    return concatenate([three_dimensional(x) for x in _operands(tup, "dstack")], 2)


@implements(np.column_stack)
def column_stack(tup: Arrays) -> Any:
    columns = [reshape(x, (np.size(x), 1)) if np.ndim(x) < 2 else x for x in _operands(tup, "column_stack")]
    return concatenate(columns, 1)


@implements(np.append)
def append(arr: Any, values: Any, axis: Any = None) -> Any:
    return concatenate([arr, values], axis)


@implements(np.block)
def block(arrays: Any) -> Any:
    """Innermost lists are joined along the last axis, lists of lists along the one before it, and so on."""
    depth = _depth(arrays)
    ndim = max(depth, *(np.ndim(x) for x in _leaves(arrays)), 0)
    return _joined(arrays, depth, ndim)


def _joined(part: Any, depth: int, ndim: int) -> Any:
    if not isinstance(part, list):
        x = as_operand(part)
        return reshape(x, (1,) * (ndim - np.ndim(x)) + np.shape(x))
    if not part:
        raise ValueError("numpy.block got an empty list")
    return concatenate([_joined(inner, depth - 1, ndim) for inner in part], ndim - depth)


def _depth(part: Any) -> int:
    return 1 + max((_depth(inner) for inner in part), default=0) if isinstance(part, list) else 0


def _leaves(part: Any) -> list[Any]:
    return [leaf for inner in part for leaf in _leaves(inner)] if isinstance(part, list) else [part]


def _operands(arrays: Arrays, function: str) -> list[Any]:
    if isinstance(arrays, TracedValue | np.ndarray) and np.ndim(arrays) == 0:
        raise TracingError(f"numpy.{function} takes a sequence of arrays, not one number")
    operands = [as_operand(x) for x in arrays]
    if not operands:
        raise ValueError(f"numpy.{function} needs at least one array")
    return operands

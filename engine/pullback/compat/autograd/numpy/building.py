"""Functions that put arrays together out of lists of traced values, where NumPy would make an array of objects."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.core.primitive import TracedValue
from pullback.numpy import array


def append(arr: Any, values: Any, axis: int | None = None) -> Any:
    """`numpy.append`."""
    if axis is None:
        return np.concatenate((np.ravel(array(arr)), np.ravel(array(values))))
    return np.concatenate((array(arr), array(values)), axis=axis)


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Any:
    """`numpy.select`: the first choice whose condition holds."""
    chosen = default
    for condition, choice in reversed(list(zip(condlist, choicelist, strict=True))):
        chosen = np.where(condition, array(choice), chosen)
    return chosen


def where(condition: Any, *branches: Any, **named: Any) -> Any:
    """`numpy.where`, which gives lists and Python numbers where all it gets are such."""
    if not branches and not named:
        return np.where(condition)
    given = [*branches, *(named[name] for name in ("x", "y")[len(branches) :] if name in named)]
    if len(given) != 2 or len(branches) + len(named) != 2:
        raise ValueError("where takes both x and y, or neither")
    x, y = given
    chosen = np.where(condition, x, y)
    return (
        chosen
        if any(map(_is_array, (condition, x, y))) or not issubclass(type(chosen), np.ndarray)
        else chosen.tolist()
    )


def make_diagonal(D: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """Matrices with the last axis of D on the diagonal of their two last axes, zero elsewhere."""
    if (offset, axis1, axis2) != (0, -1, -2):
        raise NotImplementedError("make_diagonal supports offset=0, axis1=-1, axis2=-2 only")
    return np.expand_dims(D, -1) * np.eye(np.shape(D)[-1])


def _is_array(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_is_array, value))
    return isinstance(value, TracedValue | np.ndarray | np.generic)

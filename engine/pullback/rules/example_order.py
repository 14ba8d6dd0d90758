"""Arrays (examples, channels, …) whose examples lie side by side in memory, as the last axis does elsewhere.

To NumPy that is one order of strides among others: what such an array means, and what may be done with it, is the same.
Rules that slide windows over small images gain by it, since they work in runs of a row of all examples and not of one
image, and transpose nothing in between. The layer rules make their results so; what comes after them follows.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.core.types import ArrayType, type_of


def examples_last(a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The first axis as the last, as a view."""
    return a.transpose(*range(1, a.ndim), 0)  # np.moveaxis takes ten times as long


def examples_first(a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The last axis as the first, as a view."""
    return a.transpose(-1, *range(a.ndim - 1))


def is_lined(a: Any) -> bool:
    """True if an array lies so, without gaps."""
    return a.ndim > 2 and not a.flags.c_contiguous and bool(examples_last(a).flags.c_contiguous)


def make(type_: ArrayType, *, lined: bool) -> np.ndarray[Any, Any]:
    """An array of a type, in this order or in NumPy's own."""
    if not lined:
        return np.empty(type_.shape, type_.dtype)
    first, *rest = type_.shape
    return examples_first(np.empty((*rest, first), type_.dtype))


def laid(a: np.ndarray[Any, Any], *, lined: bool) -> np.ndarray[Any, Any]:
    """The memory of an array without gaps, as an array of the same shape in this order: what is in it moves."""
    if not lined or not a.flags.c_contiguous:
        return a
    first, *rest = a.shape
    return examples_first(a.reshape(*rest, first))


def following(
    into: Callable[..., Any],
    infer: Callable[..., ArrayType],
    scratch: Callable[..., Sequence[ArrayType]],
    operand: int = 0,
) -> Callable[..., Any]:
    """Compute into an array as `core.into_arrays.by_writing` does, with the result in the memory order of an operand."""

    def evaluate(*operands: Any, **params: Any) -> Any:
        types = [type_of(value) for value in operands]
        out = make(infer(*types, **params), lined=is_lined(operands[operand]))
        into(out, *operands, **params, scratch=[make(type_, lined=False) for type_ in scratch(*types, **params)])
        return out

    return evaluate

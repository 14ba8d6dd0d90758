"""`pb.cond` and `pb.switch`: one of several functions, chosen by a value."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.control.looping import integer, truth
from pullback.errors import ControlFlowError

Branch = Callable[..., Any]


def cond(pred: Any, true_fun: Branch, false_fun: Branch, *operands: Any) -> Any:
    """`true_fun(*operands)` if pred is true, else `false_fun(*operands)`; the other is not run.

    `pb.cond(x > 0, np.sqrt, lambda x: 0.0 * x, x)`
    """
    return (true_fun if truth(pred, "cond: pred") else false_fun)(*operands)


def switch(index: Any, branches: Sequence[Branch], *operands: Any) -> Any:
    """`branches[index](*operands)`; the others are not run. An index out of range is an error, negative ones too.

    `pb.switch(kind, [np.sin, np.cos], x)`
    """
    return branches[checked_index(index, len(branches))](*operands)


def checked_index(index: Any, count: int) -> int:
    """The index as an integer, if there is such a branch."""
    if np.shape(index) != ():
        raise ControlFlowError(f"switch: index is an array of shape {np.shape(index)}, not one integer")
    try:
        position = integer(index)
    except TypeError:
        raise ControlFlowError(f"switch: index is a {type(index).__name__}; it is the number of a branch") from None
    if not 0 <= position < count:
        raise ControlFlowError(f"switch: index is {position}, there are {count} branches, numbered from 0")
    return position

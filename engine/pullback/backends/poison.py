"""Poisoning: a mode of running plans that reveals the use of dead memory.

Inside `with pb.debug.poisoning():` plans are compiled so that every buffer is filled with NaN (the largest number, True)
as soon as the last value in it is dead, and before the first is written; arguments come in as views that cannot be written
to; and a rule that says it makes an array of its own is checked to have done so. A plan whose liveness is wrong then gives
NaN or raises, where it might have given yesterday's numbers.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from pullback.backends.suspension import suspended
from pullback.errors import GraphError

_poisoning: ContextVar[bool] = ContextVar("pullback_poisoning", default=False)


@contextmanager
def poisoning() -> Iterator[None]:
    """Compile and run plans so that reading dead memory shows.

    with pb.debug.poisoning():
        pb.compile(pb.grad(loss))(w, x)
    """
    token = _poisoning.set(True)
    try:
        with suspended():  # the native entry does not look at contexts
            yield
    finally:
        _poisoning.reset(token)


def is_poisoning() -> bool:
    """True if plans are to be compiled so."""
    return _poisoning.get()


def poison(array: Any) -> None:
    """Make the contents useless."""
    if isinstance(array, np.ndarray) and array.flags.writeable:
        kind = array.dtype.kind
        array.fill(np.nan if kind in "fc" else np.iinfo(array.dtype).max if kind in "iu" else 1)


def check_own(rule: str, made: Any, operands: Sequence[Any]) -> None:
    """Raise if what a rule made is memory of an operand although the rule does not say so."""
    if isinstance(made, np.ndarray) and any(
        np.may_share_memory(made, operand) for operand in operands if isinstance(operand, np.ndarray)
    ):
        raise GraphError(f"{rule} gave memory of an operand; declare that it aliases it, or copy")


def guarded(values: Sequence[Any], written: Sequence[int]) -> list[Any]:
    """The values of a call as views that cannot be written to, but for those that the plan overwrites and restores."""
    return [
        value if position in written or not isinstance(value, np.ndarray) else _read_only(value)
        for position, value in enumerate(values)
    ]


def _read_only(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    view = array.view()
    view.flags.writeable = False
    return view

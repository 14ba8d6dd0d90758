"""True if the result of an application is the tape's alone: then, and only then, a pullback may write over it.

The proof is CPython's reference count. Everything through which the array could be read keeps a reference to it: a
name, a tracer that was not dropped, another record, a view (through its `base`), a buffer, a cotangent that is the same
array. One reference, the record's, means that nothing else can read it. An interpreter without such counts, or with
counts that other threads may change (free threading), proves nothing, and nothing is overwritten there.
"""

import sys
from typing import Any

import numpy as np


class _Probe:
    __slots__ = ("y",)

    def __init__(self, y: Any) -> None:
        self.y = y


def is_sole_owner(record: Any, y_bar: Any) -> bool:
    """True if `record.y` is a plain array with memory of its own that only this record holds, and fits the cotangent."""
    return (
        type(record.y) is np.ndarray
        and record.y.flags.owndata
        and record.y.flags.writeable
        and _fits(y_bar, record.y)
        and is_held_once(record, "y")
    )


def _fits(y_bar: Any, y: Any) -> bool:
    return type(y_bar) is np.ndarray and y_bar.dtype == y.dtype and y_bar.shape == y.shape


def is_held_once(holder: Any, name: str) -> bool:
    """True if nothing but this attribute leads to what it is."""
    return _references(holder, name) == _ONE_REFERENCE


def _references(holder: Any, name: str) -> int:
    """References to an attribute, with those that counting itself makes."""
    return sys.getrefcount(getattr(holder, name))


def _counts_prove_ownership() -> bool:
    return hasattr(sys, "getrefcount") and getattr(sys, "_is_gil_enabled", lambda: True)()


# Measured, not written down: how many references counting makes differs between versions of Python.
_ONE_REFERENCE = _references(_Probe(np.empty(1)), "y") if _counts_prove_ownership() else -1

"""Cotangents: a small algebra.

    none      no cotangent: no requested output depends on the value        (Python's None)
    lazy      what a rule can still compute, if it is needed                (LazyCotangent)
    scattered a value at a key of an otherwise zero array                   (ScatteredCotangent)
    dense     an array

Reading one element of a large array makes a scattered cotangent in constant time; it becomes dense when all of it is
read, and further ones are added into that one buffer, so n reads cost O(n) together. A dense sum made here is *owned*
by the one accumulator that holds it, so adding into it in place is legal; a cotangent handed in by a rule is not (`add`
gives the same array to both operands) and is never written to. Under an outer trace nothing is done in place.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.core.primitive import TracedValue
from pullback.core.scattered_cotangent import ScatteredCotangent
from pullback.rules.gathering import filled, scatter_add
from pullback.rules.indexing import scatter
from pullback.rules.storing import add_at


class LazyCotangent:
    """A cotangent that is computed once, when it is first needed, or never.

    Rules whose cotangents share work give several lazy ones that share a memo. Sums of lazy cotangents are not lazy:
    they would nest as deep as the sum is long.
    """

    __slots__ = ("_compute", "_value")

    def __init__(self, compute: Callable[[], Any]) -> None:
        self._compute: Callable[[], Any] | None = compute
        self._value: Any = None

    def value(self) -> Any:
        """The cotangent."""
        if self._compute is not None:
            compute, self._compute = self._compute, None
            self._value = compute()
        return self._value


def dense(cotangent: Any) -> Any:
    """The cotangent as an array; None stays None."""
    if isinstance(cotangent, LazyCotangent):
        cotangent = cotangent.value()
    if isinstance(cotangent, ScatteredCotangent):
        if cotangent.positions:
            key, shape, dtype = cotangent.key, cotangent.shape, cotangent.dtype
            return scatter_add(cotangent.value, *cotangent.positions, key=key, shape=shape, dtype=dtype)
        return scatter(cotangent.value, key=cotangent.key, shape=cotangent.shape, dtype=cotangent.dtype)
    return cotangent


class Accumulator:
    """The cotangent of one value while it is being summed."""

    __slots__ = ("_owned", "_sum")

    def __init__(self) -> None:
        self._sum: Any = None
        self._owned = False

    @property
    def is_owned(self) -> bool:
        """True if there is no other reference to the sum."""
        return self._owned

    def add(self, cotangent: Any, *, owned: bool = False) -> None:
        """Add a contribution, which may be the accumulator's from here on; None adds nothing."""
        if cotangent is None:
            return
        if self._sum is None:
            self._sum, self._owned = cotangent, owned
            return
        if isinstance(cotangent, LazyCotangent):
            cotangent = cotangent.value()
            if cotangent is None:
                return
        self._settle()
        if self._sum is None:
            self._sum = cotangent
            return
        if isinstance(cotangent, ScatteredCotangent):
            self._sum = _with_scattered(self._sum, cotangent, owned=self._owned)
        elif self._owned and issubclass(type(self._sum), np.ndarray) and not isinstance(cotangent, TracedValue):
            self._sum += cotangent
        else:
            self._sum = self._sum + cotangent
        self._owned = True

    def dense(self) -> Any:
        """The sum as an array, None if nothing was added."""
        self._settle()
        return self._sum

    def _settle(self) -> None:
        """Make the sum an array; one that is made here from a scattered cotangent is ours to add to."""
        if isinstance(self._sum, LazyCotangent):
            self._sum = self._sum.value()
        if isinstance(self._sum, ScatteredCotangent):
            self._sum, self._owned = dense(self._sum), True


def _with_scattered(total: Any, part: ScatteredCotangent, *, owned: bool) -> Any:
    """A dense sum with a scattered part; in its own memory where it is owned and not traced."""
    traced = any(isinstance(value, TracedValue) for value in (part.value, *part.positions))
    if not owned or not issubclass(type(total), np.ndarray) or traced:
        return total + dense(part) if part.positions else add_at(total, part.value, key=part.key)
    if part.positions:
        np.add.at(total, filled(part.key, part.positions), part.value)
    else:
        total[part.key] += part.value
    return total

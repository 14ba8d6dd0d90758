"""What flows backward: a small algebra.

    none      no cotangent: the value leads nowhere that was asked for      (Python's None)
    scattered a value at a key of an otherwise zero array                   (Scattered)
    dense     an array

Reading one element of a large array makes a scattered cotangent in constant time; it becomes dense when somebody has to
see it, and further ones are added into that one buffer, so n reads cost O(n) together. A dense sum made here is *owned*
by the one accumulator that holds it, so adding into it in place is legal; a cotangent handed in by a rule is not (`add`
gives the same array to both operands) and is never written to. Under an outer trace nothing is done in place.
"""

from typing import Any

import numpy as np

from pullback.primitive import Traced
from pullback.rules.indexing import add_at, scatter
from pullback.scattered import Scattered


def dense(cotangent: Any) -> Any:
    """The cotangent as an array; None stays None."""
    if isinstance(cotangent, Scattered):
        return scatter(cotangent.value, key=cotangent.key, shape=cotangent.shape, dtype=cotangent.dtype)
    return cotangent


class Accumulator:
    """The cotangent of one value while it is being summed."""

    __slots__ = ("_owned", "_sum")

    def __init__(self) -> None:
        self._sum: Any = None
        self._owned = False

    def add(self, cotangent: Any) -> None:
        """Add a contribution; None adds nothing."""
        if cotangent is None:
            return
        if self._sum is None:
            self._sum = cotangent
            return
        if isinstance(self._sum, Scattered):
            self._sum, self._owned = dense(self._sum), True
        in_place = self._owned and isinstance(self._sum, np.ndarray)
        if isinstance(cotangent, Scattered):
            if in_place and not isinstance(cotangent.value, Traced):
                self._sum[cotangent.key] += cotangent.value
            else:
                self._sum, self._owned = add_at(self._sum, cotangent.value, key=cotangent.key), True
        elif in_place and not isinstance(cotangent, Traced):
            self._sum += cotangent
        else:
            self._sum, self._owned = self._sum + cotangent, True

    def dense(self) -> Any:
        """The sum as an array, None if nothing was added."""
        if isinstance(self._sum, Scattered):
            self._sum, self._owned = dense(self._sum), True
        return self._sum

"""What is done to the values of a product before they are stored, while they are still in registers."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from pullback.backends.native.writing.function import Index
from pullback.backends.native.writing.lanes import Lanes


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a result the lanes of a value belong: the indices of the first, and the axis along which the others follow."""

    indices: tuple[Index, ...]
    """Of the batch, the row and the column."""
    axis: int
    active: int | None
    """How many lanes count; None for all."""


@dataclass(frozen=True, slots=True)
class Epilogue:
    """What is done to each value of a product before it is stored, or instead of that.

    `write(pointers, lanes, value, place)` gives the value to store, or None where it has stored what is wanted; C is scribbled
    in nevertheless. The pointers are those given to `emit_product` behind A, B and C. The key says all that the text depends
    on.
    """

    key: Hashable
    write: Callable[[Sequence[str], Lanes, str, Place], str | None]

"""Loops over the places of arrays that run side by side."""

from collections.abc import Callable, Sequence

from pullback.backends.llvm.builder.function import Function, Index
from pullback.backends.native.emission import StoredArray


def each(
    function: Function,
    axes: Sequence[int],
    arrays: Sequence[StoredArray],
    write: Callable[..., None],
    places: tuple[Index, ...] = (),
    *offsets: Index,
) -> None:
    """Call `write(places, *offsets)` for every place along these axes, with its offset in each array."""
    begins = offsets or (0,) * len(arrays)
    if not axes:
        write(places, *begins)
        return
    with function.loop(0, arrays[0].shape[axes[0]]) as place:
        further = [
            function.offset((begin, 1), (place, array.strides[axes[0]]))
            for begin, array in zip(begins, arrays, strict=True)
        ]
        each(function, axes[1:], arrays, write, (*places, place), *further)

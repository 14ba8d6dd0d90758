"""Rows of numbers: loops over them in vectors and pieces, copies, zeros, transposition."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from pullback.backends.native.emission import Stored
from pullback.backends.native.writing.function import Function, Index
from pullback.backends.native.writing.lanes import Lanes

#: Squares of numbers are transposed in registers: 4 x 4, whatever the width of a register.
_SQUARE = 4
_PAIRED = ((0, 4, 1, 5), (2, 6, 3, 7))
_JOINED = ((0, 1, 4, 5), (2, 3, 6, 7))

#: Up to so many vectors are written one after the other.
_UNROLLED = 4


@contextmanager
def overlapping(function: Function, count: int, step: int) -> Iterator[Index]:
    """Starts of pieces of a length; the last one ends at the end, and begins earlier where it must."""
    smaller = function.module.declare("llvm.smin.i64", "i64", "i64", "i64")
    with function.loop(0, count, step) as start:
        if count % step == 0 or isinstance(start, int):
            yield start
        else:
            yield function.call("i64", smaller, ("i64", start), ("i64", count - step))


def along(function: Function, lanes: Lanes, count: int, body: Callable[[Index, int | None], None]) -> None:
    """`body(index, active)` for each vector of a row; of the last one only the first `active` lanes may be in it."""
    whole = count // lanes.width
    if whole > _UNROLLED:
        with function.loop(0, whole * lanes.width, lanes.width) as index:
            body(index, None)
    else:
        for number in range(whole):
            body(number * lanes.width, None)
    if count % lanes.width:
        body(whole * lanes.width, count % lanes.width)


def copy_row(
    function: Function, lanes: Lanes, source: str, stride: int, target: str, spread: int, count: Index
) -> None:
    """Copy numbers `stride` apart to where they are `spread` apart."""
    if stride != 1 or spread != 1 or not isinstance(count, int):
        one = lanes.narrowed()
        with function.loop(0, count) as index:
            one.store(one.load(source, function.mul(index, stride)), target, function.mul(index, spread))
        return

    def copy(index: Index, active: int | None) -> None:
        lanes.store(lanes.load(source, index, active=active), target, index, active=active)

    along(function, lanes, count, copy)


def clear_row(function: Function, lanes: Lanes, target: str, count: int) -> None:
    """Write zeros."""
    along(function, lanes, count, lambda index, active: lanes.store(lanes.constant(0), target, index, active=active))


def clear_all(function: Function, target: Stored) -> None:
    """Write zeros to a whole array."""
    one = Lanes(function, target.dtype, 1)
    with ExitStack() as stack:
        indices = [stack.enter_context(function.loop(0, count)) for count in target.shape]
        one.store(one.constant(0), target.pointer, function.offset(*zip(indices, target.strides, strict=True)))


def transpose_rows(
    function: Function,
    lanes: Lanes,
    source: str,
    strides: tuple[int, int],
    target: str,
    pitch: int,
    rows: int,
    count: int,
) -> None:
    """`target[k * pitch + r] = source[r * strides[0] + k * strides[1]]` for so many rows and so many numbers in each."""
    one = lanes.narrowed()
    if strides[1] != 1 or min(rows, count) < _SQUARE:
        with function.loop(0, count) as k, function.loop(0, rows) as row:
            value = one.load(source, function.offset((row, strides[0]), (k, strides[1])))
            one.store(value, target, function.add(function.mul(k, pitch), row))
        return
    short = Lanes(function, lanes.dtype, _SQUARE)
    with overlapping(function, rows, _SQUARE) as row, overlapping(function, count, _SQUARE) as k:
        start = function.offset((row, strides[0]), (k, 1))
        read = [short.load(source, function.add(start, number * strides[0])) for number in range(_SQUARE)]
        pairs = [_shuffled(short, read[a], read[b], order) for a, b in ((0, 1), (2, 3)) for order in _PAIRED]
        columns = [_shuffled(short, pairs[half], pairs[half + 2], order) for half in (0, 1) for order in _JOINED]
        for number, column in enumerate(columns):
            short.store(column, target, function.offset((function.add(k, number), pitch), (row, 1)))


def _shuffled(lanes: Lanes, a: str, b: str, order: tuple[int, ...]) -> str:
    places = ", ".join(f"i32 {place}" for place in order)
    return lanes.function.value(f"shufflevector {lanes.type} {a}, {lanes.type} {b}, <{len(order)} x i32> <{places}>")

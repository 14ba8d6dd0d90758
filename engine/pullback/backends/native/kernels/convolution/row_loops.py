"""Rows of numbers: loops over them in vectors and pieces, copies, zeros, transposition."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from pullback.backends.llvm.builder.function import Function, Index
from pullback.backends.llvm.builder.lanes import Lanes, memory_type
from pullback.backends.native.emission import StoredArray

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


def copy_row(function: Function, lanes: Lanes, source: str, stride: int, target: str, spread: int, count: int) -> None:
    """Copy numbers `stride` apart to where they are `spread` apart."""
    if lanes.width > 1 and ((stride, spread) == (2, 1) or ((stride, spread) == (1, 2) and _masks_stores(function))):
        _copy_shuffled(function, lanes, source, stride, target, count)
    elif stride != 1 or spread != 1:
        _copy_singly(function, lanes, (source, stride), (target, spread), 0, count)
    else:

        def copy(index: Index, active: int | None) -> None:
            lanes.store(lanes.load(source, index, active=active), target, index, active=active)

        along(function, lanes, count, copy)


def _copy_singly(
    function: Function, lanes: Lanes, source: tuple[str, int], target: tuple[str, int], start: int, count: int
) -> None:
    one = lanes.narrowed()
    if start == count:
        return
    with function.loop(start, count) as index:
        value = one.load(source[0], function.mul(index, source[1]))
        one.store(value, target[0], function.mul(index, target[1]))


def _masks_stores(function: Function) -> bool:
    """True if masked stores are worth it: before AVX-512 one takes as long as storing number by number."""
    return function.module.vector_bits >= 512


def _copy_shuffled(function: Function, lanes: Lanes, source: str, stride: int, target: str, count: int) -> None:
    """Steps of two: from two vectors every other number, or into every other place of two vectors."""
    if stride == 2:
        along(function, lanes, count, lambda index, active: _copy_evens(lanes, source, target, index, active))
        return
    width, whole = lanes.width, count // lanes.width * lanes.width
    if whole:
        with function.loop(0, whole, width) as index:
            value = lanes.load(source, index)
            place = function.mul(index, 2)
            for half in range(2):
                wide = shuffled(lanes, value, value, [(lane + half * width) // 2 for lane in range(width)])
                _store_every_other(lanes, wide, target, function.add(place, half * width))
    _copy_singly(function, lanes, (source, 1), (target, 2), whole, count)


def _copy_evens(lanes: Lanes, source: str, target: str, index: Index, active: int | None) -> None:
    """Every other number of a pair of vectors; what follows the last of them may be outside of the array."""
    function = lanes.function
    pair = function.element(source, function.mul(index, 2), memory_type(lanes.dtype))
    even, _ = evens_and_odds(lanes, pair, 1, 2 * (active or lanes.width) - 1)
    lanes.store(even, target, index, active=active)


def evens_and_odds(lanes: Lanes, source: str, stride: int, count: int) -> list[str]:
    """The first `count` numbers of a row, deinterleaved into two vectors and filled up with zeros."""
    width = lanes.width
    if stride != 1:
        return [
            lanes.load(source, part * stride, stride=2 * stride, active=min(width, (count + 1 - part) // 2))
            for part in range(2)
        ]
    first = lanes.load(source, active=min(width, count))
    second = lanes.load(source, width, active=min(width, count - width)) if count > width else lanes.constant(0)
    return [shuffled(lanes, first, second, [2 * lane + part for lane in range(width)]) for part in range(2)]


def interleaved(lanes: Lanes, evens: str, odds: str) -> list[str]:
    """Two vectors interleaved, as two vectors."""
    width = lanes.width
    starts = (0, width // 2)
    orders = [[start + lane // 2 + lane % 2 * width for lane in range(width)] for start in starts]
    return [shuffled(lanes, evens, odds, order) for order in orders]


def _store_every_other(lanes: Lanes, value: str, target: str, index: Index) -> None:
    function = lanes.function
    name = f"llvm.masked.store.{lanes.suffix}.p0"
    function.module.declare(name, "void", lanes.type, "ptr", "i32", lanes.mask_type)
    place = function.element(target, index, lanes.element)
    mask = ", ".join(f"i1 {'false' if lane % 2 else 'true'}" for lane in range(lanes.width))
    align = ("i32", lanes.dtype.itemsize)
    function.call("void", f"@{name}", (lanes.type, value), ("ptr", place), align, (lanes.mask_type, f"<{mask}>"))


def clear_row(function: Function, lanes: Lanes, target: str, count: int) -> None:
    """Write zeros."""
    along(function, lanes, count, lambda index, active: lanes.store(lanes.constant(0), target, index, active=active))


def clear_all(function: Function, target: StoredArray) -> None:
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
    """`target[k * pitch + r] = source[r * strides[0] + k * strides[1]]` for a number of rows and of numbers in each."""
    if rows == 1:
        copy_row(function, lanes, source, strides[1], target, pitch, count)
        return
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
        pairs = [shuffled(short, read[a], read[b], order) for a, b in ((0, 1), (2, 3)) for order in _PAIRED]
        columns = [shuffled(short, pairs[half], pairs[half + 2], order) for half in (0, 1) for order in _JOINED]
        for number, column in enumerate(columns):
            short.store(column, target, function.offset((function.add(k, number), pitch), (row, 1)))


def shuffled(lanes: Lanes, a: str, b: str, order: Sequence[int]) -> str:
    """Lanes of two values, those of the second numbered after those of the first."""
    places = ", ".join(f"i32 {place}" for place in order)
    return lanes.function.value(f"shufflevector {lanes.type} {a}, {lanes.type} {b}, <{len(order)} x i32> <{places}>")

"""Tiles in doubt: those of a block with a window whose numbers are not spread enough (packed_weights.py).

    sums of magnitudes and of squares over channels, for every place of the copy
    of these the sums over the four windows of a tile, lanes are tiles

Places between rows are computed as well, and mean nothing.
"""

from collections.abc import Sequence
from functools import reduce

from pullback.backends.llvm.builder.function import Function, Index
from pullback.backends.llvm.builder.lanes import Lanes, memory_type
from pullback.backends.native.kernels.convolution.winograd.packed_weights import EDGES, least_square
from pullback.backends.native.kernels.convolution.winograd.plans import WinogradPlan


def write_doubts(
    function: Function, plan: WinogradPlan, copy: str, measures: str, least_spreads: str, doubts: str
) -> None:
    """A number for each tile of the block: 0, or 1 where it is in doubt."""
    lanes = Lanes(function, plan.correlation.dtype, plan.lanes)
    _measure(lanes, plan, copy, measures)
    least = [lanes.load(least_spreads, edge, stride=0) for edge in range(len(EDGES))]
    rows, columns = plan.offsets
    with function.loop(0, plan.places, lanes.width) as place:
        here = function.element(measures, place, memory_type(lanes.dtype))
        sums, squares = (
            [[lanes.load(here, part * plan.measured + row + column) for column in columns] for row in rows]
            for part in range(2)
        )
        known = [
            _is_spread(lanes, sum_, square, _least(lanes, least, edges))
            for sum_, square, edges in zip(
                _windows(lanes, sums), _windows(lanes, squares), _edges(lanes, sums), strict=True
            )
        ]
        together = reduce(lambda a, b: _both(lanes, "and", a, b), known)
        lanes.store(lanes.select(together, lanes.constant(0), lanes.constant(1)), doubts, place)


def _measure(lanes: Lanes, plan: WinogradPlan, copy: str, measures: str) -> None:
    """A line of the cache at a time, through all channels."""
    function, element, planes = lanes.function, memory_type(lanes.dtype), plan.planes
    with function.loop(0, planes.channel_pitch, planes.line) as place:
        totals = [
            [function.slot(lanes.type, lanes.constant(0)) for _ in range(0, planes.line, lanes.width)] for _ in range(2)
        ]
        with function.loop(0, planes.channels) as channel:
            source = function.element(copy, function.offset((channel, planes.channel_pitch), (place, 1)), element)
            for vector, (sum_, square) in enumerate(zip(*totals, strict=True)):
                value = lanes.load(source, vector * lanes.width)
                total = lanes.add(function.load(lanes.type, sum_), lanes.absolute(value))
                function.store(lanes.type, total, sum_)
                total = lanes.mul_add(value, value, function.load(lanes.type, square))
                function.store(lanes.type, total, square)
        here = function.element(measures, place, element)
        for part, slots in enumerate(totals):
            for vector, slot in enumerate(slots):
                lanes.store(function.load(lanes.type, slot), here, part * plan.measured + vector * lanes.width)


def _along(lanes: Lanes, values: Sequence[str]) -> list[str]:
    """Sums of the first and of the last three of four."""
    inner = lanes.add(values[1], values[2])
    return [lanes.add(values[0], inner), lanes.add(inner, values[3])]


def _windows(lanes: Lanes, input_tile: Sequence[Sequence[str]]) -> list[str]:
    """Sums over the four windows of 3 x 3 of an input tile."""
    columns = [_along(lanes, column) for column in zip(*input_tile, strict=True)]
    return [window for row in zip(*columns, strict=True) for window in _along(lanes, row)]


def _edges(lanes: Lanes, sums: Sequence[Sequence[str]]) -> list[tuple[str, str]]:
    """Masks for each window: where an outer row is all zeros, and where an outer column is."""
    rows = [_along(lanes, row) for row in sums]
    columns = [_along(lanes, column) for column in zip(*sums, strict=True)]

    def without(lines: Sequence[Sequence[str]], first: int, window: int) -> str:
        masks = [lanes.compare("==", lines[outer][window], lanes.constant(0)) for outer in (first, first + 2)]
        return _both(lanes, "or", *masks)

    return [(without(rows, i, j), without(columns, j, i)) for i in range(2) for j in range(2)]


def _least(lanes: Lanes, spreads: Sequence[str], edges: tuple[str, str]) -> str:
    """The least spread of a window, by what it is without."""
    whole, column, row, both = spreads
    return lanes.select(edges[0], lanes.select(edges[1], both, row), lanes.select(edges[1], column, whole))


def _both(lanes: Lanes, operation: str, a: str, b: str) -> str:
    return lanes.function.value(f"{operation} {lanes.mask_type} {a}, {b}")


def _is_spread(lanes: Lanes, sum_: str, square: str, least: str) -> str:
    """True if the numbers of a window are spread, or all zero; false of what is not finite."""
    floor = lanes.constant(least_square(lanes.dtype))
    square = lanes.select(lanes.compare(">", square, floor), square, floor)
    enough = lanes.compare(">", lanes.mul(sum_, sum_), lanes.mul(least, square))
    none = lanes.compare("==", sum_, lanes.constant(0))
    return _both(lanes, "or", enough, none)


def count_doubts(lanes: Lanes, doubts: str, vectors: int) -> str:
    """The number of tiles in doubt, of this many vectors of tiles."""
    total = lanes.load(doubts)
    for vector in range(1, vectors):
        total = lanes.add(total, lanes.load(doubts, vector * lanes.width))
    return lanes.sum_lanes(total)


def set_doubts(lanes: Lanes, doubts: str, vectors: int) -> None:
    """Mark all tiles of a number of vectors as in doubt."""
    index: Index
    for index in range(0, vectors * lanes.width, lanes.width):
        lanes.store(lanes.constant(1), doubts, index)

"""Tiles in doubt, computed directly, one by one: the products of all channels and taps, lanes are results."""

from collections.abc import Sequence

from pullback.backends.llvm.builder.function import Function, Index
from pullback.backends.llvm.builder.lanes import Lanes, memory_type
from pullback.backends.native.kernels.convolution.row_loops import interleaved, overlapping
from pullback.backends.native.kernels.convolution.winograd.plans import TAPS, TILE, WinogradPlan

#: Most vectors of results that are summed together for the four results of a tile: one alone would wait for itself.
_TOGETHER = (3, 2)


def write_tiles_in_doubt(
    function: Function, plan: WinogradPlan, copy: str, packed: str, doubts: str, lines: str
) -> None:
    """Compute the tiles in doubt of a block again, directly, into the lines of results."""
    one = Lanes(function, plan.correlation.dtype, 1)
    element, pitches = memory_type(one.dtype), plan.planes.pitches
    with (
        function.loop(0, plan.block[0]) as example,
        function.loop(0, plan.block[1]) as row,
        function.loop(0, plan.block[2]) as column,
    ):
        place = function.offset((example, pitches[0]), (row, pitches[1]), (column, pitches[2]))
        doubt = one.load(doubts, place)
        with function.when(one.compare("!=", doubt, one.constant(0))):
            here = function.element(copy, place, element)
            line = function.element(lines, function.mul(place, TILE), element)
            _write_tile(function, plan, here, packed, line)


def _write_tile(function: Function, plan: WinogradPlan, input_tile: str, packed: str, line: str) -> None:
    lanes, element = Lanes(function, plan.correlation.dtype, plan.lanes), memory_type(plan.correlation.dtype)
    whole = plan.padded_outs // lanes.width
    vectors = min((count for count in _TOGETHER if count <= whole), key=lambda count: -whole % count, default=1)
    with overlapping(function, plan.padded_outs, vectors * lanes.width) as out:
        weights = function.element(packed, out, element)
        results = _sum(lanes, plan, input_tile, weights, vectors)
        target = function.element(line, function.mul(out, TILE * plan.row_pitch), element)
        for row in range(TILE):
            for vector, pair in enumerate(zip(*results[row * TILE : (row + 1) * TILE], strict=True)):
                first = vector * lanes.width * TILE * plan.row_pitch + row * plan.row_pitch
                even, odd = (function.load(lanes.type, slot) for slot in pair)
                _store_pairs(lanes, even, odd, function.element(target, first, element), TILE * plan.row_pitch)


def _store_pairs(lanes: Lanes, even: str, odd: str, target: str, pitch: int) -> None:
    """Two numbers beside each other for each lane: half as many stores."""
    function, element, half = lanes.function, memory_type(lanes.dtype), lanes.width // 2
    two = Lanes(function, lanes.dtype, 2)
    for part, both in enumerate(interleaved(lanes, even, odd)):
        for number in range(half):
            order = f"<2 x i32> <i32 {2 * number}, i32 {2 * number + 1}>"
            piece = function.value(f"shufflevector {lanes.type} {both}, {lanes.type} poison, {order}")
            two.store(piece, function.element(target, (part * half + number) * pitch, element))


def _sum(lanes: Lanes, plan: WinogradPlan, input_tile: str, weights: str, vectors: int) -> Sequence[Sequence[str]]:
    """Slots of sums, by results of the tile and by vectors."""
    function, one, element = lanes.function, lanes.narrowed(), memory_type(lanes.dtype)
    rows, columns = plan.offsets
    slots = [[function.slot(lanes.type, lanes.constant(0)) for _ in range(vectors)] for _ in range(TILE * TILE)]
    with function.loop(0, plan.correlation.ins) as channel:
        source = function.element(input_tile, function.mul(channel, plan.planes.channel_pitch), element)
        own = function.element(weights, function.mul(channel, TAPS * plan.out_pitch), element)
        for tap in range(TAPS):
            i, j = divmod(tap, 3)
            window: list[Index] = [plan.window[i][j] * plan.out_pitch + k * lanes.width for k in range(vectors)]
            factors = [lanes.load(own, offset) for offset in window]
            for number, result in enumerate(slots):
                row, column = divmod(number, TILE)
                met = lanes.splat(one.load(source, rows[row + i] + columns[column + j]))
                for factor, slot in zip(factors, result, strict=True):
                    value = lanes.mul_add(factor, met, function.load(lanes.type, slot))
                    function.store(lanes.type, value, slot)
    return slots

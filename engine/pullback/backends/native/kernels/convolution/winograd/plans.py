"""Plans of correlations by Winograd tiles: which blocks, how many tiles at a time, and whether that pays."""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from math import prod

from pullback.backends.native.kernels.convolution.correlation import Correlation
from pullback.backends.native.kernels.convolution.planes import Planes
from pullback.backends.native.kernels.convolution.sliding_window import Axis, Course, Tap
from pullback.backends.native.kernels.convolution.tiles import Tile, choose_tile, tile_cycles
from pullback.dataclass import dataclass

#: Terms of an input tile, numbers of a window, and results of a tile along an axis.
TERMS, TAPS, TILE = 16, 9, 2

#: Cycles, by width of vectors, to compute the terms of a vector of input tiles, and a vector of tiles from their terms.
_TRANSFORMED = {512: (64.0, 48.0), 256: (32.0, 24.0), 128: (32.0, 24.0)}

#: Cycles to copy a number of the source, to copy a result, and to compute the terms of a window.
_COPIED, _WRITTEN, _WEIGHED = 0.5, 0.25, 26.0

#: Data that is read soon after it is written stays in a second-level cache of a megabyte; cycles for any other byte,
#: and for one
#: that is read in order again and again.
_NEAR_BYTES, _FAR, _STREAMED = 768 * 1024, 0.1, 0.045

#: Input tiles of a panel are read again for each tile of results, term by term: beside the weights so many bytes of a term
#: stay in a first-level cache of 32 KB, and each byte more takes so many cycles each time.
_FIRST_BYTES, _REREAD = 8 * 1024, 0.01

#: Terms of weights that take more bytes do not stay in any cache, and each window takes so many cycles more to write.
_MOST_WEIGHT_BYTES, _WEIGHED_AFAR = 8 * 1024 * 1024, 140.0

#: The most bytes of the source that are copied at a time.
_LARGEST_BLOCK = 2 * 1024 * 1024

_LINE_BYTES = 64


@dataclass(frozen=True, slots=True)
class WinogradPlan:
    """Tiles of a block are one line, with what lies between rows of them; `vectors` vectors of them are a panel."""

    correlation: Correlation
    planes: Planes
    """The copy of a block of the source, by even and odd places along both axes; its results are tiles."""
    tile: Tile
    """The tile of the products: results by vectors of a panel."""
    lanes: int
    vectors: int
    """Vectors of tiles in the line of a block."""

    @property
    def vector_bits(self) -> int:
        """Width of vectors."""
        return 8 * self.lanes * self.correlation.dtype.itemsize

    @property
    def block(self) -> tuple[int, ...]:
        """Examples, rows of tiles, and tiles in a row."""
        return self.planes.block

    @property
    def panel(self) -> int:
        """Tiles in a panel."""
        return self.tile.vectors * self.lanes

    @property
    def line(self) -> int:
        """Elements in a line of the cache."""
        return _LINE_BYTES // self.correlation.dtype.itemsize

    def _apart(self, count: int) -> int:
        """A distance for `count` elements: an odd number of cache lines, as even distances would share cache sets."""
        lines = -(-count // self.line)
        return (lines + 1 - lines % 2) * self.line

    @property
    def places(self) -> int:
        """Tiles of a block, with what lies between rows of them and behind the last."""
        return self.vectors * self.lanes

    @property
    def offsets(self) -> tuple[list[int], list[int]]:
        """Offsets of the rows and columns of an input tile from its place in the copy."""
        axes = enumerate(self.planes.axes[1:], 1)
        rows, columns = ([self.planes.place(number, tap) for tap in axis.courses[0].taps] for number, axis in axes)
        return rows, columns

    @property
    def window(self) -> list[list[int]]:
        """The numbers of the weights that belong to the rows and columns of a window."""
        axes = self.correlation.axes[1:]
        rows, columns = (sorted(axis.courses[0].taps, key=lambda tap: tap.offset) for axis in axes)
        return [[3 * row.index + column.index for column in columns] for row in rows]

    @property
    def padded_outs(self) -> int:
        """Results of a place, as whole vectors."""
        return -(-self.correlation.outs // self.lanes) * self.lanes

    @property
    def out_pitch(self) -> int:
        """Distance of packed weights, and of their terms."""
        return self._apart(self.correlation.outs)

    @property
    def packed(self) -> int:
        """Elements of the packed weights."""
        return TAPS * self.correlation.ins * self.out_pitch

    @property
    def weight_terms(self) -> int:
        """Elements for one term of all weights."""
        return self._apart(self.correlation.ins * self.out_pitch)

    @property
    def measured(self) -> int:
        """Elements for the values measured at all places of the copy, and for reads past its end."""
        return self.planes.channel_pitch + (self.tile.vectors + 1) * max(self.lanes, self.line)

    @property
    def input_terms(self) -> int:
        """Elements for one term of all input tiles of a panel."""
        return self._apart(self.correlation.ins * self.panel)

    @property
    def output_terms(self) -> int:
        """Elements for one term of all tiles of a panel."""
        return self._apart(self.correlation.outs * self.panel)

    @property
    def row_pitch(self) -> int:
        """Distance in the lines of results of the upper and lower rows of tiles."""
        return self._apart(TILE * self.places)

    @property
    def copied(self) -> int:
        """Elements of the copy, and of what is read past its end."""
        return self.planes.size + (self.tile.vectors + 1) * max(self.lanes, self.line)

    @property
    def lines(self) -> int:
        """Elements for the results of a block."""
        return self.padded_outs * TILE * self.row_pitch

    @property
    def doubts(self) -> int:
        """Elements for what is known of each tile of a block."""
        return self._apart(self.places)

    @property
    def weight_bytes(self) -> int:
        """Memory for the transformed weights: how spread windows have to be, packed weights, terms."""
        return (self.line + self.packed + TERMS * self.weight_terms) * self.correlation.dtype.itemsize

    @property
    def bytes(self) -> int:
        """Memory that it needs beside that, whatever the layouts."""
        blocks = self.copied + 2 * self.measured + self.doubts + self.lines
        return (blocks + TERMS * (self.input_terms + self.output_terms)) * self.correlation.dtype.itemsize

    @property
    def cycles(self) -> float:
        """The expected cycles for one example, as that of a direct plan."""
        correlation, outs, ins = self.correlation, self.correlation.outs, self.correlation.ins
        of_input_tiles, of_tiles = _TRANSFORMED.get(self.vector_bits, _TRANSFORMED[128])
        products = (
            TERMS
            * ins
            * sum(
                panels * tile_cycles(tile, outs, tile.vectors * self.lanes, self.lanes, self.vector_bits)
                for tile, panels in self.panels
            )
        )
        transforms = self.vectors * (ins * of_input_tiles + outs * of_tiles)
        copied, written, size = self.copied, self.lines, correlation.dtype.itemsize
        copies = _COPIED * copied + _WRITTEN * written
        far = _FAR * (copied + written) * size * (self.bytes + self.weight_bytes > _NEAR_BYTES)
        terms = TERMS * (self.weight_terms + self.input_terms + self.output_terms) * size
        if terms > _NEAR_BYTES:
            far += _STREAMED * terms * sum(panels for _, panels in self.panels)
        for tile, panels in self.panels:
            read = correlation.ins * tile.vectors * self.lanes * size
            if read >= _FIRST_BYTES:
                far += _REREAD * TERMS * read * -(-outs // tile.outs) * panels
        window = _WEIGHED + _WEIGHED_AFAR * (TERMS * self.weight_terms * size > _MOST_WEIGHT_BYTES)
        axes = correlation.axes
        blocks = prod(-(-axis.count // count) for axis, count in zip(self.planes.axes, self.block, strict=True))
        return ((products + transforms + copies + far) * blocks + window * ins * outs) / axes[0].count

    @property
    def panels(self) -> list[tuple[Tile, int]]:
        """Tiles of panels, and how many panels there are of each."""
        whole, rest = divmod(self.vectors, self.tile.vectors)
        panels = [(self.tile, whole), (replace(self.tile, vectors=rest), 1)]
        return [(tile, count) for tile, count in panels if tile.vectors and count]


@lru_cache(maxsize=256)
def make_winograd_plan(correlation: Correlation, vector_bits: int) -> WinogradPlan | None:
    """The plan that is expected to be the fastest; None for what is no sum over windows of 3 x 3 in steps of one."""
    if correlation.groups != 1 or len(correlation.axes) != 1 + TILE:
        return None
    firsts = [_first_offset(axis) for axis in correlation.axes[1:]]
    if None in firsts or 0 in (correlation.ins, correlation.outs):
        return None
    return min(_plans(correlation, vector_bits), key=lambda plan: plan.cycles)


def _first_offset(axis: Axis) -> int | None:
    """Offset of the window of the first result; None if the taps of an axis are no window of three in steps of one."""
    if axis.step != 1 or axis.spread != 1 or len(axis.courses) != 1:
        return None
    (course,) = axis.courses
    offsets = sorted(tap.offset for tap in course.taps)
    low = offsets[0] if offsets else 0
    return low if offsets == [low, low + 1, low + 2] and course.count else None


def tile_axis(axis: Axis) -> Axis:
    """The axis of tiles: their input tiles are windows of four in steps of two."""
    low = min(tap.offset for tap in axis.courses[0].taps)
    taps = tuple(Tap(place, low + place) for place in range(TILE + 2))
    return Axis(axis.size, TILE, (Course(0, -(-axis.count // TILE), taps),))


def _plans(correlation: Correlation, vector_bits: int) -> Iterator[WinogradPlan]:
    lanes = max(1, vector_bits // (8 * correlation.dtype.itemsize))
    axes = (correlation.axes[0], *map(tile_axis, correlation.axes[1:]))
    line = _LINE_BYTES // correlation.dtype.itemsize
    tiles = {choose_tile(correlation.outs, vectors * lanes, lanes, vector_bits) for vectors in range(1, 5)}
    for block in _blocks(axes):
        planes = Planes(axes, block, correlation.ins, tuple(range(len(axes))), line)
        if planes.size * correlation.dtype.itemsize > _LARGEST_BLOCK and block[:2] != (1, 1):
            break
        length = 1 + sum((count - 1) * pitch for count, pitch in zip(block, planes.pitches, strict=True))
        plan = WinogradPlan(correlation, planes, Tile(1, 1), lanes, -(-length // lanes))
        most = min(tile.vectors for tile in tiles)
        yield from (replace(plan, tile=tile) for tile in tiles if tile.vectors <= max(most, plan.vectors))


def _blocks(axes: tuple[Axis, ...]) -> Iterator[tuple[int, ...]]:
    """Some rows of tiles, then whole examples: about half as many turns each time, and as few as need those turns."""
    examples, rows, columns = (axis.count for axis in axes)
    for turns in _turns(rows):
        yield (1, -(-rows // turns), columns)
    for turns in _turns(examples):
        if turns < examples:
            yield (-(-examples // turns), rows, columns)


def _turns(count: int) -> list[int]:
    turns = [count]
    while turns[-1] > 1:
        turns.append(-(-turns[-1] // 2))
    return turns

"""How a gradient with respect to weights is summed over quads: which blocks, and what that takes."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from pullback.backends.native.kernels.convolution.tiles import Tile, tile_cycles, tiles_in_registers
from pullback.backends.native.kernels.convolution.weight_sums import WeightSums
from pullback.backends.native.kernels.convolution.winograd.plans import (
    LINE_BYTES,
    NEAR_BYTES,
    QUAD,
    STREAMED,
    TERMS,
    WEIGHED,
    apart,
)

#: Cycles, by width of vectors, to compute the terms of a vector of patches and of a vector of quads.
_TRANSFORMED = {512: (56.0, 48.0), 256: (28.0, 24.0), 128: (28.0, 24.0)}

#: Cycles to copy a number across rows, and to read and write a sum.
_TURNED, _ADDED = 0.75, 0.25

#: How much a tile that leaves something over must gain, for each other tile that this takes.
_DOUBT = 0.04

#: The most outputs of a tile.
_MOST_OUTS = 16

#: The most quads of a block, and bytes of their terms, beside those of the sums: these are read again for each block.
_MOST_QUADS, _MOST_BYTES = 1024, 1024 * 1024


@dataclass(frozen=True, slots=True)
class QuadSumsPlan:
    """How the sums are taken."""

    sums: WeightSums
    block: tuple[int, int]
    """Examples and rows of quads that are summed at a time."""
    tile: Tile
    """Of the products: outputs by vectors of inputs."""
    lanes: int

    @property
    def vector_bits(self) -> int:
        """Width of vectors."""
        return 8 * self.lanes * self.sums.dtype.itemsize

    @property
    def _line(self) -> int:
        return LINE_BYTES // self.sums.dtype.itemsize

    @property
    def quads(self) -> tuple[int, int]:
        """Rows of quads of an example, and quads in a row."""
        rows, columns = self.sums.sliding.out
        return -(-rows // QUAD), -(-columns // QUAD)

    @property
    def depth(self) -> int:
        """Quads of a block."""
        examples, rows = self.block
        return examples * rows * self.quads[1]

    @property
    def ins(self) -> int:
        """Inputs, as whole vectors."""
        return -(-self.sums.ins // self.lanes) * self.lanes

    @property
    def span(self) -> tuple[int, int]:
        """Rows and columns that quads of an example's part of a block meet."""
        return QUAD * self.block[1] + 2, QUAD * self.quads[1] + 2

    @property
    def copied(self) -> int:
        """Elements of the copy of x, inputs last."""
        rows, columns = self.span
        return self.block[0] * rows * columns * self.ins

    @property
    def quad_pitch(self) -> int:
        """Distance of outputs in the terms of quads, with room for a vector that ends behind a row."""
        return apart(self.depth + self.lanes, self._line)

    @property
    def quad_terms(self) -> int:
        """Elements for one term of all quads of a block."""
        return apart(self.quad_pitch * self.sums.outs, self._line)

    @property
    def patch_terms(self) -> int:
        """Elements for one term of all patches of a block."""
        return apart(self.depth * self.ins, self._line)

    @property
    def summed(self) -> int:
        """Elements for the sums of one term."""
        return apart(self.sums.outs * self.ins, self._line)

    @property
    def strips(self) -> list[tuple[int, int]]:
        """How many tiles there are below each other, and outputs of each."""
        return _pieces(self.sums.outs, self.tile.outs)

    @property
    def panels(self) -> list[tuple[int, int]]:
        """How many there are side by side, and vectors of each."""
        return _pieces(self.ins // self.lanes, self.tile.vectors)

    @property
    def products(self) -> float:
        """Cycles that the products of a block are expected to take."""
        return (
            TERMS
            * self.depth
            * sum(
                tall * wide * tile_cycles(Tile(outs, vectors), outs, vectors * self.lanes, self.lanes, self.vector_bits)
                for tall, outs in self.strips
                for wide, vectors in self.panels
            )
        )

    @property
    def bytes(self) -> int:
        """Memory that it needs."""
        elements = self.copied + TERMS * (self.quad_terms + self.patch_terms + self.summed)
        return elements * self.sums.dtype.itemsize

    @property
    def cycles(self) -> float:
        """What it is expected to take for one example, as that of a direct plan."""
        sums, (examples, rows) = self.sums, self.block
        of_patches, of_quads = _TRANSFORMED.get(self.vector_bits, _TRANSFORMED[128])
        added = TERMS * self.summed * _ADDED
        patches = of_patches * self.depth * self.ins / self.lanes
        quads = of_quads * sums.outs * examples * rows * -(-self.quads[1] // self.lanes)
        streamed = TERMS * (self.quad_terms + self.patch_terms + self.summed) * sums.dtype.itemsize
        far = STREAMED * streamed * (self.bytes > NEAR_BYTES)
        blocks = -(-sums.examples // examples) * -(-self.quads[0] // rows)
        turned = _TURNED * self.copied
        return (
            blocks * (self.products + added + patches + quads + turned + far) + WEIGHED * sums.outs * self.ins
        ) / sums.examples


def _doubtful_cycles(plan: QuadSumsPlan) -> tuple[float, int]:
    """Cycles of products, for choosing a tile: what is left beside whole tiles is text to compile, and more than is counted."""
    return plan.products * (1 + _DOUBT * (len(plan.strips) * len(plan.panels) - 1)), -plan.tile.vectors


def _pieces(size: int, step: int) -> list[tuple[int, int]]:
    whole, rest = divmod(size, step)
    return [(count, length) for count, length in ((whole, step), (1, rest)) if count and length]


@lru_cache(maxsize=256)
def make_quad_sums_plan(sums: WeightSums, vector_bits: int) -> QuadSumsPlan | None:
    """The plan that is expected to be the fastest; None for what is no convolution with windows of 3 x 3 in steps of one."""
    sliding = sums.sliding
    is_plain = sliding.kernel == (3, 3) and sliding.stride == (1, 1) and sliding.dilation == (1, 1)
    if sums.groups != 1 or not is_plain:
        return None
    return min(_plans(sums, vector_bits), key=lambda plan: plan.cycles)


def _plans(sums: WeightSums, vector_bits: int) -> Iterator[QuadSumsPlan]:
    lanes = max(1, vector_bits // (8 * sums.dtype.itemsize))
    plan = QuadSumsPlan(sums, (1, 1), Tile(1, 1), lanes)
    tiles = tiles_in_registers(min(sums.outs, _MOST_OUTS), plan.ins // lanes, vector_bits)
    plan = min((replace(plan, tile=tile) for tile in tiles), key=_doubtful_cycles)
    rows, columns = plan.quads
    blocks = [
        (1, -(-rows // turns)) for turns in sorted({-(-rows // count) for count in range(1, rows + 1)}, reverse=True)
    ]
    most = max(1, _MOST_QUADS // (rows * columns))
    blocks += [(examples, rows) for examples in range(2, min(sums.examples, most) + 1)]
    for block in blocks:
        some = replace(plan, block=block)
        terms = TERMS * (some.quad_terms + some.patch_terms - some.summed) * sums.dtype.itemsize
        if block == blocks[0] or (some.depth <= _MOST_QUADS and terms <= _MOST_BYTES):
            yield some

"""Tiles: the parts of a result that are kept in registers.

A tile is `outs` channels times `vectors` of pixels. For each tap it takes one number of each channel's weights into all
lanes of a register, and multiplies with the vectors of the source at that tap.
"""

from collections.abc import Iterator

from pullback.dataclass import dataclass

#: Cycles from a product and sum to the next that adds to it: a tile with fewer registers waits for itself.
_LATENCY = 4

#: Cycles, by width of vectors, for a product and sum, for a weight in all lanes, and for a vector that may cross two lines of
#: the cache: of Zen 4, where tiles of other shapes were measured to be slower in about these proportions.
_CYCLES = {512: (1.0, 0.5, 2.0), 256: (0.5, 0.5, 0.75), 128: (1.0, 0.5, 0.6)}


@dataclass(frozen=True, slots=True)
class Tile:
    """Channels and vectors of results that are summed together in registers."""

    outs: int
    vectors: int


def choose_tile(outs: int, length: int, lanes: int, vector_bits: int, *, most_outs: int = 16) -> Tile:
    """The tile that is expected to take the fewest cycles for `outs` channels of `length` pixels."""
    return min(
        tiles_in_registers(min(outs, most_outs), -(-length // lanes), vector_bits),
        key=lambda tile: tile_cycles(tile, outs, length, lanes, vector_bits),
    )


def tiles_in_registers(outs: int, vectors: int, vector_bits: int) -> Iterator[Tile]:
    """Tiles with at most these numbers of channels and vectors."""
    # One register holds the weight; narrower machines without fused products need one for the product.
    registers = {512: 31, 256: 15}.get(vector_bits, 14)
    for tall in range(min(outs, registers), 0, -1):
        for wide in range(1, min(vectors, registers) + 1):
            if (tall + 1) * wide <= registers - 1:
                yield Tile(tall, wide)


def tile_cycles(tile: Tile, outs: int, length: int, lanes: int, vector_bits: int) -> float:
    """Cycles that `outs` channels of a line are expected to take for each tap of each channel of the source."""
    product, weight, vector = _CYCLES.get(vector_bits, _CYCLES[128])
    sums, loads = product * tile.outs * tile.vectors, weight * tile.outs + vector * tile.vectors
    tiles = -(-outs // tile.outs) * -(-length // (tile.vectors * lanes))
    return tiles * (max(sums, loads, _LATENCY) + 1)

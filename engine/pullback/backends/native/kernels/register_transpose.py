"""Squares of numbers in registers, transposed over their diagonal.

    rows 0 … n-1 of n lanes  ->  columns: lane k of column j is lane j of row k

Numbers change places within 128 bits first, by instructions that interleave two registers, then pieces of 128 bits do: each
step is one instruction of AVX2 and AVX-512. That is log2(n) instructions a register, where gathering lane by lane takes n.
"""

from collections.abc import Sequence

from pullback.backends.llvm.builder.lanes import Lanes

_PIECE_BYTES = 16


def transposed(lanes: Lanes, rows: Sequence[str]) -> list[str]:
    """The columns of a square of as many rows as there are lanes; a power of two."""
    piece = min(lanes.width, _PIECE_BYTES // lanes.dtype.itemsize)
    pieces = lanes.width // piece
    groups = [_turned_in_pieces(lanes, list(rows[k * piece : (k + 1) * piece]), piece) for k in range(pieces)]
    columns = [_pieces_turned(lanes, [group[j] for group in groups], piece) for j in range(piece)]
    return [columns[j][block] for block in range(pieces) for j in range(piece)]


def _turned_in_pieces(lanes: Lanes, rows: list[str], piece: int) -> list[str]:
    """Turn the small squares that rows have in each piece of their registers.

    Interleaving row k with row k + half, for all k in order, as often as halves can be halved: a perfect shuffle, undone.
    """
    half = piece // 2
    for _ in range(piece.bit_length() - 1):
        rows = [part for k in range(half) for part in _interleaved(lanes, rows[k], rows[k + half], piece)]
    return rows


def _interleaved(lanes: Lanes, a: str, b: str, piece: int) -> tuple[str, str]:
    """Numbers of a and b interleaved within each piece: those of its lower half, and those of its upper."""
    starts = range(0, lanes.width, piece)
    lower = [start + k // 2 + lanes.width * (k % 2) for start in starts for k in range(piece)]
    return shuffled(lanes, a, b, lower), shuffled(lanes, a, b, [place + piece // 2 for place in lower])


def _pieces_turned(lanes: Lanes, rows: list[str], piece: int) -> list[str]:
    """Turn a square whose numbers are pieces of registers."""
    count = len(rows)
    if count == 1:
        return rows
    half = count // 2
    # Lower halves together and upper halves together; then even pieces and odd ones, of what has become half as far apart.
    lower, upper = [*range(half), *range(count, count + half)], [*range(half, count), *range(count + half, 2 * count)]
    if count == 2:
        return [_pieces_shuffled(lanes, rows[0], rows[1], order, piece) for order in (lower, upper)]
    even, odd = [0, 2, 4, 6], [1, 3, 5, 7]
    transposed_rows = []
    for part in (lower, upper):
        first, second = (_pieces_shuffled(lanes, rows[k], rows[k + 1], part, piece) for k in (0, 2))
        transposed_rows += [_pieces_shuffled(lanes, first, second, order, piece) for order in (even, odd)]
    return transposed_rows


def _pieces_shuffled(lanes: Lanes, a: str, b: str, order: Sequence[int], piece: int) -> str:
    return shuffled(lanes, a, b, [place * piece + k for place in order for k in range(piece)])


def shuffled(lanes: Lanes, a: str, b: str, order: Sequence[int]) -> str:
    """Lanes chosen from two registers, numbered one after the other."""
    places = ", ".join(f"i32 {place}" for place in order)
    return lanes.function.value(f"shufflevector {lanes.type} {a}, {lanes.type} {b}, <{len(order)} x i32> <{places}>")

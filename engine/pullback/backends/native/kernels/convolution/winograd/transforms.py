"""The linear combinations of F(2 x 2, 3 x 3), each along the columns of a matrix of values and then along its rows.

Results y, a window's weights g and an input tile d along one axis, with terms multiplied one by one:

    y = A' ((G g) * (B' d))         (1  1  1  0)        (1  0 -1  0)        ( 1    0    0 )
                                A' =               B' = (0  1  1  0)    G = (1/2  1/2  1/2)
                                    (0  1 -1 -1)        (0 -1  1  0)        (1/2 -1/2  1/2)
                                                        (0  1  0 -1)        ( 0    0    1 )
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from pullback.backends.llvm.builder.lanes import Lanes

#: Values by row and column.
Matrix: TypeAlias = Sequence[Sequence[str]]

_Along: TypeAlias = Callable[[Lanes, Sequence[str]], list[str]]


def _both_ways(lanes: Lanes, matrix: Matrix, along: _Along) -> list[list[str]]:
    columns = [along(lanes, column) for column in zip(*matrix, strict=True)]
    return [along(lanes, row) for row in zip(*columns, strict=True)]


def terms_of_input(lanes: Lanes, input_tile: Matrix) -> list[list[str]]:
    """4 x 4 terms of 4 x 4 numbers."""
    return _both_ways(lanes, input_tile, _of_input_tile)


def _of_input_tile(lanes: Lanes, d: Sequence[str]) -> list[str]:
    return [lanes.sub(d[0], d[2]), lanes.add(d[1], d[2]), lanes.sub(d[2], d[1]), lanes.sub(d[1], d[3])]


def terms_of_window(lanes: Lanes, window: Matrix) -> list[list[str]]:
    """4 x 4 terms of 3 x 3 weights."""
    return _both_ways(lanes, window, _of_window)


def _of_window(lanes: Lanes, g: Sequence[str]) -> list[str]:
    half = lanes.constant(0.5)
    outer, middle = lanes.mul(half, lanes.add(g[0], g[2])), lanes.mul(half, g[1])
    return [g[0], lanes.add(outer, middle), lanes.sub(outer, middle), g[2]]


def tile_of_terms(lanes: Lanes, terms: Matrix) -> list[list[str]]:
    """2 x 2 results of 4 x 4 products."""
    return _both_ways(lanes, terms, _to_tile)


def _to_tile(lanes: Lanes, m: Sequence[str]) -> list[str]:
    return [lanes.add(lanes.add(m[0], m[1]), m[2]), lanes.sub(lanes.sub(m[1], m[2]), m[3])]

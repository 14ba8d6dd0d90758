"""The emitters that most programs need: importing this enters them into the table, which loads the others itself."""

from pullback.backends.native.kernels import (
    accumulating,
    branches,
    diagonals,
    gathers,
    loops,
    moving,
    products,
    whiles,
)

__all__ = [
    "accumulating",
    "branches",
    "diagonals",
    "gathers",
    "loops",
    "moving",
    "products",
    "whiles",
]

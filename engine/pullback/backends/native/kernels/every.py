"""All emitters: importing this enters them into the table."""

from pullback.backends.native.kernels import (
    accumulating,
    branches,
    convolutions,
    diagonals,
    gathers,
    loops,
    moving,
    pooling,
    products,
    whiles,
)

__all__ = [
    "accumulating",
    "branches",
    "convolutions",
    "diagonals",
    "gathers",
    "loops",
    "moving",
    "pooling",
    "products",
    "whiles",
]

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
from pullback.backends.native.kernels.linear import factorizations, systems

__all__ = [
    "accumulating",
    "branches",
    "convolutions",
    "diagonals",
    "factorizations",
    "gathers",
    "loops",
    "moving",
    "pooling",
    "products",
    "systems",
    "whiles",
]

"""The rule table: importing this package registers every primitive."""

from pullback.rules import (
    activations,
    contractions,
    dense,
    elementwise,
    gemm,
    indexing,
    inplace,
    joining,
    reductions,
    shapes,
)

__all__ = [
    "activations",
    "contractions",
    "dense",
    "elementwise",
    "gemm",
    "indexing",
    "inplace",
    "joining",
    "reductions",
    "shapes",
]

"""The rule table: importing this package registers every primitive."""

from pullback.rules import (
    activations,
    constants,
    contractions,
    dense,
    elementwise,
    elementwise_map,
    gemm,
    indexing,
    inplace,
    joining,
    packing,
    reductions,
    shapes,
)

__all__ = [
    "activations",
    "constants",
    "contractions",
    "dense",
    "elementwise",
    "elementwise_map",
    "gemm",
    "indexing",
    "inplace",
    "joining",
    "packing",
    "reductions",
    "shapes",
]

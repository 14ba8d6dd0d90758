"""The rule table: importing this package registers every primitive."""

from pullback.rules import (
    activations,
    bias_act,
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
    "bias_act",
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

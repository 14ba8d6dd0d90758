"""The rule table: importing this package registers every primitive."""

from pullback.rules import (
    activations,
    contractions,
    dense,
    elementwise,
    indexing,
    inplace,
    joining,
    packing,
    reductions,
    shapes,
)

__all__ = [
    "activations",
    "contractions",
    "dense",
    "elementwise",
    "indexing",
    "inplace",
    "joining",
    "packing",
    "reductions",
    "shapes",
]

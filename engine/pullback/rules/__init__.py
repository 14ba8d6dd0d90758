"""The rule table: importing this package registers every primitive."""

from pullback.rules import (
    activations,
    bias_act,
    constants,
    contractions,
    conv_layer,
    convolution,
    dense,
    elementwise,
    indexing,
    inplace,
    joining,
    packing,
    pooling,
    reductions,
    shapes,
    softmax,
)

__all__ = [
    "activations",
    "bias_act",
    "constants",
    "contractions",
    "conv_layer",
    "convolution",
    "dense",
    "elementwise",
    "indexing",
    "inplace",
    "joining",
    "packing",
    "pooling",
    "reductions",
    "shapes",
    "softmax",
]

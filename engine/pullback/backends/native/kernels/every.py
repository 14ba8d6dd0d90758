"""All emitters: importing this enters them into the table."""

from pullback.backends.native.kernels import convolutions, loops, moving, pooling, products

__all__ = ["convolutions", "loops", "moving", "pooling", "products"]

"""All emitters: importing this enters them into the table."""

from pullback.backends.native.kernels import convolutions, loops, matmul, moving, pooling

__all__ = ["convolutions", "loops", "matmul", "moving", "pooling"]

"""All emitters: importing this enters them into the table."""

from pullback.backends.native.kernels import branches, convolutions, gathers, loops, moving, pooling, products, whiles

__all__ = ["branches", "convolutions", "gathers", "loops", "moving", "pooling", "products", "whiles"]

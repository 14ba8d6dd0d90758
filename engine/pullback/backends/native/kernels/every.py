"""All emitters: importing this enters them into the table."""

from pullback.backends.native.kernels import loops, moving, products

__all__ = ["loops", "moving", "products"]

"""All emitters: importing this enters them into the table."""

from pullback.backends.native.kernels import loops

__all__ = ["loops"]

"""Rules of the user's own: a function with the derivative that its author gives it."""

from pullback.custom.declaration import CustomPrimitive, primitive

__all__ = ["CustomPrimitive", "primitive"]

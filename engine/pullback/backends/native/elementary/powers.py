"""Powers and roots."""

from pullback.backends.native.writing.lanes import Lanes


def square(lanes: Lanes, x: str) -> str:
    """The product x x."""
    if lanes.dtype.kind == "b":
        return x
    return lanes.mul(x, x)


def reciprocal(lanes: Lanes, x: str) -> str:
    """The quotient 1 / x."""
    return lanes.div(lanes.constant(1.0), x)

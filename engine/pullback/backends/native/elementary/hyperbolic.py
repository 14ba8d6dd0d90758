"""tanh."""

from pullback.backends.native.elementary.exp import expm1_of_positive
from pullback.backends.native.elementary.formats import at_most, is_single
from pullback.backends.native.writing.lanes import Lanes


def tanh(lanes: Lanes, x: str) -> str:
    """The quotient u / (u + 2) with u = e^(2|x|) - 1: one polynomial, one division, and all digits near 0 without a branch."""
    size = at_most(lanes, lanes.absolute(x), 10.0 if is_single(lanes) else 20.0)  # where it is 1 to rounding
    u = expm1_of_positive(lanes, lanes.add(size, size))
    return lanes.copysign(lanes.div(u, lanes.add(u, lanes.constant(2.0))), x)

"""x log(y) and what is made of it, as scipy.special has them: 0 log(0) is 0."""

from pullback.backends.llvm.builder.lanes import Lanes
from pullback.backends.llvm.elementary.log import log, log1p


def _unless_zero(lanes: Lanes, x: str, y: str, product: str) -> str:
    """The product, but 0 where x is and y is a number."""
    zero = lanes.constant(0.0)
    is_number = lanes.function.value(f"fcmp ord {lanes.type} {y}, {y}")
    nothing = lanes.function.value(f"and {lanes.mask_type} {lanes.compare('==', x, zero)}, {is_number}")
    return lanes.select(nothing, zero, product)


def xlogy(lanes: Lanes, x: str, y: str) -> str:
    """The product x log(y)."""
    return _unless_zero(lanes, x, y, lanes.mul(x, log(lanes, y)))


def xlog1py(lanes: Lanes, x: str, y: str) -> str:
    """The product x log(1 + y)."""
    return _unless_zero(lanes, x, y, lanes.mul(x, log1p(lanes, y)))


def entr(lanes: Lanes, x: str) -> str:
    """-x log(x); minus infinity below 0."""
    zero = lanes.constant(0.0)
    y = lanes.mul(lanes.neg(x), log(lanes, x))
    y = lanes.select(lanes.compare("==", x, zero), zero, y)
    return lanes.select(lanes.compare("<", x, zero), lanes.constant(float("-inf")), y)

"""The logistic function."""

from pullback.backends.native.elementary.exp import exp
from pullback.backends.native.writing.lanes import Lanes


def sigmoid(lanes: Lanes, x: str) -> str:
    """1 / (1 + e^-x) without overflow: the exponential only ever sees -|x|."""
    t = exp(lanes, lanes.neg(lanes.absolute(x)))
    one = lanes.constant(1.0)
    above = lanes.select(lanes.compare(">=", x, lanes.constant(0.0)), one, t)
    return lanes.div(above, lanes.add(one, t))

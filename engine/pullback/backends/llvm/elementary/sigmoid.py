"""The logistic function and what is made of e^-|x| with it."""

from pullback.backends.llvm.builder.lanes import Lanes
from pullback.backends.llvm.elementary.arithmetic import extremum
from pullback.backends.llvm.elementary.exp import LN2, exp, exp2
from pullback.backends.llvm.elementary.log import at_border, of_sum, one_plus, quotient


def _shrunk(lanes: Lanes, x: str) -> str:
    """e^-|x|."""
    return exp(lanes, lanes.neg(lanes.absolute(x)), careful=True, above=False)


def sigmoid(lanes: Lanes, x: str) -> str:
    """1 / (1 + e^-x) without overflow: the exponential only ever sees -|x|."""
    t, one = _shrunk(lanes, x), lanes.constant(1.0)
    above = lanes.select(lanes.compare(">=", x, lanes.constant(0.0)), one, t)
    return lanes.div(above, lanes.add(one, t))


def sigmoid_fast(lanes: Lanes, x: str) -> str:
    """1 / (1 + e^-x), where e^-x may be infinite: 0 is right then."""
    one = lanes.constant(1.0)
    return lanes.div(one, lanes.add(one, exp(lanes, lanes.neg(x))))


def _log_one_plus_shrunk(lanes: Lanes, x: str) -> str:
    """log(1 + e^-|x|)."""
    t, one = _shrunk(lanes, x), lanes.constant(1.0)
    rounding = lanes.rounding_each()
    u = rounding.add(one, t)
    return of_sum(lanes, u, rounding.sub(t, rounding.sub(u, one)))


def softplus(lanes: Lanes, x: str) -> str:
    """log(1 + e^x) as max(x, 0) + log(1 + e^-|x|)."""
    return lanes.add(extremum(lanes, ">", lanes.constant(0.0), x), _log_one_plus_shrunk(lanes, x))


def log_sigmoid(lanes: Lanes, x: str) -> str:
    """The logarithm of the sigmoid, min(x, 0) - log(1 + e^-|x|)."""
    return lanes.sub(extremum(lanes, "<", lanes.constant(0.0), x), _log_one_plus_shrunk(lanes, x))


def logaddexp(lanes: Lanes, a: str, b: str) -> str:
    """log(e^a + e^b): the larger and log(1 + e^-|a - b|); equal ones, also infinite, are a doubled one."""
    y = lanes.add(extremum(lanes, ">", a, b), _log_one_plus_shrunk(lanes, lanes.sub(a, b)))
    return lanes.select(lanes.compare("==", a, b), lanes.add(a, lanes.constant(LN2)), y)


def logaddexp2(lanes: Lanes, a: str, b: str) -> str:
    """log2(2^a + 2^b), as `logaddexp`."""
    one = lanes.constant(1.0)
    t = exp2(lanes, lanes.neg(lanes.absolute(lanes.sub(a, b))))
    rounding = lanes.rounding_each()
    u = rounding.add(one, t)
    rest = of_sum(lanes, u, rounding.sub(t, rounding.sub(u, one)))
    y = lanes.mul_add(rest, lanes.constant(1 / LN2), extremum(lanes, ">", a, b))
    return lanes.select(lanes.compare("==", a, b), lanes.add(a, one), y)


def logit(lanes: Lanes, p: str) -> str:
    """log(p / (1 - p)), near 1/2 as the logarithm of 1 + (2 p - 1) / (1 - p); 2 p - 1 is exact there."""
    rounding, zero, one = lanes.rounding_each(), lanes.constant(0.0), lanes.constant(1.0)
    is_near = lanes.compare(">", p, lanes.constant(0.25))
    above = lanes.select(is_near, rounding.sub(rounding.add(p, p), one), p)
    below = rounding.sub(one, p)
    q, missing = quotient(lanes, above, below, rounding.sub(rounding.sub(one, below), p))
    near_u, near_c = one_plus(lanes, q)
    u = lanes.select(is_near, near_u, q)
    c = lanes.add(missing, lanes.select(is_near, near_c, zero))
    # Denormals have lost what is missing, and (u, c) is a sum of normal numbers.
    c = lanes.select(lanes.compare("<", p, lanes.constant(2.0**-60)), zero, c)
    y = at_border(lanes, p, of_sum(lanes, u, c, normal=False))
    beyond = lanes.select(lanes.compare("==", p, one), lanes.constant(float("inf")), lanes.constant(float("nan")))
    return lanes.select(lanes.compare("<", p, one), y, beyond)

"""Hyperbolic functions, by e^x - 1, and their inverses, by log(1 + w)."""

from pullback.backends.native.elementary.exp import expm1_of_small, expm1_parts, half_of_expm1_of_twice, is_tiny
from pullback.backends.native.elementary.formats import at_most, is_single, polynomial
from pullback.backends.native.elementary.log import of_sum, one_plus, quotient
from pullback.backends.native.writing.lanes import Lanes

# (tanh(x) - x) / x^3 in x^2 on |x| <= 0.5496; relative error of tanh(x) below 2**-24.7.
_TANH_NEAR = (-0.3333296, 0.13320976, -0.052686613, 0.01646388)


def tanh(lanes: Lanes, x: str) -> str:
    """By e^(2|x|), of which single precision needs no more than its own digits where |x| is not small."""
    return _tanh_single(lanes, x) if is_single(lanes) else _tanh_double(lanes, x)


def _tanh_single(lanes: Lanes, x: str) -> str:
    """1 - 2 / (e^(2a) + 1) with a = |x| where that is at least 1/2, and a polynomial below.

    What e^(2a) is wrong by has less effect than in the formula for all x below, so nothing has to be put back, and both ways
    together are fewer operations, and fewer that wait for each other, than that takes: 0.36 ns a number instead of 0.5.
    """
    each, one = lanes.rounding_each(), lanes.constant(1.0)
    size = lanes.absolute(x)
    square = lanes.mul(size, size)
    near = lanes.mul_add(lanes.mul(square, size), polynomial(lanes, square, _TANH_NEAR), size)
    clamped = at_most(lanes, size, 10.0)  # where it is 1 to rounding
    power, half = half_of_expm1_of_twice(lanes, clamped)
    divisor = lanes.mul_add(lanes.add(power, power), half, each.add(power, one))
    far = lanes.sub(one, lanes.div(lanes.constant(2.0), divisor))
    is_near = lanes.compare("<", size, lanes.constant(0.54930615))  # log(3) / 2, where it is 1/2
    return lanes.copysign(lanes.select(is_near, near, far), x)


def _tanh_double(lanes: Lanes, x: str) -> str:
    """The quotient u / (u + 2) with u = e^(2|x|) - 1: one polynomial, one division, and all digits near 0.

    Rounding u + 2 would cost a unit in the last place where u is small, so what it loses, d, is put back: with
    q = u / (u + 2) that is q d / (u + 2) = q d (1 - q) / 2. Where u is not small 1 - 2 / (u + 2) has the smaller error.
    """
    size = at_most(lanes, lanes.absolute(x), 20.0)  # where it is 1 to rounding
    u = expm1_of_small(lanes, lanes.add(size, size))
    each = lanes.rounding_each()
    two = lanes.constant(2.0)
    divisor = each.add(u, two)
    is_small = lanes.compare("<", u, two)
    q = lanes.div(lanes.select(is_small, u, two), divisor)
    from_one = lanes.sub(lanes.constant(1.0), q)
    lost = lanes.mul(each.sub(each.sub(divisor, two), u), lanes.constant(0.5))
    near = lanes.mul_add(lanes.mul(q, lost), from_one, q)
    return lanes.copysign(lanes.select(is_small, near, from_one), x)


def sinh(lanes: Lanes, x: str) -> str:
    """The sum u/2 + u/2 / (u + 1) with u = e^|x| - 1, of which a quarter is computed, so that it overflows late."""
    size = at_most(lanes, lanes.absolute(x), 89.5 if is_single(lanes) else 710.5)
    power, p = expm1_parts(lanes, size, divided_by=2)
    quarter = lanes.mul_add(power, p, lanes.sub(power, lanes.constant(0.25)))
    half = lanes.add(quarter, quarter)
    y = lanes.add(half, lanes.div(quarter, lanes.add(half, lanes.constant(0.5))))
    return lanes.select(is_tiny(lanes, x), x, lanes.copysign(y, x))


def cosh(lanes: Lanes, x: str) -> str:
    """The sum of e^|x| / 2 and its inverse over 4, from e^|x| / 4, which overflows later than the sum."""
    size = at_most(lanes, lanes.absolute(x), 89.5 if is_single(lanes) else 710.5)
    power, p = expm1_parts(lanes, size, divided_by=2)
    quarter = lanes.mul_add(power, p, power)
    return lanes.mul_add(quarter, lanes.constant(2.0), lanes.div(lanes.constant(0.125), quarter))


# --- inverses -------------------------------------------------------------------------------------------------------
def _one_plus_sum(lanes: Lanes, a: str, b: str) -> tuple[str, str]:
    """The sum 1 + a + b and what rounding has lost, for a not smaller than b, both positive."""
    each = lanes.rounding_each()
    w = each.add(a, b)
    lost = each.sub(b, each.sub(w, a))
    u, c = one_plus(lanes, w)
    return u, lanes.add(c, lost)


def _is_far(lanes: Lanes, x: str) -> tuple[str, str]:
    """Where 1 is nothing to x, so that the result is log(2 x), and the 1 that means for the exponent."""
    is_far = lanes.compare(">=", x, lanes.constant(2.0**30 if is_single(lanes) else 2.0**60))
    return is_far, lanes.select(is_far, lanes.constant(1.0), lanes.constant(0.0))


def arcsinh(lanes: Lanes, x: str) -> str:
    """log(1 + a + a^2 / (1 + sqrt(1 + a^2))) with a = |x|."""
    a, zero, one = lanes.absolute(x), lanes.constant(0.0), lanes.constant(1.0)
    is_far, doublings = _is_far(lanes, a)
    square = lanes.mul(a, a)
    rest = lanes.div(square, lanes.add(one, lanes.sqrt(lanes.add(one, square))))
    u, c = _one_plus_sum(lanes, a, lanes.select(is_far, zero, rest))
    y = of_sum(lanes, u, c, doublings=doublings)
    y = lanes.select(lanes.compare("<", a, lanes.constant(float("inf"))), y, a)
    return lanes.copysign(y, x)


def arccosh(lanes: Lanes, x: str) -> str:
    """log(1 + t + sqrt(t^2 + 2t)) with t = x - 1; NaN below 1."""
    zero, one = lanes.constant(0.0), lanes.constant(1.0)
    is_far, doublings = _is_far(lanes, x)
    t = lanes.sub(x, one)
    root = lanes.sqrt(lanes.mul_add(t, t, lanes.add(t, t)))
    u, c = _one_plus_sum(lanes, lanes.select(is_far, t, root), lanes.select(is_far, zero, t))
    y = of_sum(lanes, u, c, doublings=doublings)
    y = lanes.select(lanes.compare("<", x, lanes.constant(float("inf"))), y, x)
    return lanes.select(lanes.compare("<", x, one), lanes.constant(float("nan")), y)


def arctanh(lanes: Lanes, x: str) -> str:
    """log(1 + 2a / (1 - a)) / 2 with a = |x|; infinite at 1, NaN beyond."""
    a, one = lanes.absolute(x), lanes.constant(1.0)
    each = lanes.rounding_each()
    divisor = each.sub(one, a)
    w, missing = quotient(lanes, lanes.add(a, a), divisor, each.sub(each.sub(one, divisor), a))
    u, c = one_plus(lanes, w)
    y = of_sum(lanes, u, lanes.add(c, missing))
    y = lanes.mul(y, lanes.constant(0.5))
    y = lanes.select(lanes.compare("<", a, one), y, lanes.constant(float("inf")))
    y = lanes.select(lanes.compare("<=", a, one), y, lanes.constant(float("nan")))
    return lanes.copysign(y, x)

"""Hyperbolic functions, by e^x - 1 and quotients of polynomials, and their inverses, by log(1 + w)."""

from pullback.backends.llvm.builder.lanes import Lanes
from pullback.backends.llvm.elementary.exp import (
    LN2,
    expm1_parts,
    half_of_expm1_of_twice,
    is_tiny,
    ln2_parts,
    round_to_whole,
)
from pullback.backends.llvm.elementary.float_formats import (
    at_most,
    format_of,
    is_single,
    polynomial,
    shift_into_exponent,
)
from pullback.backends.llvm.elementary.log import of_sum, one_plus, quotient

# (tanh(x) - x) / x^3 in x^2 on |x| <= 0.5496; relative error of tanh(x) below 2**-24.7.
_TANH_NEAR = (-0.3333296, 0.13320976, -0.052686613, 0.01646388)

# (tanh(h) - h) / h^3 in h^2 as a quotient on |h| <= 0.55; relative error of tanh(h) below 2**-63.
_TANH_ABOVE = (-0.3333333333333333, -0.020500386441458306, -0.00019924838610497258)
_TANH_BELOW = (1.0, 0.4615011593243707, 0.02329344698339494, 0.00020660908168429237)


def tanh(lanes: Lanes, x: str) -> str:
    """Hyperbolic tangent by e^(2|x|), which single precision does not need in more digits where |x| is not small."""
    return _tanh_single(lanes, x) if is_single(lanes) else _tanh_double(lanes, x)


def _tanh_single(lanes: Lanes, x: str) -> str:
    """1 - 2 / (e^(2a) + 1) with a = |x| where that is at least 1/2, and a polynomial below.

    What e^(2a) is wrong by has less effect than in the formula for all x below, so nothing has to be put back, and both ways
    together are fewer operations, and fewer that wait for each other, than that takes: 0.36 ns a number instead of 0.5.
    """
    rounding, one = lanes.rounding_each(), lanes.constant(1.0)
    size = lanes.absolute(x)
    square = lanes.mul(size, size)
    near = lanes.mul_add(lanes.mul(square, size), polynomial(lanes, square, _TANH_NEAR), size)
    clamped = at_most(lanes, size, 10.0)  # where it is 1 to rounding
    power, half = half_of_expm1_of_twice(lanes, clamped)
    divisor = lanes.mul_add(lanes.add(power, power), half, rounding.add(power, one))
    far = lanes.sub(one, lanes.div(lanes.constant(2.0), divisor))
    is_near = lanes.compare("<", size, lanes.constant(0.54930615))  # log(3) / 2, where it is 1/2
    return lanes.copysign(lanes.select(is_near, near, far), x)


def _tanh_double(lanes: Lanes, x: str) -> str:
    """Hyperbolic tangent by a quotient of polynomials, tanh(h) = h + h^3 a / b = w / b, h = |x| - n ln(2) / 2, s = 2^n.

        h + h^3 a / b                                 for |x| < 0.55, with n = 0
        1 + (w - b) / (((s + 1) b + (s - 1) w) / 2)   for all others, |h| <= ln(2) / 4

    What is added is smaller than what it is added to, so that rounding this one sum is most of the error: 1.6 ulp. No exponential,
    one division and short chains: it takes two thirds of the time of (e^(2x) - 1) / (e^(2x) + 1), which was off by 1.95 ulp.
    """
    one = lanes.constant(1.0)
    size = at_most(lanes, lanes.absolute(x), 20.0)  # where it is 1 to rounding
    is_near = lanes.compare("<", size, lanes.constant(0.55))
    n, bits = round_to_whole(lanes, size, 2 / LN2, format_of(lanes).bias - 1)
    half = shift_into_exponent(lanes, bits)
    first, second = (lanes.constant(-0.5 * part) for part in ln2_parts(lanes))
    h = lanes.select(is_near, size, lanes.mul_add(n, second, lanes.mul_add(n, first, size)))
    square = lanes.mul(h, h)
    b = polynomial(lanes, square, _TANH_BELOW)
    rest = lanes.mul(lanes.mul(h, square), polynomial(lanes, square, _TANH_ABOVE))
    w = lanes.mul_add(h, b, rest)
    less, more = lanes.sub(half, lanes.constant(0.5)), lanes.add(half, lanes.constant(0.5))
    above = lanes.select(is_near, rest, lanes.sub(w, b))
    below = lanes.select(is_near, b, lanes.mul_add(more, b, lanes.mul(less, w)))
    y = lanes.add(lanes.select(is_near, size, one), lanes.div(above, below))
    return lanes.copysign(y, x)


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
    rounding = lanes.rounding_each()
    w = rounding.add(a, b)
    lost = rounding.sub(b, rounding.sub(w, a))
    u, c = one_plus(lanes, w)
    return u, lanes.add(c, lost)


def _is_far(lanes: Lanes, x: str) -> tuple[str, str]:
    """Mask of x so large that the result is log(2 x), and what that adds to the exponent: 1 there, 0 elsewhere."""
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
    rounding = lanes.rounding_each()
    divisor = rounding.sub(one, a)
    w, missing = quotient(lanes, lanes.add(a, a), divisor, rounding.sub(rounding.sub(one, divisor), a))
    u, c = one_plus(lanes, w)
    y = of_sum(lanes, u, lanes.add(c, missing))
    y = lanes.mul(y, lanes.constant(0.5))
    y = lanes.select(lanes.compare("<", a, one), y, lanes.constant(float("inf")))
    y = lanes.select(lanes.compare("<=", a, one), y, lanes.constant(float("nan")))
    return lanes.copysign(y, x)

"""Powers and roots.

x^y = e^(y log x). The product is as large as 745, and an error in it is a relative error of the result: the logarithm has
to be good to 2**-65. In double precision it is computed as a sum of two floats (Dekker, Numerische Mathematik 18, 1971,
with fused multiply-adds); singles go through doubles. Whole exponents that are known become products.
"""

from collections.abc import Callable
from typing import TypeVar

from pullback.backends.llvm.builder.lanes import Lanes
from pullback.backends.llvm.elementary.exp import (
    LN2,
    exp,
    exp2,
    exp_between,
    ln2_parts,
    round_to_whole,
)
from pullback.backends.llvm.elementary.float_formats import (
    at_least,
    at_most,
    format_of,
    is_single,
    polynomial,
    shift_into_exponent,
)
from pullback.backends.llvm.elementary.log import split

# Cube roots of 0.353 to 2.829, relative error below 2**-9 (tools/coefficients.py).
_CUBE_ROOT = (0.4434539785851524, 0.8987533419779873, -0.4742878837511367, 0.1534986985964124, -0.019576549079803815)
# (2 atanh(s) - 2 s) / s^3 in z = s^2, as log.py has it, for results in single precision: relative error of the logarithm
# below 2**-36.6.
_LOG_BETWEEN = (0.6666666564106375, 0.40000336257902974, 0.28537236340129923, 0.23583600802503)
# (2 atanh(s) - 2 s - 2 s^3 / 3) / s^5; relative error of the logarithm below 2**-70.
_LOG_FINE = (
    0.3999999999999998,
    0.2857142857144387,
    0.22222222217778625,
    0.1818181884572644,
    0.15384558291915204,
    0.13336270290781435,
    0.11675654621611699,
    0.11982860695144182,
)
_TWO_THIRDS = (0.6666666666666666, 3.700743415417188e-17)
T = TypeVar("T")

#: Whole exponents up to this are products.
MOST_FACTORS = 64


def square(lanes: Lanes, x: str) -> str:
    """The product x x."""
    return lanes.mul(x, x)


def reciprocal(lanes: Lanes, x: str) -> str:
    """The quotient 1 / x."""
    return lanes.div(lanes.constant(1.0), x)


def cbrt(lanes: Lanes, x: str) -> str:
    """Cube root: of a polynomial, and Halley's iteration y - y (y^3 - t) / (2 y^3 + t), which triples the digits.

    x = 2^(3k) t with t from 0.35 to 2.83.
    """
    a = lanes.absolute(x)
    e, m = split(lanes, a)
    k, bits = round_to_whole(lanes, e, 1 / 3, format_of(lanes).bias)
    left = lanes.mul_add(k, lanes.constant(-3.0), e)
    one = lanes.constant(1.0)
    factor = lanes.select(lanes.compare(">", left, lanes.constant(0.5)), lanes.constant(2.0), one)
    factor = lanes.select(lanes.compare("<", left, lanes.constant(-0.5)), lanes.constant(0.5), factor)
    t = lanes.mul(m, factor)
    y = polynomial(lanes, t, _CUBE_ROOT)
    for _ in range(1 if is_single(lanes) else 2):
        y_squared = lanes.mul(y, y)
        miss = lanes.mul_add(lanes.neg(y), y_squared, t)
        below = lanes.mul_add(lanes.mul(y, lanes.constant(2.0)), y_squared, t)
        y = lanes.mul_add(y, lanes.div(miss, below), y)
    y = lanes.copysign(lanes.mul(y, shift_into_exponent(lanes, bits)), x)
    y = lanes.select(lanes.compare("<", a, lanes.constant(float("inf"))), y, x)
    return lanes.select(lanes.compare("==", a, lanes.constant(0.0)), x, y)


def hypot(lanes: Lanes, x: str, y: str) -> str:
    """The root of x^2 + y^2: singles as doubles, doubles scaled where squares leave the range; infinite if one is."""
    a, b = lanes.absolute(x), lanes.absolute(y)
    if is_single(lanes):
        double = lanes.as_dtype("f8")
        wide_a, wide_b = lanes.convert(a, double), lanes.convert(b, double)
        total = double.mul_add(wide_a, wide_a, double.mul(wide_b, wide_b))
        length = double.convert(double.sqrt(total), lanes)
    else:
        is_more = lanes.compare(">", a, b)
        larger, smaller = lanes.select(is_more, a, b), lanes.select(is_more, b, a)
        one = lanes.constant(1.0)
        is_high = lanes.compare(">", larger, lanes.constant(2.0**500))
        is_low = lanes.compare("<", larger, lanes.constant(2.0**-500))
        down, up = lanes.constant(2.0**-600), lanes.constant(2.0**600)
        factor = lanes.select(is_high, down, lanes.select(is_low, up, one))
        back = lanes.select(is_high, up, lanes.select(is_low, down, one))
        larger, smaller = lanes.mul(larger, factor), lanes.mul(smaller, factor)
        length = lanes.sqrt(lanes.mul_add(larger, larger, lanes.mul(smaller, smaller)))
        length = lanes.mul(length, back)
    infinity = lanes.constant(float("inf"))
    for side in (a, b):
        length = lanes.select(lanes.compare("==", side, infinity), infinity, length)
    return length


# --- power ----------------------------------------------------------------------------------------------------------
def power(lanes: Lanes, x: str, y: str) -> str:
    """x^y, with every border as C and NumPy have it."""
    exponent = lanes.known(y)
    if exponent is not None:
        simple = _SIMPLE.get(exponent)
        if simple is not None:
            return simple(lanes, x)
        if float(exponent).is_integer() and abs(exponent) <= MOST_FACTORS:
            return _product(lanes, x, int(exponent))
    if lanes.known(x) == 2:
        return exp2(lanes, y)
    a = lanes.absolute(x)
    size = (_power_of_singles if is_single(lanes) else _power_of_doubles)(lanes, a, y)
    return _with_borders(lanes, x, y, a, size)


def _inverse_root(lanes: Lanes, x: str) -> str:
    found = reciprocal(lanes, lanes.sqrt(lanes.add(x, lanes.constant(0.0))))  # -0 gives infinity
    return _at_minus_infinity(lanes, x, 0.0, found)


def _root_times(lanes: Lanes, x: str) -> str:
    return _at_minus_infinity(lanes, x, float("inf"), lanes.mul(x, lanes.sqrt(x)))


def _at_minus_infinity(lanes: Lanes, x: str, there: float, elsewhere: str) -> str:
    """Replace a power at x = -infinity, where one computed from a square root is wrong, by the value of C's pow."""
    is_there = lanes.compare("==", x, lanes.constant(float("-inf")))
    return lanes.select(is_there, lanes.constant(there), elsewhere)


_SIMPLE: dict[float, Callable[[Lanes, str], str]] = {
    0.0: lambda lanes, _: lanes.constant(1.0),
    1.0: lambda _, x: x,
    2.0: square,
    3.0: lambda lanes, x: lanes.mul(lanes.mul(x, x), x),
    -1.0: reciprocal,
    0.5: lambda lanes, x: lanes.sqrt(x),
    -0.5: _inverse_root,
    1.5: _root_times,
}


def _product(lanes: Lanes, x: str, exponent: int) -> str:
    """X multiplied with itself, by squaring: singles as doubles, doubles as sums of two floats, so that it is rounded once."""
    if is_single(lanes):
        double = lanes.as_dtype("f8")
        wide = lanes.convert(x, double)
        y = _by_squaring(wide, abs(exponent), double.mul)
        return double.convert(reciprocal(double, y) if exponent < 0 else y, lanes)
    zero = lanes.constant(0.0)
    factor = (x, zero)
    if exponent < 0:
        first = reciprocal(lanes, x)
        missing = lanes.mul(first, lanes.fma(lanes.neg(x), first, lanes.constant(1.0)))
        factor = (first, lanes.select(lanes.is_nan(missing), zero, missing))
    high, low = _by_squaring(factor, abs(exponent), lambda a, b: _multiply(lanes, a, b))
    # If the product exceeds the format, the second float is NaN; a zero keeps its sign.
    is_sum = lanes.function.value(
        f"and {lanes.mask_type} {lanes.compare('<', lanes.absolute(high), lanes.constant(float('inf')))}, "
        f"{lanes.compare('!=', low, zero)}"
    )
    return lanes.select(is_sum, lanes.add(high, low), high)


def _by_squaring(factor: T, exponent: int, multiply: Callable[[T, T], T]) -> T:
    product = factor
    for bit in bin(exponent)[3:]:  # the highest is the factor itself
        product = multiply(product, product)
        if bit == "1":
            product = multiply(product, factor)
    return product


def _multiply(lanes: Lanes, a: tuple[str, str], b: tuple[str, str]) -> tuple[str, str]:
    """The product of two sums of two floats; relative error a few times 2**-106."""
    high = lanes.rounding_each().mul(a[0], b[0])
    low = lanes.fma(a[0], b[0], lanes.neg(high))
    return high, lanes.mul_add(a[0], b[1], lanes.mul_add(a[1], b[0], low))


def _power_of_singles(lanes: Lanes, a: str, y: str) -> str:
    """e^(y log a) in double precision, whose exponents have room for every denormal."""
    double = lanes.as_dtype("f8")
    e, m = split(double, lanes.convert(a, double), normal=True)
    f = double.sub(m, double.constant(1.0))
    s = double.div(f, double.add(f, double.constant(2.0)))
    z = double.mul(s, s)
    series = double.mul_add(z, polynomial(double, z, _LOG_BETWEEN), double.constant(2.0))
    logarithm = double.mul_add(e, double.constant(LN2), double.mul(s, series))
    t = double.mul(lanes.convert(y, double), logarithm)
    t = at_most(double, at_least(double, t, -110.0), 110.0)
    return double.convert(exp_between(double, t), lanes)


def _power_of_doubles(lanes: Lanes, a: str, y: str) -> str:
    high, low = _logarithm(lanes, a)
    rounding = lanes.rounding_each()
    t = rounding.mul(y, high)
    rest = lanes.mul_add(y, low, lanes.fma(y, high, lanes.neg(t)))
    is_inside = lanes.compare("<", lanes.absolute(t), lanes.constant(1000.0))
    return exp(lanes, t, low=lanes.select(is_inside, rest, lanes.constant(0.0)))


def _logarithm(lanes: Lanes, a: str) -> tuple[str, str]:
    """The logarithm of a positive finite number as a sum of two floats, good to 2**-65."""
    rounding, fma = lanes.rounding_each(), lanes.fma
    e, m = split(lanes, a)
    one, two = lanes.constant(1.0), lanes.constant(2.0)
    f = rounding.sub(m, one)
    # s = f / (2 + f), where 2 + f is `below` and a rest.
    below = rounding.add(f, two)
    below_rest = rounding.sub(f, rounding.sub(below, two))
    inverse = lanes.div(one, below)
    s = rounding.mul(f, inverse)
    s_rest = lanes.mul(inverse, fma(lanes.neg(s), below_rest, fma(lanes.neg(s), below, f)))
    # z = s^2, and w = z (2/3 + z Q(z)).
    z, z_rest = _multiply(lanes, (s, s_rest), (s, s_rest))
    tail = lanes.mul(z, polynomial(lanes, z, _LOG_FINE))
    first, second = (lanes.constant(part) for part in _TWO_THIRDS)
    c = rounding.add(first, tail)
    c_rest = lanes.add(rounding.add(rounding.sub(first, c), tail), second)
    w = _multiply(lanes, (z, z_rest), (c, c_rest))
    u, u_rest = _multiply(lanes, (s, s_rest), w)
    double = rounding.add(s, s)
    high = rounding.add(double, u)
    low = lanes.add(rounding.add(rounding.sub(double, high), u), lanes.mul_add(s_rest, two, u_rest))
    # e ln 2 is larger than that, or nothing.
    ln2_first, ln2_second = ln2_parts(lanes)
    whole = rounding.mul(e, lanes.constant(ln2_first))
    total = rounding.add(whole, high)
    lost = rounding.add(rounding.sub(whole, total), high)
    return total, lanes.mul_add(e, lanes.constant(ln2_second), lanes.add(lost, low))


def _with_borders(lanes: Lanes, x: str, y: str, a: str, size: str) -> str:
    """The value x^y from |x|^y for finite positive a = |x| and finite y."""
    zero, one, infinity = (lanes.constant(value) for value in (0.0, 1.0, float("inf")))
    nan = lanes.constant(float("nan"))

    def joined(operation: str, p: str, q: str) -> str:
        return lanes.function.value(f"{operation} {lanes.mask_type} {p}, {q}")

    # At the ends of both ranges it is 0 or infinite.
    shrinks = joined("xor", lanes.compare(">", a, one), lanes.compare(">", y, zero))
    ends = joined("or", lanes.compare("==", a, zero), lanes.compare("==", a, infinity))
    ends = joined("or", ends, lanes.compare("==", lanes.absolute(y), infinity))
    size = lanes.select(ends, lanes.select(shrinks, zero, infinity), size)
    size = lanes.select(lanes.compare("==", a, one), one, size)
    # Odd exponents keep the sign of x; of a negative number others than whole ones have no value.
    half = lanes.mul(y, lanes.constant(0.5))
    is_whole = lanes.compare("==", y, lanes.intrinsic("trunc", y))
    is_odd = joined("and", is_whole, lanes.compare("!=", half, lanes.intrinsic("trunc", half)))
    size = lanes.select(is_odd, lanes.copysign(size, x), size)
    is_finite_negative = joined("and", lanes.compare("<", x, zero), lanes.compare("<", a, infinity))
    fraction = joined("and", is_finite_negative, lanes.compare("!=", y, lanes.intrinsic("trunc", y)))
    size = lanes.select(fraction, nan, size)
    size = lanes.select(lanes.function.value(f"fcmp uno {lanes.type} {x}, {y}"), nan, size)
    certain = joined("or", lanes.compare("==", x, one), lanes.compare("==", y, zero))
    return lanes.select(certain, one, size)

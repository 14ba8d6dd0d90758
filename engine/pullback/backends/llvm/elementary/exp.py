"""exp, exp2, exp10, expm1: x = n ln 2 + r with |r| <= ln(2)/2, and e^x = 2^n e^r.

e^r = 1 + p with p = r + r^2 q(r); q is minimax for the relative error of e^r - 1. n ln 2 is taken off in two parts, the
first so short that its product with n is exact (Cody and Waite, Software Manual for the Elementary Functions, 1980).
"""

import math

from pullback.backends.llvm.builder.lanes import Lanes
from pullback.backends.llvm.elementary.float_formats import (
    at_least,
    at_most,
    format_of,
    is_single,
    polynomial,
    shift_into_exponent,
)

# (e^r - 1 - r) / r^2 on |r| <= 0.3467; relative error of e^r - 1 below 2**-26.1 and 2**-61.6 (tools/coefficients.py).
_REST_SINGLE = (0.49999997, 0.16666546, 0.041667435, 0.008366262, 0.0013870663)
_REST_DOUBLE = (
    0.5,
    0.16666666666666677,
    0.041666666666666685,
    0.008333333333321778,
    0.001388888888889243,
    0.00019841269885390565,
    2.4801587282962446e-05,
    2.755724510926107e-06,
    2.7557325406296226e-07,
    2.5108699325277222e-08,
    2.0895319131391136e-09,
)
# (e^r - 1 - r) / r^2 for results in single precision; relative error of e^r below 2**-31.9.
_EXP_BETWEEN = (
    0.500000004428475,
    0.16666666370083189,
    0.04166636038492936,
    0.008333389400669737,
    0.001394067104441851,
    0.00019845905909053886,
)
# (2^r - 1) / r on |r| <= 0.5; relative error of 2^r below 2**-28.3 and 2**-59.7.
_BINARY_SINGLE = (0.6931472, 0.24022648, 0.055503596, 0.009618499, 0.001339097, 0.00015329279)
_BINARY_DOUBLE = (
    0.6931471805599453,
    0.2402265069591007,
    0.055504108664823505,
    0.00961812910762987,
    0.0013333558145980113,
    0.00015403530390318336,
    1.5252734235240984e-05,
    1.3215489569728805e-06,
    1.0177898406596222e-07,
    7.053800141175842e-09,
    4.479039766663922e-10,
    2.7318152441397503e-11,
)

LN2 = math.log(2.0)
LN10 = math.log(10.0)
# ln 2 and log10(2) as first + second, the first cut off after 15 and 41 bits, which leaves room for an exponent.
_LN2_SINGLE = (0.693145751953125, 1.4286068203094173e-06)
_LN2_DOUBLE = (0.693147180559663, 2.8235290563031577e-13)
_LOG10_2_SINGLE = (0.301025390625, 4.605038981195214e-06)
_LOG10_2_DOUBLE = (0.30102999566383914, 1.42050232272661e-13)


def ln2_parts(lanes: Lanes) -> tuple[float, float]:
    """The natural logarithm of 2 as a short number and the rest."""
    return _LN2_SINGLE if is_single(lanes) else _LN2_DOUBLE


def log10_2_parts(lanes: Lanes) -> tuple[float, float]:
    """The decimal logarithm of 2 as a short number and the rest."""
    return _LOG10_2_SINGLE if is_single(lanes) else _LOG10_2_DOUBLE


def round_to_whole(lanes: Lanes, x: str, factor: float, offset: int) -> tuple[str, str]:
    """The whole number n nearest to x * factor, and bits whose lowest are n + offset."""
    magic = lanes.constant(format_of(lanes).magic + offset)
    moved = lanes.mul_add(x, lanes.constant(factor), magic)
    return lanes.sub(moved, magic), lanes.bits(moved)


def _take_off(lanes: Lanes, x: str, n: str, parts: tuple[float, float]) -> tuple[str, str]:
    """The rest r of x without n times a number in two parts, and what rounding r has lost."""
    first, second = (lanes.constant(-part) for part in parts)
    exact = lanes.mul_add(n, first, x)
    r = lanes.mul_add(n, second, exact)
    return r, lanes.mul_add(n, second, lanes.rounding_each().sub(exact, r))


def _minus_one(lanes: Lanes, r: str, lost: str | None = None, low: str | None = None) -> str:
    """e^(r + lost + low) - 1 for |r| <= ln(2) / 2: lost is below the last place of r, low a hundred times that or more."""
    rest = polynomial(lanes, r, _REST_SINGLE if is_single(lanes) else _REST_DOUBLE)
    square = lanes.mul(r, r)
    if lost is None:
        return lanes.mul_add(square, rest, r)
    rest = lanes.mul_add(square, rest, lost)
    p = lanes.add(r, rest)
    return p if low is None else lanes.add(r, lanes.add(rest, lanes.mul_add(low, p, low)))


#: Bytes of the vectors that AVX-512 scales, and its number for rounding as everything else is rounded.
_SCALED = (16, 32, 64)
_CURRENT = 4


def scale(lanes: Lanes, y: str, n: str, bits: str) -> str:
    """The product y 2^n, for bits whose lowest are n + 2 * bias: by two factors, so that denormals are rounded once.

    AVX-512 has one instruction for it, to the same bits: e^x takes a sixth less time. Else half of the number is shifted out
    logically: AVX2 has no other shift of 64-bit integers. Of what is above the number the shifts into the exponent leave
    nothing.
    """
    if lanes.function.module.vector_bits == 512 and lanes.width * lanes.dtype.itemsize in _SCALED:
        return _scaled_at_once(lanes, y, n)
    half = lanes.on_bits("lshr", bits, lanes.bits_constant(1))
    y = lanes.mul(y, shift_into_exponent(lanes, half))
    return lanes.mul(y, shift_into_exponent(lanes, lanes.on_bits("sub", bits, half)))


def _scaled_at_once(lanes: Lanes, y: str, n: str) -> str:
    bits = 8 * lanes.width * lanes.dtype.itemsize
    mask = f"i{max(8, lanes.width)}"
    types, operands = [lanes.type] * 3 + [mask], [y, n, lanes.constant(0.0), "-1"]
    rounding = [("i32", _CURRENT)] if bits == 512 else []
    name = f"llvm.x86.avx512.mask.scalef.{'ps' if is_single(lanes) else 'pd'}.{bits}"
    lanes.function.module.declare(name, lanes.type, *types, *(["i32 immarg"] * len(rounding)))
    return lanes.function.call(lanes.type, f"@{name}", *zip(types, operands, strict=True), *rounding)


def clamp(lanes: Lanes, x: str, *, above: bool = True) -> str:
    """The x between where e^x is 0 and where it is infinite; NaN stays."""
    x = at_least(lanes, x, -104.0 if is_single(lanes) else -746.0)
    return at_most(lanes, x, 89.0 if is_single(lanes) else 710.0) if above else x


def exp(
    lanes: Lanes,
    x: str,
    *,
    low: str | None = None,
    times: tuple[str, str] | None = None,
    careful: bool = False,
    above: bool = True,
) -> str:
    """e^(x + low), times a sum of two floats near 1: 0 below the least denormal, infinity above the largest number.

    Where it is `careful`, or there is a low part, what rounding the reduced argument loses is put back: the error is 0.7
    units in the last place instead of 1. Where x is never `above` zero, that is not tested.
    """
    x = clamp(lanes, x, above=above)
    n, bits = round_to_whole(lanes, x, 1 / LN2, 2 * format_of(lanes).bias)
    r, lost = _take_off(lanes, x, n, ln2_parts(lanes))
    p = _minus_one(lanes, r, lost if careful or low is not None else None, low)
    if times is None:
        return scale(lanes, lanes.add(p, lanes.constant(1.0)), n, bits)
    factor, factor_rest = times
    rest = lanes.mul_add(p, factor, lanes.mul_add(factor_rest, p, factor_rest))
    return scale(lanes, lanes.add(factor, rest), n, bits)


def exp_between(lanes: Lanes, x: str, *, times: str | None = None) -> str:
    """e^x in double precision, good enough for singles, times a number; for x between -700 and 700."""
    n, bits = round_to_whole(lanes, x, 1 / LN2, format_of(lanes).bias)
    r = lanes.mul_add(n, lanes.constant(-LN2), x)
    p = lanes.mul_add(lanes.mul(r, r), polynomial(lanes, r, _EXP_BETWEEN), r)
    power = shift_into_exponent(lanes, bits)
    factor = power if times is None else lanes.mul(power, times)
    return lanes.mul_add(factor, p, factor)


def exp2(lanes: Lanes, x: str) -> str:
    """2^x, exact where x is whole."""
    x = at_least(lanes, x, -151.0 if is_single(lanes) else -1076.0)
    x = at_most(lanes, x, 129.0 if is_single(lanes) else 1025.0)
    n, bits = round_to_whole(lanes, x, 1.0, 2 * format_of(lanes).bias)
    r = lanes.sub(x, n)
    series = polynomial(lanes, r, _BINARY_SINGLE if is_single(lanes) else _BINARY_DOUBLE)
    return scale(lanes, lanes.mul_add(r, series, lanes.constant(1.0)), n, bits)


def exp10(lanes: Lanes, x: str) -> str:
    """10^x: n is taken off as n log10(2), and what is left multiplied by ln 10 in two parts."""
    x = at_least(lanes, x, -46.0 if is_single(lanes) else -325.0)
    x = at_most(lanes, x, 39.0 if is_single(lanes) else 309.0)
    n, bits = round_to_whole(lanes, x, LN10 / LN2, 2 * format_of(lanes).bias)
    r, lost = _take_off(lanes, x, n, log10_2_parts(lanes))
    factor = lanes.constant(LN10)
    natural = lanes.rounding_each().mul(r, factor)
    lost = lanes.mul_add(lost, factor, lanes.fma(r, factor, lanes.neg(natural)))
    lost = lanes.mul_add(r, lanes.constant(_LN10_REST[lanes.dtype.itemsize]), lost)
    return scale(lanes, lanes.add(_minus_one(lanes, natural, lost), lanes.constant(1.0)), n, bits)


# The difference of ln 10 and the float nearest to it.
_LN10_REST = {4: -3.197543673785701e-08, 8: -2.1707562233822494e-16}


def expm1_parts(lanes: Lanes, x: str, divided_by: int = 0) -> tuple[str, str]:
    """Numbers s = 2^(n - divided_by) and p, with which e^x 2^-divided_by = s + s p; not clamped."""
    n, bits = round_to_whole(lanes, x, 1 / LN2, format_of(lanes).bias - divided_by)
    r, lost = _take_off(lanes, x, n, ln2_parts(lanes))
    return shift_into_exponent(lanes, bits), _minus_one(lanes, r, lost)


def half_of_expm1_of_twice(lanes: Lanes, x: str) -> tuple[str, str]:
    """Numbers s = 2^n and h, with which e^(2x) = s + 2 s h, in single precision for x from 0 to 40.

    Half of n ln 2 is taken off x, so that nothing is doubled first, and in one part, which is wrong by n 2**-30; powers of 2
    go into the coefficients, which stay exact. The polynomial is added up in pairs, which takes three operations one after
    the other instead of four.
    """
    n, bits = round_to_whole(lanes, x, 2 / LN2, format_of(lanes).bias)
    r = lanes.mul_add(n, lanes.constant(-LN2 / 2), x)
    square = lanes.mul(r, r)
    c = [lanes.constant(coefficient * 2.0 ** (k + 1)) for k, coefficient in enumerate(_REST_SINGLE)]
    low, middle = lanes.mul_add(r, c[1], c[0]), lanes.mul_add(r, c[3], c[2])
    rest = lanes.mul_add(square, lanes.mul_add(square, c[4], middle), low)
    return shift_into_exponent(lanes, bits), lanes.mul_add(square, rest, r)


def expm1(lanes: Lanes, x: str) -> str:
    """e^x - 1, with all digits near 0.

    Half of it is computed, with 2^(n-1), which is finite where the result is.
    """
    clamped = at_least(lanes, x, -18.0 if is_single(lanes) else -39.0)
    clamped = at_most(lanes, clamped, 89.0 if is_single(lanes) else 710.0)
    power, p = expm1_parts(lanes, clamped, divided_by=1)
    half = lanes.mul_add(power, p, lanes.sub(power, lanes.constant(0.5)))
    return lanes.select(is_tiny(lanes, x), x, lanes.add(half, half))


def is_tiny(lanes: Lanes, x: str) -> str:
    """Mask of x so small that e^x - 1 rounds to x; among them are denormals, which have no exact half."""
    return lanes.compare("<", lanes.absolute(x), lanes.constant(2.0**-30 if is_single(lanes) else 2.0**-60))

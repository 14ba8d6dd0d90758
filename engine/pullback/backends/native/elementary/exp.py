"""exp, exp2, expm1: x = n ln 2 + r with |r| <= ln(2)/2, and e^x = 2^n e^r.

e^r = 1 + p with p = r + r^2 q(r); q is minimax for the relative error of e^r - 1. n ln 2 is taken off in two parts, the
first so short that its product with n is exact (Cody and Waite, Software Manual for the Elementary Functions, 1980).
"""

import math

from pullback.backends.native.elementary.formats import (
    at_least,
    at_most,
    format_of,
    is_single,
    polynomial,
    shift_into_exponent,
)
from pullback.backends.native.writing.lanes import Lanes

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

LN2 = math.log(2.0)
# ln 2 = first + second, the first cut off after 15 and 41 bits; the second is positive, so that infinity times both has
# one sign.
LN2_SINGLE = (0.693145751953125, 1.4286068203094173e-06)
LN2_DOUBLE = (0.693147180559663, 2.8235290563031577e-13)


def ln2_parts(lanes: Lanes) -> tuple[float, float]:
    """Ln 2 as a short number and the rest."""
    return LN2_SINGLE if is_single(lanes) else LN2_DOUBLE


def _rounded(lanes: Lanes, x: str, offset: int) -> tuple[str, str]:
    """The whole number n nearest to x / ln 2, and bits whose lowest are n + offset."""
    magic = format_of(lanes).magic + offset
    moved = lanes.mul_add(x, lanes.constant(1 / LN2), lanes.constant(magic))
    return lanes.sub(moved, lanes.constant(magic)), lanes.bits(moved)


def _exp_minus_one(lanes: Lanes, x: str, n: str) -> str:
    """e^r - 1 of r = x - n ln 2."""
    first, second = ln2_parts(lanes)
    r = lanes.mul_add(n, lanes.constant(-first), x)
    r = lanes.mul_add(n, lanes.constant(-second), r)
    rest = polynomial(lanes, r, _REST_SINGLE if is_single(lanes) else _REST_DOUBLE)
    return lanes.mul_add(lanes.mul(r, r), rest, r)


def scale(lanes: Lanes, y: str, bits: str) -> str:
    """The product y 2^n, for bits whose lowest are n + 2 * bias: by two factors, so that denormals are rounded once.

    Half of the number is shifted out logically: AVX2 has no other shift of 64-bit integers. Of what is above the number
    the shifts into the exponent leave nothing.
    """
    half = lanes.on_bits("lshr", bits, lanes.bits_constant(1))
    y = lanes.mul(y, shift_into_exponent(lanes, half))
    return lanes.mul(y, shift_into_exponent(lanes, lanes.on_bits("sub", bits, half)))


def exp(lanes: Lanes, x: str) -> str:
    """e^x: 0 below the least denormal, infinity above the largest number."""
    x = at_least(lanes, x, -104.0 if is_single(lanes) else -746.0)
    x = at_most(lanes, x, 89.0 if is_single(lanes) else 710.0)
    n, bits = _rounded(lanes, x, 2 * format_of(lanes).bias)
    y = lanes.add(_exp_minus_one(lanes, x, n), lanes.constant(1.0))
    return scale(lanes, y, bits)


def expm1_of_positive(lanes: Lanes, x: str) -> str:
    """e^x - 1 for x from 0 to 80, without care for overflow."""
    n, bits = _rounded(lanes, x, format_of(lanes).bias)
    power = shift_into_exponent(lanes, bits)
    return lanes.mul_add(power, _exp_minus_one(lanes, x, n), lanes.sub(power, lanes.constant(1.0)))


def expm1(lanes: Lanes, x: str) -> str:
    """e^x - 1, with all digits near 0.

    Half of it is computed, with 2^(n-1), which is no infinity where the result is none.
    """
    sign = x
    x = at_least(lanes, x, -18.0 if is_single(lanes) else -39.0)
    x = at_most(lanes, x, 89.0 if is_single(lanes) else 710.0)
    n, bits = _rounded(lanes, x, format_of(lanes).bias - 1)
    power = shift_into_exponent(lanes, bits)
    half = lanes.mul_add(power, _exp_minus_one(lanes, x, n), lanes.sub(power, lanes.constant(0.5)))
    return lanes.copysign(lanes.add(half, half), sign)  # of -0 it is -0

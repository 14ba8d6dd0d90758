"""Elementwise functions: one row each, `Scalar(name, ufunc, map per operand)`.

A map takes the cotangent (or tangent) v, the operands and the result y. Where the derivative can be had from y alone it
is written so: the operand then need not be kept. Tie rule of maximum and minimum: equal operands share equally. Where
their value is NaN the derivative is NaN too.
"""

import math
import operator
from typing import Any

import numpy as np

from pullback.core.bit_masks import write_masked
from pullback.core.cases import away_from, cases, normal, positive, tested_in
from pullback.core.kinds import Scalar
from pullback.core.types import dtype_of
from pullback.errors import DifferentiationError

# --- arithmetic -----------------------------------------------------------------------------------------------------
add = Scalar("add", np.add, lambda v, a, b, y: v, lambda v, a, b, y: v, operator=operator.add)
sub = Scalar("sub", np.subtract, lambda v, a, b, y: v, lambda v, a, b, y: -v, operator=operator.sub)
mul = Scalar("mul", np.multiply, lambda v, a, b, y: v * b, lambda v, a, b, y: a * v, operator=operator.mul)
div = Scalar("div", np.divide, lambda v, a, b, y: v / b, lambda v, a, b, y: -(v / b * y), operator=operator.truediv)
"""a / b. The derivative by b shares v / b with that by a, so a gradient by both divides once.

At the rim it differs from -(v y) / b: where v / b overflows, which takes |b| < 1e-308, and y is 0, it is NaN and not 0; where v y
would overflow and v / b does not, it is finite.
"""
neg = Scalar("neg", np.negative, lambda v, x, y: -v, operator=operator.neg)
square = Scalar("square", np.square, lambda v, x, y: v * (2 * x))
reciprocal = Scalar("reciprocal", np.reciprocal, lambda v, x, y: -(v * np.square(y)))


def _power_of_base(v: Any, a: Any, b: Any, y: Any) -> Any:
    """Derivative b * a**(b-1); an exponent of two, the common case, costs a product instead of a power.

    Where b is 0 it is b / a, which is 0 and has the derivative 1 / a by b, and 0 also where a is 0, infinite or NaN.
    """
    if issubclass(type(b), int | float):
        return v * (2 * a) if b == 2 else v * 0 if b == 0 else v * (b * a ** (b - 1))
    flat = b == 0
    return v * np.where(flat, b / np.where(np.absolute(a) > 0, a, 1), b * a ** np.where(flat, 0, b - 1))


def _power_of_exponent(v: Any, a: Any, b: Any, y: Any) -> Any:
    """Derivative y * log(a), zero where a or y is zero: 0**b is 0 for every positive b, inf**b for every negative one."""
    is_number = issubclass(type(a), int | float | complex)
    base = (a if a != 0 else 1) if is_number else np.where((a == 0) | (y == 0), 1, a)
    if dtype_of(y).kind == "c" and dtype_of(base).kind != "c":
        base = base + 0j  # a negative base has a complex logarithm
    logarithm = np.log(base)
    return v * (y * (logarithm.item() if is_number else logarithm))  # a Python number leaves the precision to v and y


def _power(a: Any, b: Any) -> Any:
    """Python's own power turns complex for a negative base and a broken exponent."""
    if type(b) is int and b == 2 and dtype_of(a).kind == "b" and type(a) is not bool:
        return np.power(a, b)  # the operator takes it for a square, which is int8
    y = a**b
    if issubclass(type(y), complex) and issubclass(type(a), int | float) and issubclass(type(b), int | float):
        raise DifferentiationError(f"{a} to the power {b} is complex; this engine differentiates real values only")
    return y


power = Scalar("power", np.power, _power_of_base, _power_of_exponent, operator=_power)

# --- piecewise ------------------------------------------------------------------------------------------------------
# A complex sign is x / |x|, so this is also the derivative of a complex modulus; `conjugate` copies no real array.
absolute = Scalar("absolute", np.absolute, lambda v, x, y: v * np.sign(x).conjugate(), operator=abs)


def _with_nan_of(v: Any, y: Any) -> Any:
    return np.where(np.isnan(y), np.nan, v)


with_nan_of: Scalar = Scalar("with_nan_of", _with_nan_of, lambda u, v, y, _: with_nan_of(u, y), None)
"""v, but NaN where y is. It is linear in v, so that derivatives of every order are NaN there; a `where` gives them as 0."""


def _share(v: Any, mine: Any, other: Any, y: Any) -> Any:
    return with_nan_of(np.where(mine == y, np.where(mine == other, 0.5 * v, v), 0), y)


maximum = Scalar("maximum", np.maximum, _share, lambda v, a, b, y: _share(v, b, a, y))
minimum = Scalar("minimum", np.minimum, _share, lambda v, a, b, y: _share(v, b, a, y))
fmax = Scalar("fmax", np.fmax, _share, lambda v, a, b, y: _share(v, b, a, y))
fmin = Scalar("fmin", np.fmin, _share, lambda v, a, b, y: _share(v, b, a, y))


def _with_sign(v: Any, a: Any, b: Any, y: Any) -> Any:
    return np.where(np.signbit(a) == np.signbit(b), v, -v)


copysign = Scalar("copysign", np.copysign, _with_sign, None)
heaviside = Scalar("heaviside", np.heaviside, None, lambda v, x, half, y: np.where(x == 0, v, 0))


def _masks(c: Any, a: Any, b: Any) -> bool:
    """True if what is chosen are real numbers by a mask, and zero, without a sign, elsewhere."""
    if not (type(c) is type(a) is np.ndarray and c.dtype == bool and a.dtype.kind == "f"):
        return False
    if type(b) is np.ndarray and b.shape == () and b.dtype.kind in "biuf":
        b = b.item()  # comparing the array would make another
    return issubclass(type(b), int | float) and b == 0 and math.copysign(1, b) > 0


def _chosen(c: Any, a: Any, b: Any) -> Any:
    """`np.where`, faster where it masks."""
    if issubclass(type(b), int | float) and _masks(c, a, b) and c.shape == a.shape != ():
        out = np.empty_like(a)
        if write_masked(out, a, c):
            return out
    return np.where(c, a, b)


_chosen.__name__ = np.where.__name__


def _write_chosen(out: Any, c: Any, a: Any, b: Any) -> None:
    if _masks(c, a, b) and a.dtype == out.dtype and write_masked(out, a, c):
        return
    np.copyto(out, b)
    np.copyto(out, a, where=c if np.result_type(c).kind == "b" else np.not_equal(c, 0))


where = Scalar(
    "where",
    _chosen,
    None,
    lambda v, c, a, b, y: np.where(c, v, 0),
    lambda v, c, a, b, y: np.where(c, 0, v),
    into=_write_chosen,
)
where.needs_scratch = False
where.in_place = False  # written in two steps: an operand must outlive the first

for _binary in (add, sub, mul):
    cases(_binary, normal(3, 4), normal(3, 4))
    cases(_binary, normal(3, 4), normal(4), because="broadcasting sums the cotangent back")
    cases(_binary, normal(3, 1), normal(2, 1, 4), because="both operands are stretched")
    cases(_binary, normal(), normal(3), because="a number against an array")
cases(div, normal(3, 4), away_from(0.0, 4))
cases(power, positive(3, 4), normal(4))
for _anywhere in (neg, square):
    cases(_anywhere, normal(3, 4))
cases(reciprocal, away_from(0.0, 3, 4))
cases(absolute, away_from(0.0, 8), because="the kink at 0 has no derivative")
for _extremum in (maximum, minimum, fmax, fmin):
    cases(_extremum, normal(3, 4), normal(4), because="ties have no derivative, and random numbers do not tie")
cases(with_nan_of, normal(3, 4), normal(3, 1))
cases(copysign, away_from(0.0, 3, 4), away_from(0.0, 4))
cases(heaviside, away_from(0.0, 5), normal(5), because="the value at the step counts at the step only")

tested_in("rules/test_rules.py", "where")

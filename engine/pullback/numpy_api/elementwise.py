"""Elementwise functions that are not ufuncs, and ufuncs that are more than one primitive."""

from math import pi
from typing import Any

import numpy as np

from pullback.numpy_api.operands import as_operand, number_or_array
from pullback.numpy_api.shapes import astype
from pullback.numpy_api.translations import implements, refuse
from pullback.rules import elementwise as e
from pullback.rules import logic, rounding
from pullback.rules.trigonometric import arctan2, sin


def positive(x: Any) -> Any:
    """A traced value is never written to: it is its own copy."""
    if as_operand(x).dtype.kind == "b":
        raise TypeError("numpy.positive is not for truth values")
    return x


def fabs(x: Any) -> Any:
    """The modulus of real numbers."""
    dtype = as_operand(x).dtype
    if dtype.kind == "c":
        raise TypeError("numpy.fabs is not for complex numbers; use numpy.abs")
    return e.absolute(x if dtype.kind == "f" else astype(x, np.fabs(np.zeros((), dtype)).dtype))


def float_power(a: Any, b: Any) -> Any:
    """A power in double precision at least."""
    a, b = as_operand(a), as_operand(b)
    wanted = np.result_type(a.dtype, b.dtype, np.float64)
    return e.power(astype(a, wanted), astype(b, wanted))


def frexp(x: Any) -> Any:
    """Mantissa and exponent; the exponent does not move."""
    exponent = rounding.binary_exponent(x)
    return rounding.ldexp(x, -exponent), exponent


def modf(x: Any) -> Any:
    """Fraction and whole part, both with the sign of x."""
    x = as_operand(x)
    if x.dtype.kind != "f":
        x = astype(x, np.fabs(np.zeros((), x.dtype)).dtype)
    whole = rounding.trunc(x)
    fraction = e.where(logic.isinf(x), 0, x - e.where(logic.isinf(x), 0, whole))
    return e.copysign(fraction, x), whole


def sign(x: Any) -> Any:
    """Flat on the real line; of a complex number the direction, which turns."""
    if as_operand(x).dtype.kind != "c":
        return rounding.sign(x)
    modulus = e.absolute(x)
    return x / e.where(modulus == 0, 1, modulus)


@implements(np.clip)
def clip(
    a: Any,
    a_min: Any = None,
    a_max: Any = None,
    out: Any = None,
    *,
    min: Any = None,  # noqa: A002 (NumPy's own names)
    max: Any = None,  # noqa: A002 (as above)
    **keywords: Any,
) -> Any:
    """Clip numbers; at a bound the number and the bound share the cotangent, as in maximum and minimum."""
    refuse("numpy.clip", out=out, **keywords)
    lower, upper = a_min if min is None else min, a_max if max is None else max
    if as_operand(a).dtype.kind in "iu":  # a bound that no number of the dtype passes may be none of the dtype
        limits = np.iinfo(as_operand(a).dtype)
        lower = None if type(lower) is int and lower <= limits.min else lower
        upper = None if type(upper) is int and upper >= limits.max else upper
    raised = a if lower is None else e.maximum(number_or_array(a), number_or_array(lower))
    return raised if upper is None else e.minimum(raised, number_or_array(upper))


@implements(np.round, np.around)
def round_(a: Any, decimals: int = 0, out: Any = None) -> Any:
    refuse("numpy.round", out=out)
    return rounding.round_(a, decimals=int(decimals))


@implements(np.fix)
def fix(x: Any, out: Any = None) -> Any:
    refuse("numpy.fix", out=out)
    return rounding.trunc(x)


@implements(np.nan_to_num)
def nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    """Replaced elements are constants: no cotangent goes to them. The parts of a complex number are replaced by themselves."""
    del copy
    if x.dtype.kind not in "fc":
        return x
    if x.dtype.kind == "c":
        re, im = (nan_to_num(part(x), nan=nan, posinf=posinf, neginf=neginf) for part in (np.real, np.imag))
        return re + 1j * im
    largest = np.finfo(x.dtype)
    x = e.where(logic.isnan(x), nan, x)
    high, low = largest.max if posinf is None else posinf, largest.min if neginf is None else neginf
    return e.where(logic.equal(x, np.inf), high, e.where(logic.equal(x, -np.inf), low, x))


_SINC_TERMS = 12
"""With (pi x)**2 below 1/4 the twelfth term is below 1e-32, and its fourth derivative still below 1e-16."""


@implements(np.sinc)
def sinc(x: Any) -> Any:
    """Near zero by its power series, whose derivatives of every order are right where sin(t)/t is 0/0."""
    t = x * pi
    small = logic.less(e.absolute(t), 0.5)  # complex numbers are near zero by their modulus
    s = e.square(e.where(small, t, 0))
    series = 1.0
    for k in range(_SINC_TERMS, 0, -1):
        series = 1.0 - series * s / (2 * k * (2 * k + 1))
    far = e.where(small, 1, t)
    return e.where(small, series, sin(far) / far)


@implements(np.angle)
def angle(z: Any, deg: bool = False) -> Any:
    angles = arctan2(np.imag(z), np.real(z)) if iscomplexobj(z) else arctan2(0, z)
    return angles * (180 / pi) if deg else angles


@implements(np.isposinf)
def isposinf(x: Any, out: Any = None) -> Any:
    refuse("numpy.isposinf", out=out)
    return logic.equal(x, np.inf)


@implements(np.isneginf)
def isneginf(x: Any, out: Any = None) -> Any:
    refuse("numpy.isneginf", out=out)
    return logic.equal(x, -np.inf)


@implements(np.isclose)
def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    a, b = as_operand(a), as_operand(b)
    finite = logic.logical_and(logic.isfinite(a), logic.isfinite(b))
    apart = e.where(finite, a, 0) - e.where(finite, b, 0)
    near = logic.less_equal(e.absolute(apart), atol + rtol * e.absolute(b))
    close = e.where(finite, near, logic.equal(a, b))
    return logic.logical_or(close, logic.logical_and(logic.isnan(a), logic.isnan(b))) if equal_nan else close


@implements(np.allclose)
def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> bool:
    return bool(np.all(isclose(a, b, rtol, atol, equal_nan)))


@implements(np.array_equal)
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> bool:
    a, b = as_operand(a1), as_operand(a2)
    if np.shape(a) != np.shape(b):
        return False
    same = logic.equal(a, b)
    return bool(
        np.all(logic.logical_or(same, logic.logical_and(logic.isnan(a), logic.isnan(b))) if equal_nan else same)
    )


@implements(np.array_equiv)
def array_equiv(a1: Any, a2: Any) -> bool:
    try:
        return bool(np.all(logic.equal(as_operand(a1), as_operand(a2))))
    except ValueError:  # shapes that do not broadcast are not equivalent
        return False


@implements(np.iscomplexobj)
def iscomplexobj(x: Any) -> bool:
    return bool(x.dtype.kind == "c")


@implements(np.isrealobj)
def isrealobj(x: Any) -> bool:
    return not iscomplexobj(x)


@implements(np.iscomplex)
def iscomplex(x: Any) -> Any:
    return logic.not_equal(np.imag(x), 0) if iscomplexobj(x) else np.zeros(np.shape(x), bool)[()]


@implements(np.isreal)
def isreal(x: Any) -> Any:
    return logic.equal(np.imag(x), 0) if iscomplexobj(x) else np.ones(np.shape(x), bool)[()]


@implements(np.unwrap)
def unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: Any = 2 * pi) -> Any:
    """Whole periods are added: they do not move, so the derivative is the identity."""
    steps = np.diff(p, axis=axis)
    turns = rounding.floor((steps + period / 2) / period)
    at_edge = logic.logical_and(logic.equal(steps - turns * period, -period / 2), logic.greater(steps, 0))
    turns = turns - e.where(at_edge, 1, 0)
    smallest = period / 2 if discont is None else max(discont, period / 2)
    turns = e.where(logic.less(e.absolute(steps), smallest), 0, turns)
    first = [slice(None)] * np.ndim(p)
    first[axis] = slice(None, 1)
    correction = np.cumsum(np.concatenate([np.zeros_like(p[tuple(first)]), turns * period], axis=axis), axis=axis)
    return astype(p - correction, p.dtype) if p.dtype.kind == "f" else p - correction

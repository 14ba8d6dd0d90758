"""NumPy's ufuncs: the primitive of each, and the handling of their keywords and methods."""

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.errors import TracingError
from pullback.numpy_api import contractions, cumulative, reductions, sorting
from pullback.numpy_api.complex_numbers import conjugate
from pullback.numpy_api.elementwise import fabs, float_power, frexp, modf, positive, sign
from pullback.numpy_api.operands import NONE, as_operand
from pullback.numpy_api.refusals import no_rule
from pullback.numpy_api.shapes import astype, reshape
from pullback.numpy_api.special import name_with_library, special_primitive
from pullback.rules import elementwise as e
from pullback.rules import exponential as x
from pullback.rules import logic, rounding
from pullback.rules import trigonometric as t
from pullback.rules.contractions import matmul

UFUNCS: dict[Any, Callable[..., Any]] = {
    np.add: e.add,
    np.subtract: e.sub,
    np.multiply: e.mul,
    np.divide: e.div,
    np.negative: e.neg,
    np.positive: positive,
    np.power: e.power,
    np.float_power: float_power,
    np.square: e.square,
    np.reciprocal: e.reciprocal,
    np.absolute: e.absolute,
    np.fabs: fabs,
    np.maximum: e.maximum,
    np.minimum: e.minimum,
    np.fmax: e.fmax,
    np.fmin: e.fmin,
    np.copysign: e.copysign,
    np.heaviside: e.heaviside,
    np.exp: x.exp,
    np.exp2: x.exp2,
    np.expm1: x.expm1,
    np.log: x.log,
    np.log2: x.log2,
    np.log10: x.log10,
    np.log1p: x.log1p,
    np.sqrt: x.sqrt,
    np.cbrt: x.cbrt,
    np.logaddexp: x.logaddexp,
    np.logaddexp2: x.logaddexp2,
    np.sin: t.sin,
    np.cos: t.cos,
    np.tan: t.tan,
    np.sinh: t.sinh,
    np.cosh: t.cosh,
    np.tanh: t.tanh,
    np.arcsin: t.arcsin,
    np.arccos: t.arccos,
    np.arctan: t.arctan,
    np.arcsinh: t.arcsinh,
    np.arccosh: t.arccosh,
    np.arctanh: t.arctanh,
    np.arctan2: t.arctan2,
    np.hypot: t.hypot,
    np.deg2rad: t.deg2rad,
    np.radians: t.deg2rad,
    np.rad2deg: t.rad2deg,
    np.degrees: t.rad2deg,
    np.sign: sign,
    np.floor: rounding.floor,
    np.ceil: rounding.ceil,
    np.trunc: rounding.trunc,
    np.rint: rounding.rint,
    np.spacing: rounding.spacing,
    np.floor_divide: rounding.floor_divide,
    np.remainder: rounding.remainder,
    np.fmod: rounding.fmod,
    np.divmod: lambda a, b: (rounding.floor_divide(a, b), rounding.remainder(a, b)),
    np.ldexp: rounding.ldexp,
    np.frexp: frexp,
    np.modf: modf,
    np.equal: logic.equal,
    np.not_equal: logic.not_equal,
    np.less: logic.less,
    np.less_equal: logic.less_equal,
    np.greater: logic.greater,
    np.greater_equal: logic.greater_equal,
    np.isnan: logic.isnan,
    np.isinf: logic.isinf,
    np.isfinite: logic.isfinite,
    np.signbit: logic.signbit,
    np.logical_and: logic.logical_and,
    np.logical_or: logic.logical_or,
    np.logical_xor: logic.logical_xor,
    np.logical_not: logic.logical_not,
    np.bitwise_and: logic.bitwise_and,
    np.bitwise_or: logic.bitwise_or,
    np.bitwise_xor: logic.bitwise_xor,
    np.invert: logic.invert,
    np.left_shift: logic.left_shift,
    np.right_shift: logic.right_shift,
    np.bitwise_count: logic.bitwise_count,
    np.gcd: logic.gcd,
    np.lcm: logic.lcm,
    np.conjugate: conjugate,
    np.matmul: matmul,
    np.vecdot: contractions.vecdot,
}
if hasattr(np, "matvec"):  # since NumPy 2.2
    UFUNCS |= {np.matvec: contractions.matvec, np.vecmat: contractions.vecmat}

REDUCTIONS: dict[Any, Callable[..., Any]] = {
    np.add: reductions.sum_,
    np.multiply: reductions.prod,
    np.maximum: reductions.max_,
    np.minimum: reductions.min_,
    np.logical_and: reductions.all_,
    np.logical_or: reductions.any_,
    np.logaddexp: reductions.logaddexp_reduced,
    np.logaddexp2: reductions.logaddexp2_reduced,
}

ACCUMULATIONS: dict[Any, Callable[..., Any]] = {
    np.add: cumulative.cumsum,
    np.multiply: cumulative.cumprod,
    np.maximum: sorting.running_max,
    np.minimum: sorting.running_min,
}


def apply_ufunc(ufunc: Any, method: str, inputs: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Apply `ufunc(…)` or `ufunc.method(…)` to operands some of which are traced."""
    if method == "__call__":
        translation = UFUNCS.get(ufunc) or special_primitive(ufunc)
        if translation is not None:
            return _called(ufunc, translation, inputs, keywords) if keywords else translation(*inputs)
    elif method == "reduce" and ufunc in REDUCTIONS:
        return REDUCTIONS[ufunc](inputs[0], *inputs[1:] or (keywords.pop("axis", 0),), **_plain(keywords))
    elif method == "accumulate" and ufunc in ACCUMULATIONS:
        if np.ndim(inputs[0]) == 0:
            raise TypeError("cannot accumulate on a scalar")
        return ACCUMULATIONS[ufunc](inputs[0], *inputs[1:] or (keywords.pop("axis", 0),), **_plain(keywords))
    elif method == "reduceat" and ufunc is np.add:
        return cumulative.sum_segments(*inputs, **_plain(keywords))
    elif method == "outer" and ufunc in UFUNCS:
        a, b = map(as_operand, inputs)
        return apply_ufunc(ufunc, "__call__", (reshape(a, np.shape(a) + (1,) * np.ndim(b)), b), keywords)
    if method == "__call__":
        raise no_rule(ufunc, name_with_library(ufunc))
    raise no_rule((ufunc, method), f"{name_with_library(ufunc)}.{method}")


def _called(ufunc: Any, translation: Callable[..., Any], inputs: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Honour `dtype`, by which NumPy computes in another precision; refuse what writes or skips."""
    options = _plain(keywords)
    dtype = options.pop("dtype", None)
    for option in options:
        raise TracingError(
            f"{name_with_library(ufunc)}(…, {option}=…) cannot be differentiated; leave {option} out, "
            "or use pb.inplace for products into an existing array"
        )
    if dtype is None:
        return translation(*inputs)
    wanted = np.dtype(dtype)
    if wanted.kind not in "fc":
        raise TracingError(f"{name_with_library(ufunc)}(…, dtype={wanted}) cannot be differentiated; leave dtype out")
    return translation(*(astype(as_operand(operand), wanted) for operand in inputs))


_DEFAULTS = {"where": True, "casting": "same_kind", "order": "K", "subok": True, "initial": NONE}


def _plain(keywords: dict[str, Any]) -> dict[str, Any]:
    """The keywords that say something else than NumPy's default."""
    return {
        name: value
        for name, value in keywords.items()
        if value is not None and not (name in _DEFAULTS and value is _DEFAULTS[name])
    }

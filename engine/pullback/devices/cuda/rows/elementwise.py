"""Elementwise rows: PyTorch's function for each of NumPy's and SciPy's ufuncs.

Operands come in the dtypes in which the ufunc computes, and the result is cast to the dtype that it gives: PyTorch's
promotion is not NumPy's. Where the two differ in values, the row corrects it, with a comment.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pullback.core.primitive import Primitive
from pullback.rules import logic
from pullback.rules.elementwise import where

Row = Callable[..., Any]


def _sign(x: Tensor) -> Tensor:
    """PyTorch's sign of NaN is 0, and of a complex number `sgn`."""
    if x.is_complex():
        return torch.sgn(x)
    return torch.where(torch.isnan(x), x, torch.sign(x)) if x.is_floating_point() else torch.sign(x)


def _cbrt(x: Tensor) -> Tensor:
    """PyTorch has no cube root; one step of Newton's method brings that of `pow` to the last bits."""
    root = torch.copysign(torch.pow(torch.abs(x), 1 / 3), x)
    better = root - (root - x / (root * root)) / 3
    return torch.where(torch.isfinite(better), better, root)


def _exp10(x: Tensor) -> Tensor:
    return torch.pow(torch.full((), 10, dtype=x.dtype, device=x.device), x)


def _round_half_even(x: Tensor) -> Tensor:
    return torch.round(x) if x.is_floating_point() else x


def _heaviside(x: Tensor, at_zero: Tensor) -> Tensor:
    """PyTorch's takes NaN for a number below zero."""
    return torch.where(torch.isnan(x), x, torch.heaviside(x, at_zero))


def _gammaln(x: Tensor) -> Tensor:
    """PyTorch's is infinity at minus infinity, where SciPy's is minus infinity."""
    return torch.where(x == -torch.inf, x, torch.special.gammaln(x))


def _loggamma(x: Tensor) -> Tensor:
    """The principal branch, which real numbers below zero have no real value of."""
    return torch.where(x < 0, torch.nan, torch.special.gammaln(x))


def _logical(function: Row) -> Row:
    return lambda *operands: function(*(x != 0 for x in operands))


UFUNCS: dict[Any, Row] = {
    np.absolute: torch.abs, np.add: torch.add, np.arccos: torch.acos, np.arccosh: torch.acosh, np.arcsin: torch.asin,
    np.arcsinh: torch.asinh, np.arctan: torch.atan, np.arctan2: torch.atan2, np.arctanh: torch.atanh,
    np.bitwise_and: torch.bitwise_and, np.bitwise_or: torch.bitwise_or, np.bitwise_xor: torch.bitwise_xor,
    np.cbrt: _cbrt, np.ceil: torch.ceil, np.copysign: torch.copysign, np.cos: torch.cos, np.cosh: torch.cosh,
    np.deg2rad: torch.deg2rad, np.divide: torch.div, np.equal: torch.eq, np.exp: torch.exp, np.exp2: torch.exp2,
    np.expm1: torch.expm1, np.floor: torch.floor, np.floor_divide: torch.floor_divide, np.fmax: torch.fmax,
    np.fmin: torch.fmin, np.fmod: torch.fmod, np.gcd: torch.gcd, np.greater: torch.gt, np.greater_equal: torch.ge,
    np.heaviside: _heaviside, np.hypot: torch.hypot, np.invert: torch.bitwise_not, np.isfinite: torch.isfinite,
    np.isinf: torch.isinf, np.isnan: torch.isnan, np.lcm: torch.lcm, np.left_shift: torch.bitwise_left_shift,
    np.less: torch.lt, np.less_equal: torch.le, np.log: torch.log, np.log10: torch.log10, np.log1p: torch.log1p,
    np.log2: torch.log2, np.logaddexp: torch.logaddexp, np.logaddexp2: torch.logaddexp2,
    np.logical_and: _logical(torch.logical_and), np.logical_not: _logical(torch.logical_not),
    np.logical_or: _logical(torch.logical_or), np.logical_xor: _logical(torch.logical_xor),
    np.maximum: torch.maximum, np.minimum: torch.minimum, np.multiply: torch.mul, np.negative: torch.neg,
    np.not_equal: torch.ne, np.positive: torch.positive, np.power: torch.pow, np.rad2deg: torch.rad2deg,
    np.reciprocal: torch.reciprocal, np.remainder: torch.remainder, np.right_shift: torch.bitwise_right_shift,
    np.rint: _round_half_even, np.sign: _sign, np.signbit: torch.signbit, np.sin: torch.sin, np.sinh: torch.sinh,
    np.sqrt: torch.sqrt, np.square: torch.square, np.subtract: torch.sub, np.tan: torch.tan, np.tanh: torch.tanh,
    np.trunc: torch.trunc,
}  # fmt: skip

#: SciPy's, by the name of the primitive: naming SciPy's own would load it.
SPECIAL: dict[str, Row] = {
    "digamma": torch.special.digamma, "entr": torch.special.entr, "erf": torch.special.erf, "erfc": torch.special.erfc,
    "erfcx": torch.special.erfcx, "erfinv": torch.special.erfinv, "exp10": _exp10, "expit": torch.special.expit,
    "gammaln": _gammaln, "i0": torch.special.i0, "i0e": torch.special.i0e, "i1": torch.special.i1,
    "i1e": torch.special.i1e, "k0": torch.special.modified_bessel_k0, "k0e": torch.special.scaled_modified_bessel_k0,
    "k1": torch.special.modified_bessel_k1, "k1e": torch.special.scaled_modified_bessel_k1,
    "log_expit": torch.nn.functional.logsigmoid, "loggamma": _loggamma, "log_ndtr": torch.special.log_ndtr,
    "logit": torch.special.logit,
    "ndtr": torch.special.ndtr, "ndtri": torch.special.ndtri, "xlog1py": torch.special.xlog1py,
    "xlogy": torch.special.xlogy,
}  # fmt: skip

#: Functions for which PyTorch takes no complex numbers, or means something else by them.
_REAL_ONLY = frozenset(
    {np.maximum, np.minimum, np.fmax, np.fmin, np.greater, np.greater_equal, np.less, np.less_equal, np.heaviside,
     np.sign, np.cbrt, np.rint, np.floor_divide, np.remainder}
)  # fmt: skip
#: Functions that PyTorch lacks for whole numbers, or whose powers below zero it computes without an error.
_FLOATING_ONLY = frozenset({np.power, np.reciprocal, np.heaviside, np.signbit})
#: PyTorch has few functions of unsigned integers wider than a byte.
WIDE_UNSIGNED = frozenset(map(np.dtype, (np.uint16, np.uint32, np.uint64)))


def row_of(primitive: Primitive, dtypes: tuple[np.dtype[Any], ...]) -> Row | None:
    """The row of an elementwise primitive for operands of these dtypes; None where PyTorch has none."""
    ufunc = getattr(primitive, "ufunc", None)
    own = torch.where if primitive is where else SPECIAL.get(primitive.name) or UFUNCS.get(ufunc)
    kinds = {dtype.kind for dtype in dtypes}
    if own is None or not WIDE_UNSIGNED.isdisjoint(dtypes):
        return None
    if "c" in kinds and (ufunc in _REAL_ONLY or primitive.name in SPECIAL):
        return None
    if ufunc in _FLOATING_ONLY and not kinds <= {"f", "c"}:
        return None
    if primitive in (logic.left_shift, logic.right_shift, logic.invert) and "b" in kinds and ufunc is not np.invert:
        return None
    return own

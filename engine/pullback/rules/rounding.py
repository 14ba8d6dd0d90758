"""Rounding, whole quotients and what they leave over."""

import operator
from typing import Any

import numpy as np

from pullback.core.cases import cases, normal, positive, tested_in
from pullback.core.kinds import Scalar
from pullback.core.types import ArrayType
from pullback.core.zero_derivatives import ZeroDerivative

sign = Scalar("sign", np.sign, None)
floor = Scalar("floor", np.floor, None)
ceil = Scalar("ceil", np.ceil, None)
trunc = Scalar("trunc", np.trunc, None)
rint = Scalar("rint", np.rint, None)
floor_divide = Scalar("floor_divide", np.floor_divide, None, None, operator=operator.floordiv)
spacing = Scalar("spacing", np.spacing, None)

remainder = Scalar(
    "remainder",
    np.remainder,
    lambda v, a, b, y: v,
    lambda v, a, b, y: -(v * np.floor_divide(a, b)),
    operator=operator.mod,
)
fmod = Scalar("fmod", np.fmod, lambda v, a, b, y: v, lambda v, a, b, y: -(v * np.trunc(a / b)))

# The exponent is a whole number and does not move.
ldexp = Scalar("ldexp", np.ldexp, lambda v, x, exponent, y: np.ldexp(v, exponent), None)


def _binary_exponent(x: Any) -> Any:
    return np.frexp(x)[1]


binary_exponent = Scalar("binary_exponent", _binary_exponent, None)

round_: ZeroDerivative = ZeroDerivative(
    "round",
    np.round,
    lambda type_, decimals: ArrayType(type_.shape, np.round(np.zeros(1, type_.dtype), decimals).dtype),
    batch=lambda x, decimals: round_(x, decimals=decimals),
)


MOST_DECIMALS = 308


def _rounded(x: Any, *, decimals: int) -> Any:
    """Round as NumPy does: scale by a power of ten, round half to even, and scale back."""
    if np.result_type(x).kind != "f":
        raise TypeError("integers, truth values and complex numbers are rounded otherwise")
    if decimals == 0:
        return rint(x)
    if abs(decimals) > MOST_DECIMALS:
        raise TypeError(f"10 to the power {decimals} is no float64")
    power = 10.0 ** abs(decimals)
    return rint(x * power) / power if decimals > 0 else rint(x / power) * power


round_.lower = _rounded

for _rest in (remainder, fmod):
    cases(_rest, normal(3, 4), positive(4), because="random quotients are not whole, where the rest jumps")

tested_in("numpy_api/test_ufuncs.py", "ldexp")

"""Operators that compute element by element, and products."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special

from pullback.scipy import special

Counterpart = Callable[..., Any]


def _lerp(start: Any, end: Any, weight: Any) -> Any:
    return start + weight * (end - start)


def _division(x: Any, y: Any, *, rounding_mode: str | None = None) -> Any:
    rounding: dict[str | None, Counterpart] = {None: lambda q: q, "floor": np.floor, "trunc": np.trunc}
    return rounding[rounding_mode](x / y)


def _adding_product(product: Counterpart) -> Counterpart:
    def counterpart(x: Any, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
        return beta * x + alpha * product(a, b)

    return counterpart


def _sign(x: Any) -> Any:
    if np.isrealobj(x):
        return np.sign(x)
    return np.where(x == 0, 0, x / np.where(x == 0, 1, np.abs(x)))


def _polar(radius: Any, angle: Any) -> Any:
    return radius * np.exp(1j * angle)


def _logit(x: Any) -> Any:
    return np.log(x / (1 - x))


COUNTERPARTS: dict[str, Counterpart] = {
    "__getitem__": lambda x, key: x[tuple(key) if isinstance(key, list) else key],
    "__radd__": lambda x, y: y + x,
    "__rdiv__": lambda x, y: y / x,
    "__rmatmul__": lambda x, y: y @ x,
    "__rmod__": lambda x, y: y % x,
    "__rmul__": lambda x, y: y * x,
    "__rpow__": lambda x, y: y**x,
    "__rsub__": lambda x, y: y - x,
    "rsub": lambda x, y, alpha=1: y - alpha * x,
    "addcdiv": lambda x, a, b, value=1: x + value * a / b,
    "addcmul": lambda x, a, b, value=1: x + value * a * b,
    "addmm": _adding_product(np.matmul),
    "addmv": _adding_product(np.matmul),
    "addr": _adding_product(np.outer),
    "baddbmm": _adding_product(np.matmul),
    "atan2": np.arctan2,
    "bmm": np.matmul,
    "mm": np.matmul,
    "mv": np.matmul,
    "matmul": np.matmul,
    "complex": lambda a, b: a + 1j * b,
    "copysign": np.copysign,
    "dot": np.dot,
    "vdot": np.vdot,
    "inner": np.inner,
    "outer": np.outer,
    "kron": np.kron,
    "div": _division,
    "true_divide": np.divide,
    "mul": np.multiply,
    "fmax": np.fmax,
    "fmin": np.fmin,
    "hypot": np.hypot,
    "ldexp": lambda x, y: x * 2.0**y,
    "lerp": _lerp,
    "mvlgamma": lambda x, p: special.multigammaln(x, p),
    "polygamma": lambda x, n: special.polygamma(n, x),
    "special.polygamma": lambda x, n: special.polygamma(n, x),
    "fill": lambda x, value: np.zeros_like(x) + value,
    "sgn": _sign,
    "logaddexp": np.logaddexp,
    "logaddexp2": np.logaddexp2,
    "polar": _polar,
    "einsum": lambda operands, equation: np.einsum(equation, *operands),
    "tensordot": lambda a, b, dims=2: np.tensordot(a, b, dims),
    "xlogy": scipy.special.xlogy,
    "special.xlog1py": scipy.special.xlog1py,
    "cdist": lambda x, y, p=2.0, compute_mode=None: np.linalg.norm(x[..., :, None, :] - y[..., None, :, :], p, axis=-1),
    "dist": lambda x, y, p=2: np.linalg.norm(np.ravel(x - y), p),
    "trace": np.trace,
    "logit": lambda x, eps=None: _logit(x if eps is None else np.clip(x, eps, 1 - eps)),
}

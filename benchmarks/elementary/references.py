"""Reference values of the functions: NumPy's in a wider format, or composed of those.

Doubles are compared with long doubles, which have eleven bits more on x86; where they have not `is_wider` says so. Of the
error function NumPy has none: the C library's is taken, for doubles that in long double (`erfl`, `erfcl`).
"""

import ctypes
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special

Array = np.ndarray[Any, Any]
LONG = np.longdouble


def is_wider() -> bool:
    """True if long doubles have more digits than doubles."""
    return bool(np.finfo(LONG).nmant > 60)


def _softplus(x: Array) -> Array:
    return np.asarray(np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))))


def _logit(p: Array) -> Array:
    near = (p > 0.25) & (p < 0.75)
    return np.asarray(np.where(near, 2 * np.arctanh(np.where(near, 2 * p - 1, 0)), np.log(p) - np.log1p(-p)))


def _logaddexp(a: Array, b: Array) -> Array:
    sums = np.maximum(a, b) + np.log1p(np.exp(-np.abs(a - b)))
    return np.asarray(np.where(a == b, a + np.log(a.dtype.type(2)), sums))


_EXTENDED_BYTES = 16


def _of_library(name: str) -> Callable[[Array], Array]:
    """A function of the C library: in double precision as Python or SciPy has it, in long double through memory."""

    def evaluate(x: Array) -> Array:
        if x.dtype != LONG:
            return np.asarray(getattr(scipy.special, name)(x))
        return extended(name + "l", x)

    return evaluate


def extended(name: str, x: Array) -> Array:
    """A function of the C library on long doubles, called from native code: ctypes would make them doubles."""
    from pullback.backends.native.linking import load, symbols  # noqa: PLC0415 - only for these

    library = ctypes.CDLL(None)
    symbols.provide(name, lambda: ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0)
    text = f"""
declare x86_fp80 @{name}(x86_fp80)
define void @each(ptr %x, ptr %y, i64 %size) {{
entry:
  br label %loop
loop:
  %k = phi i64 [0, %entry], [%next, %loop]
  %from = getelementptr x86_fp80, ptr %x, i64 %k
  %to = getelementptr x86_fp80, ptr %y, i64 %k
  %a = load x86_fp80, ptr %from
  %b = call x86_fp80 @{name}(x86_fp80 %a)
  store x86_fp80 %b, ptr %to
  %next = add i64 %k, 1
  %again = icmp slt i64 %next, %size
  br i1 %again, label %loop, label %end
end:
  ret void
}}
"""
    loaded = load(text)
    each = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(loaded.address("each"))
    x = np.ascontiguousarray(x)
    y = np.empty_like(x)
    each(x.ctypes.data, y.ctypes.data, x.size)
    return y


def _normal_cdf(x: Array) -> Array:
    """erfc(y) / 2 at y = -x / sqrt 2, with what rounding y has lost: erfc'(y) / erfc(y) is nearly -2 y where that counts."""
    if x.dtype != LONG:
        return np.asarray(scipy.special.ndtr(x))
    # sqrt(1/2) as a number of eleven digits, whose product with a double is exact, and the rest.
    exact, more = -x * LONG(1448 / 2048), -x * LONG("0.00007553118654752440084436210484903928")
    y = exact + more
    lost = (exact - y) + more
    return np.asarray(_of_library("erfc")(y) / 2 * (1 - np.where((y > 1) & (y < 1000), 2 * y * lost, 0)))


OTHERS: dict[str, Callable[..., Array]] = {
    "exp10": lambda x: np.power(x.dtype.type(10), x),
    "expit": lambda x: 1 / (1 + np.exp(-x)),
    "softplus": _softplus,
    "log_expit": lambda x: -_softplus(-x),
    "logit": _logit,
    "logaddexp": _logaddexp,
    "erf": _of_library("erf"),
    "erfc": _of_library("erfc"),
    "ndtr": _normal_cdf,
}


def reference(name: str, *operands: Array) -> Array:
    """The function of a name, in double precision for singles and in long double for doubles."""
    with np.errstate(all="ignore"):
        wide = [x.astype(np.float64 if x.dtype == np.float32 else LONG) for x in operands]
        return np.asarray((OTHERS.get(name) or getattr(np, name))(*wide))


#: Names of rows that are the same function under another name.
SAME = {"sigmoid": "expit", "logsigmoid": "log_expit", "normal_cdf": "ndtr", "spread": "sqrt"}

#: One-argument functions whose error is measured, and the interval where most doubles are drawn from.
MEASURED: dict[str, tuple[float, float]] = {
    "exp": (-745.2, 709.8),
    "exp2": (-1075, 1024),
    "exp10": (-324, 308.3),
    "expm1": (-40, 40),
    "log": (0.0, 4.0),
    "log1p": (-1.0, 4.0),
    "log2": (0.0, 4.0),
    "log10": (0.0, 4.0),
    "sin": (-100.0, 100.0),
    "cos": (-100.0, 100.0),
    "tan": (-100.0, 100.0),
    "arcsin": (-1.0, 1.0),
    "arccos": (-1.0, 1.0),
    "arctan": (-8.0, 8.0),
    "sinh": (-20.0, 20.0),
    "cosh": (-20.0, 20.0),
    "tanh": (-4.0, 4.0),
    "arcsinh": (-20.0, 20.0),
    "arccosh": (1.0, 20.0),
    "arctanh": (-1.0, 1.0),
    "expit": (-40.0, 40.0),
    "log_expit": (-40.0, 40.0),
    "softplus": (-40.0, 40.0),
    "logit": (0.0, 1.0),
    "sqrt": (0.0, 4.0),
    "cbrt": (-8.0, 8.0),
    "erf": (-6.0, 6.0),
    "erfc": (-6.0, 27.0),
    "ndtr": (-38.0, 8.0),
}

#: Functions of two arguments whose error is measured, on a sample in any case.
MEASURED_PAIRS: tuple[str, ...] = ("power", "hypot", "arctan2")

PI_IN_EIGHTHS = math.pi / 8
EDGES = (
    *(0.0, 1.0, 2.0, 0.5, 1.5, 3.0, 10.0, 1000.0, 1e10, 2.0**30, 2.0**53, float("inf"), float("nan")),
    *(1e-8, 1e-20, 1e-38, 1.1754943508222875e-38, 1e-44, 1.4e-45, 2.2250738585072014e-308, 1e-310, 5e-324),
    *(3.4028234663852886e38, 1.7976931348623157e308, 88.72, 88.73, 89.4, 89.5, 103.9, 104.0, 150.0),
    *(709.78, 709.79, 710.47, 710.48, 745.1, 745.2, 1023.0, 1024.0, 1074.0, 1076.0, 128.0, 149.0, 151.0),
    *(0.9999999, 1.0000001, 0.9999999999999999, 1.0000000000000002, 0.7071067811865476, 1.4142135623730951),
    *(k * PI_IN_EIGHTHS for k in range(1, 17)),
    *(131072.0, 262144.5, 1e6, 2.0**40, 2.0**41, 1e22, 1e300, 38.5, 45.2, 308.3, 324.0, 5.9, 10.05, 26.5, 27.3, 38.6),
)


def edges(dtype: np.dtype[Any]) -> Array:
    """Arguments at borders, poles and changes of formula, and those without a value; of both signs."""
    with np.errstate(all="ignore"):
        positive = np.array(EDGES).astype(dtype)
    return np.concatenate([positive, -positive])

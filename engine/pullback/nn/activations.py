"""Activations under NNlib's names: `pb.nn.gelu(x)`, or as a layer's `act`, by function or by name.

Each is elementwise and keeps float16, float32 and float64; integers become what NumPy makes of them. Formulas, kinks and
error bounds: docs/activations.md.
"""

from typing import Any

import numpy as np

from pullback.core.primitive import innermost_recorder
from pullback.errors import NeedsValueError
from pullback.rules import activations as rules
from pullback.rules.trigonometric import tanh as tanh_rule


def identity(x: Any) -> Any:
    """x itself, not a copy."""
    return x


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x))."""
    return rules.sigmoid(x)


def sigmoid_fast(x: Any) -> Any:
    """sigmoid in fewer operations; 0 where exp(-x) overflows."""
    return rules.sigmoid_fast(x)


def hardsigmoid(x: Any) -> Any:
    """(x + 3) / 6 between 0 and 1. Derivative 0 at the kinks."""
    return rules.hardsigmoid(x)


def logsigmoid(x: Any) -> Any:
    """log(sigmoid(x)), without overflow."""
    return rules.logsigmoid(x)


def tanh(x: Any) -> Any:
    """NumPy's tanh."""
    return tanh_rule(x)


def tanh_fast(x: Any) -> Any:
    """tanh within 7 units in the last place, never beyond 1."""
    return rules.tanh_fast(x)


def hardtanh(x: Any) -> Any:
    """x between -1 and 1. Derivative 0 at the kinks."""
    return rules.hardtanh(x)


def relu(x: Any) -> Any:
    """max(x, 0). Derivative 0 at 0."""
    return rules.relu(x)


def relu6(x: Any) -> Any:
    """min(max(x, 0), 6). Derivative 0 at the kinks."""
    return rules.relu6(x)


def leakyrelu(x: Any, a: Any = 0.01) -> Any:
    """x above 0, a * x below. Derivative a at 0. The slope may be an array, and has a gradient."""
    return rules.leakyrelu(x, a)


def rrelu(x: Any, lo: float = 1 / 8, hi: float = 1 / 3, *, rng: np.random.Generator | None = None) -> Any:
    """leakyrelu with a slope drawn for each element between lo and hi; from `rng` if given."""
    if innermost_recorder() is not None:
        raise NeedsValueError("rrelu draws new slopes on each call, so a function with it runs on the tape")
    slopes = (np.random.default_rng() if rng is None else rng).uniform(lo, hi, np.shape(x))
    dtype = getattr(x, "dtype", np.dtype(float))
    return rules.leakyrelu(x, slopes.astype(dtype) if dtype.kind == "f" else slopes)


def trelu(x: Any, theta: Any = 1.0) -> Any:
    """x above the threshold, else 0. Derivative 0 at the threshold."""
    return rules.trelu(x, theta)


def elu(x: Any, a: Any = 1.0) -> Any:
    """x above 0, a * expm1(x) below. Derivative 1 at 0."""
    return rules.elu(x, a)


def celu(x: Any, a: Any = 1.0) -> Any:
    """x above 0, a * expm1(x / a) below."""
    return rules.celu(x, a)


def selu(x: Any) -> Any:
    """The self-normalizing elu: scale * elu(x, alpha). Derivative scale * alpha at 0."""
    return rules.selu(x)


def gelu(x: Any) -> Any:
    """gelu_tanh, as in NNlib."""
    return rules.gelu_tanh(x)


def gelu_tanh(x: Any) -> Any:
    """x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))) / 2."""
    return rules.gelu_tanh(x)


def gelu_sigmoid(x: Any) -> Any:
    """x * sigmoid(1.702 * x)."""
    return rules.gelu_sigmoid(x)


def gelu_erf(x: Any) -> Any:
    """x times the normal distribution function; the exact gelu."""
    return rules.gelu_erf(x)


def swish(x: Any) -> Any:
    """x * sigmoid(x), also called silu."""
    return rules.swish(x)


def hardswish(x: Any) -> Any:
    """x * hardsigmoid(x). Derivative 0 at -3 and 1 at 3."""
    return rules.hardswish(x)


def lisht(x: Any) -> Any:
    """x * tanh(x)."""
    return rules.lisht(x)


def mish(x: Any) -> Any:
    """x * tanh(softplus(x))."""
    return rules.mish(x)


def softplus(x: Any) -> Any:
    """log(1 + exp(x)), without overflow."""
    return rules.softplus(x)


def softsign(x: Any) -> Any:
    """x / (1 + |x|)."""
    return rules.softsign(x)


def softshrink(x: Any, lam: Any = 0.5) -> Any:
    """x moved towards 0 by lam, 0 within lam of it. Derivative 0 at the kinks."""
    return rules.softshrink(x, lam)


def tanhshrink(x: Any) -> Any:
    """x - tanh(x)."""
    return rules.tanhshrink(x)


def logcosh(x: Any) -> Any:
    """log(cosh(x)), without overflow."""
    return rules.logcosh(x)

"""scipy.special for traced values: the functions that are no ufuncs. The ufuncs are SciPy's own.

import pullback.scipy.special as special
pb.grad(lambda x: special.logsumexp(x))(x)   # the softmax of x
"""

from typing import Any

import numpy as np

from pullback.core.primitive import TracedValue
from pullback.errors import NoRuleError, TracingError
from pullback.namespaces import the_rest_of
from pullback.numpy.creation import asarray
from pullback.rules.activations import softplus as _softplus
from pullback.rules.constants import stop
from pullback.rules.special import gammas
from pullback.scipy.stand_ins import stands_in_for

_in_scipy = stands_in_for("scipy.special")


# --- sums of exponentials -------------------------------------------------------------------------------------------
@_in_scipy
def logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False) -> Any:
    """Logarithm of the sum of exponentials, log(sum(b * exp(a))), without overflow."""
    a, shift = _shifted(a, axis)
    terms = np.exp(a - shift) if b is None else asarray(b) * np.exp(a - shift)
    total = np.sum(terms, axis=axis, keepdims=True)
    if return_sign and total.dtype.kind == "c":
        raise NoRuleError("logsumexp(…, return_sign=True) of complex values has no rule; take the logarithm's parts")
    y = np.log(np.abs(total) if return_sign else total) + shift
    sign = np.sign(total) if return_sign else None
    if not keepdims:
        y, sign = _squeezed(y, axis), None if sign is None else _squeezed(sign, axis)
    return (y, sign) if return_sign else y


@_in_scipy
def softmax(x: Any, axis: Any = None) -> Any:
    """Exponentials divided by their sum."""
    x, shift = _shifted(x, axis)
    exponentials = np.exp(x - shift)
    return exponentials / np.sum(exponentials, axis=axis, keepdims=True)


@_in_scipy
def log_softmax(x: Any, axis: Any = None) -> Any:
    """Logarithm of the softmax, without underflow."""
    x, shift = _shifted(x, axis)
    moved = x - shift
    return moved - np.log(np.sum(np.exp(moved), axis=axis, keepdims=True))


def _shifted(a: Any, axis: Any) -> tuple[Any, Any]:
    """The operand, and its largest finite value along the axes as a constant: no result depends on what is taken off."""
    a = asarray(a)
    if a.dtype.kind in "biu":
        a = a.astype(np.float64)
    largest = np.max(np.real(a) if a.dtype.kind == "c" else a, axis=axis, keepdims=True)
    return a, stop(np.where(np.isfinite(largest), largest, 0))


def _squeezed(y: Any, axis: Any) -> Any:
    return np.reshape(y, ()) if axis is None else np.squeeze(y, axis=axis)


# --- the gamma family -----------------------------------------------------------------------------------------------
@_in_scipy
def polygamma(n: Any, x: Any) -> Any:
    """The n-th derivative of digamma, by x."""
    if isinstance(n, TracedValue):
        raise TracingError("polygamma has no derivative by its order; pass n as a plain integer")
    return gammas.polygamma(np.asarray(n), asarray(x))


@_in_scipy
def multigammaln(a: Any, d: Any) -> Any:
    """Logarithm of the multivariate gamma function of dimension d."""
    a = asarray(a)
    halves = np.arange(int(d)) / 2
    return d * (d - 1) / 4 * np.log(np.pi) + np.sum(gammas.gammaln(np.expand_dims(a, -1) - halves), axis=-1)


@_in_scipy
def zeta(x: Any, q: Any = None, out: Any = None) -> Any:
    """The Hurwitz zeta function, by q."""
    if q is None or out is not None:
        raise NoRuleError("zeta(x, q) is differentiated by q; the Riemann zeta function and out have no rule")
    return gammas.zeta(x, q)


# --- others ---------------------------------------------------------------------------------------------------------
def softplus(x: Any) -> Any:
    """log(1 + exp(x)), without overflow."""
    return _softplus(asarray(x))  # younger in SciPy than the oldest one that will do


__getattr__, __dir__ = the_rest_of("scipy.special", __name__)

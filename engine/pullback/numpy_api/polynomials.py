"""Polynomials by their coefficients, the highest first; straight lines between points."""

from typing import Any

import numpy as np

from pullback.errors import TracingError
from pullback.numpy_api.contractions import convolve
from pullback.numpy_api.joining import concatenate
from pullback.numpy_api.operands import as_operand
from pullback.numpy_api.selecting import take
from pullback.numpy_api.shapes import astype, atleast_1d, broadcast_to, reshape
from pullback.numpy_api.translations import implements, refuse
from pullback.rules import elementwise, logic
from pullback.rules.exponential import sqrt


@implements(np.vander)
def vander(x: Any, N: Any = None, increasing: bool = False) -> Any:  # noqa: N803 (NumPy's name)
    x = as_operand(x)
    x = astype(x, np.promote_types(x.dtype, int))  # float32 becomes float64, as in NumPy
    columns = np.size(x) if N is None else int(N)
    if columns == 0:
        return np.zeros((np.size(x), 0), x.dtype)
    powers = [np.ones(np.size(x), x.dtype)]
    for _ in range(columns - 1):
        powers.append(powers[-1] * x)
    return np.stack(powers if increasing else powers[::-1], axis=1)


@implements(np.polyval)
def polyval(p: Any, x: Any) -> Any:
    p = as_operand(p)
    value = np.zeros(np.shape(x), np.result_type(p.dtype, as_operand(x).dtype))[()]
    for coefficient in (p[i] for i in range(np.shape(p)[0])):
        value = value * x + coefficient
    return value


@implements(np.polyadd)
def polyadd(a1: Any, a2: Any) -> Any:
    a, b = _of_one_degree(a1, a2)
    return a + b


@implements(np.polysub)
def polysub(a1: Any, a2: Any) -> Any:
    a, b = _of_one_degree(a1, a2)
    return a - b


def _of_one_degree(a1: Any, a2: Any) -> tuple[Any, Any]:
    a, b = atleast_1d(as_operand(a1), as_operand(a2))
    longest = max(np.size(a), np.size(b))
    return _lengthened(a, longest), _lengthened(b, longest)


def _lengthened(a: Any, length: int) -> Any:
    missing = length - np.size(a)
    return concatenate([np.zeros(missing, a.dtype), a]) if missing else a


@implements(np.polymul)
def polymul(a1: Any, a2: Any) -> Any:
    return convolve(*atleast_1d(as_operand(a1), as_operand(a2)))


@implements(np.polyder)
def polyder(p: Any, m: int = 1) -> Any:
    if m < 0:
        raise ValueError("numpy.polyder: the order of the derivative must not be negative")
    for _ in range(m):
        p = p[:-1] * np.arange(np.size(p) - 1, 0, -1)
    return p


@implements(np.polyint)
def polyint(p: Any, m: int = 1, k: Any = None) -> Any:
    if m < 0:
        raise ValueError("numpy.polyint: the order of the integral must not be negative")
    constants = np.zeros(m) if k is None else broadcast_to(atleast_1d(as_operand(k)), (m,))
    p = as_operand(p)
    for order in range(m):
        p = concatenate([p / np.arange(np.size(p), 0, -1), reshape(constants[order], (1,))])
    return p


@implements(np.poly)
def poly(seq_of_zeros: Any) -> Any:
    zeros = as_operand(seq_of_zeros)
    zeros = astype(zeros, np.dtype(np.mintypecode(zeros.dtype.char)))
    if np.ndim(zeros) != 1:
        raise TracingError("numpy.poly of a matrix has no rule in this engine; give its eigenvalues")
    coefficients: Any = np.ones(1, zeros.dtype)
    for place in range(np.size(zeros)):
        longer = concatenate([coefficients, np.zeros(1, zeros.dtype)])
        coefficients = longer - concatenate([np.zeros(1, zeros.dtype), coefficients * zeros[place]])
    return coefficients


@implements(np.polyfit)
def polyfit(x: Any, y: Any, deg: int, rcond: Any = None, full: bool = False, w: Any = None, cov: Any = False) -> Any:
    refuse("numpy.polyfit", full=full or None, cov=cov or None)
    x, y = as_operand(x) + 0.0, as_operand(y) + 0.0
    left = vander(x, int(deg) + 1)
    if w is not None:
        weights = as_operand(w) + 0.0
        left = left * reshape(weights, (np.size(weights), 1))
        y = y * (weights if np.ndim(y) == 1 else reshape(weights, (np.size(weights), 1)))
    scale = sqrt(np.sum(left * left, axis=0))  # columns of one length, as NumPy does: the system is better conditioned
    cut = np.size(x) * np.finfo(x.dtype).eps if rcond is None else rcond
    solution = np.linalg.lstsq(left / scale, y, cut)[0]
    return (solution.T / scale).T


@implements(np.interp)
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """Straight lines between the points; which piece x falls on is flat, so kinks belong to the right-hand piece."""
    x, xp, fp = as_operand(x), as_operand(xp), as_operand(fp)
    refuse("numpy.interp", period=period)
    if "c" in (x.dtype.kind, xp.dtype.kind):
        raise TypeError("numpy.interp: x and xp may not be complex")
    x, xp = astype(x, np.float64), astype(xp, np.float64)
    fp = astype(fp, np.result_type(fp.dtype, np.float64))
    if np.size(xp) == 1:
        line = broadcast_to(fp[0], np.shape(x)) + 0.0 * x
    else:
        piece = np.searchsorted(xp, x, side="right") - 1
        piece = np.minimum(np.maximum(piece, 0), np.size(xp) - 2)
        start, end = take(xp, piece), take(xp, piece + 1)  # numpy.take asks its first operand alone
        low, high = take(fp, piece), take(fp, piece + 1)
        width = end - start
        is_step = width == 0  # at the end, whose last point counts
        share = (x - start) / elementwise.where(is_step, 1.0, width) + is_step
        rise = high - low
        line = low + rise * share
        # Beside an infinite point the line is computed from either end, and a point itself is kept.
        endless = logic.logical_not(logic.isfinite(rise))
        line = elementwise.where(endless & (line != line), high - rise * (1.0 - share), line)  # noqa: PLR0124 (NaN)
        line = elementwise.where(endless & ((share == 0) | (low == high)), low, line)
        line = elementwise.where(endless & (share == 1), high, line)
    below = fp[0] if left is None else left
    above = fp[-1] if right is None else right
    return elementwise.where(x < xp[0], below, elementwise.where(x > xp[-1], above, line))

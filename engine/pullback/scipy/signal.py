"""scipy.signal for traced values: convolution and correlation.

from pullback.scipy import signal
pb.grad(lambda kernel: np.sum(signal.convolve(image, kernel, mode="valid") ** 2))(kernel)
"""

from typing import Any

import numpy as np

from pullback.errors import TracingError
from pullback.namespaces import the_rest_of
from pullback.numpy.creation import asarray
from pullback.rules.matrices import conjugate
from pullback.rules.scipy_linalg.convolution import convolve as _full_or_valid
from pullback.scipy.stand_ins import stands_in_for

_in_scipy = stands_in_for("scipy.signal")


@_in_scipy
def convolve(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    """Convolution of two arrays with as many axes."""
    a, b = asarray(in1), asarray(in2)
    if np.ndim(a) != np.ndim(b):
        raise ValueError(f"convolve takes arrays with as many axes, not shapes {np.shape(a)} and {np.shape(b)}")
    if np.ndim(a) == 0:
        return a * b
    if mode == "full":
        return _full_or_valid(a, b, mode="full")
    if mode == "same":
        key = tuple(_centered(m, n) for m, n in zip(np.shape(a), np.shape(b), strict=True))
        return _full_or_valid(a, b, mode="full")[key]
    if mode != "valid":
        raise ValueError(f"convolve: mode={mode!r} is unknown; it is 'full', 'same' or 'valid'")
    if all(m >= n for m, n in zip(np.shape(a), np.shape(b), strict=True)):
        return _full_or_valid(a, b, mode="valid")
    if all(m <= n for m, n in zip(np.shape(a), np.shape(b), strict=True)):
        return _full_or_valid(b, a, mode="valid")
    raise ValueError(f"convolve, mode='valid': neither of {np.shape(a)} and {np.shape(b)} holds the other")


def _centered(length: int, other: int) -> slice:
    start = (other - 1) // 2
    return slice(start, start + length)


@_in_scipy
def fftconvolve(in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> Any:
    """Convolution of two arrays with as many axes; the derivative does not depend on how it is computed."""
    if axes is not None:
        raise TracingError("fftconvolve(…, axes=…) has no rule; leave axes out, or use the transforms of numpy.fft")
    return convolve(in1, in2, mode)


@_in_scipy
def correlate(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    """Correlation of two arrays with as many axes: convolution with the second reversed and conjugated."""
    a, b = asarray(in1), asarray(in2)
    if mode == "valid" and any(m < n for m, n in zip(np.shape(a), np.shape(b), strict=True)):
        raise TracingError("correlate, mode='valid', has a rule where the first array holds the second; swap them")
    return convolve(a, np.flip(conjugate(b)), mode, method)


__getattr__, __dir__ = the_rest_of("scipy.signal", __name__)

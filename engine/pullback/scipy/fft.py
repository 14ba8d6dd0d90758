"""scipy.fft for traced values: the Fourier transforms of numpy.fft under SciPy's signatures, and those SciPy has alone.

    from pullback.scipy import fft
    pb.grad(lambda x: np.sum(np.abs(fft.fft(x)) ** 2))(x)

`overwrite_x` and `workers` are accepted and mean nothing; cosine and sine transforms have no rule.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.errors import TracingError
from pullback.namespaces import the_rest_of
from pullback.numpy.creation import asarray
from pullback.numpy_api import fft as numpy_fft
from pullback.scipy.stand_ins import stands_in_for

_in_scipy = stands_in_for("scipy.fft")


def _along_one_axis(name: str, transform: Callable[..., Any]) -> Callable[..., Any]:
    def transformed(
        x: Any,
        n: Any = None,
        axis: int = -1,
        norm: Any = None,
        overwrite_x: bool = False,
        workers: Any = None,
        **plan: Any,
    ) -> Any:
        _refuse_plan(plan)
        return transform(asarray(x), n, axis, norm)

    return _named(name, transformed)


def _along_axes(name: str, transform: Callable[..., Any], default: Any) -> Callable[..., Any]:
    def transformed(
        x: Any,
        s: Any = None,
        axes: Any = default,
        norm: Any = None,
        overwrite_x: bool = False,
        workers: Any = None,
        **plan: Any,
    ) -> Any:
        _refuse_plan(plan)
        return transform(asarray(x), s, axes, norm)

    return _named(name, transformed)


def _refuse_plan(plan: dict[str, Any]) -> None:
    if any(value is not None for value in plan.values()):
        raise TracingError(f"scipy.fft: {', '.join(plan)} cannot be used with traced values; leave it out")


def _named(name: str, transformed: Callable[..., Any]) -> Callable[..., Any]:
    transformed.__name__ = transformed.__qualname__ = name
    transformed.__doc__ = f"`scipy.fft.{name}`, for a value that may be traced."
    return _in_scipy(transformed)


def _hfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None) -> Any:
    """Transform of an array whose reversal is its conjugate: real."""
    return numpy_fft.irfftn(np.conjugate(a), s, axes, numpy_fft.opposite_norm(norm))


def _ihfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None) -> Any:
    """Half of the inverse transform of a real array."""
    return np.conjugate(numpy_fft.rfftn(a, s, axes, numpy_fft.opposite_norm(norm)))


fft = _along_one_axis("fft", numpy_fft.fft)
ifft = _along_one_axis("ifft", numpy_fft.ifft)
rfft = _along_one_axis("rfft", numpy_fft.rfft)
irfft = _along_one_axis("irfft", numpy_fft.irfft)
hfft = _along_one_axis("hfft", numpy_fft.hfft)
ihfft = _along_one_axis("ihfft", numpy_fft.ihfft)
fft2 = _along_axes("fft2", numpy_fft.fft2, (-2, -1))
ifft2 = _along_axes("ifft2", numpy_fft.ifft2, (-2, -1))
rfft2 = _along_axes("rfft2", numpy_fft.rfft2, (-2, -1))
irfft2 = _along_axes("irfft2", numpy_fft.irfft2, (-2, -1))
hfft2 = _along_axes("hfft2", _hfftn, (-2, -1))
ihfft2 = _along_axes("ihfft2", _ihfftn, (-2, -1))
fftn = _along_axes("fftn", numpy_fft.fftn, None)
ifftn = _along_axes("ifftn", numpy_fft.ifftn, None)
rfftn = _along_axes("rfftn", numpy_fft.rfftn, None)
irfftn = _along_axes("irfftn", numpy_fft.irfftn, None)
hfftn = _along_axes("hfftn", _hfftn, None)
ihfftn = _along_axes("ihfftn", _ihfftn, None)


@_in_scipy
def fftshift(x: Any, axes: Any = None) -> Any:
    """Move the zero frequency to the middle."""
    return numpy_fft.fftshift(asarray(x), axes)


@_in_scipy
def ifftshift(x: Any, axes: Any = None) -> Any:
    """Undo `fftshift`."""
    return numpy_fft.ifftshift(asarray(x), axes)


__getattr__, __dir__ = the_rest_of("scipy.fft", __name__)

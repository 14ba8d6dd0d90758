"""numpy.fft: padding, cutting and the order of axes; the transforms are in `rules.fourier`."""

import operator
from typing import Any

import numpy as np

from pullback.numpy_api.operands import as_operand, normalized_axis
from pullback.numpy_api.translations import implements, refuse
from pullback.rules import fourier
from pullback.rules.fourier import OTHER_NORM
from pullback.rules.indexing import index, scatter


# --- one axis -------------------------------------------------------------------------------------------------------
@implements(np.fft.fft)
def fft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    return _complex("fft", a, n, axis, norm, out, inverse=False)


@implements(np.fft.ifft)
def ifft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    return _complex("ifft", a, n, axis, norm, out, inverse=True)


def _complex(function: str, a: Any, n: Any, axis: int, norm: Any, out: Any, *, inverse: bool) -> Any:
    refuse(f"numpy.fft.{function}", out=out)
    place = normalized_axis(axis, np.ndim(a))
    return fourier.fft(_fitted(a, n, place), axes=(place,), inverse=inverse, norm=_norm(norm))


@implements(np.fft.rfft)
def rfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    refuse("numpy.fft.rfft", out=out)
    if as_operand(a).dtype.kind == "c":
        raise TypeError("numpy.fft.rfft takes real values; use numpy.fft.fft")
    place = normalized_axis(axis, np.ndim(a))
    return fourier.rfft(_fitted(a, n, place), axis=place, norm=_norm(norm))


@implements(np.fft.irfft)
def irfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    refuse("numpy.fft.irfft", out=out)
    place = normalized_axis(axis, np.ndim(a))
    length = _positive(2 * (np.shape(a)[place] - 1) if n is None else n)
    fitted = _fitted(a, fourier.lines(length), place)
    return fourier.irfft(fitted, n=length, axis=place, norm=_norm(norm))


@implements(np.fft.hfft)
def hfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    return irfft(np.conjugate(a), n, axis, opposite_norm(norm), out)


@implements(np.fft.ihfft)
def ihfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    return np.conjugate(rfft(a, n, axis, opposite_norm(norm), out))


# --- several axes ---------------------------------------------------------------------------------------------------
@implements(np.fft.fftn)
def fftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
    return _complex_over("fftn", a, s, axes, norm, out, inverse=False)


@implements(np.fft.ifftn)
def ifftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
    return _complex_over("ifftn", a, s, axes, norm, out, inverse=True)


@implements(np.fft.fft2)
def fft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> Any:
    return _complex_over("fft2", a, s, axes, norm, out, inverse=False)


@implements(np.fft.ifft2)
def ifft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> Any:
    return _complex_over("ifft2", a, s, axes, norm, out, inverse=True)


def _complex_over(function: str, a: Any, s: Any, axes: Any, norm: Any, out: Any, *, inverse: bool) -> Any:
    refuse(f"numpy.fft.{function}", out=out)
    lengths, places = _lengths_and_places(a, s, axes)
    if len(set(places)) < len(places):  # an axis named twice is transformed twice, from the last one on
        for length, place in zip(reversed(lengths), reversed(places), strict=True):
            a = _complex(function, a, length, place, norm, None, inverse=inverse)
        return a
    for length, place in zip(lengths, places, strict=True):
        a = _fitted(a, length, place)
    return fourier.fft(a, axes=places, inverse=inverse, norm=_norm(norm))


@implements(np.fft.rfftn)
def rfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
    refuse("numpy.fft.rfftn", out=out)
    lengths, places = _lengths_and_places(a, s, axes)
    y = rfft(a, lengths[-1], places[-1], norm)
    return _complex_over("rfftn", y, lengths[:-1], places[:-1], norm, None, inverse=False) if places[:-1] else y


@implements(np.fft.rfft2)
def rfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> Any:
    return rfftn(a, s, axes, norm, out)


@implements(np.fft.irfftn)
def irfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
    refuse("numpy.fft.irfftn", out=out)
    lengths, places = _lengths_and_places(a, s, axes)
    last = None if s is None else lengths[-1]
    if places[:-1]:
        a = _complex_over("irfftn", a, lengths[:-1], places[:-1], norm, None, inverse=True)
    return irfft(a, last, places[-1], norm)


@implements(np.fft.irfft2)
def irfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> Any:
    return irfftn(a, s, axes, norm, out)


# --- shifts ---------------------------------------------------------------------------------------------------------
@implements(np.fft.fftshift)
def fftshift(x: Any, axes: Any = None) -> Any:
    return _shifted(x, axes, lambda length: length // 2)


@implements(np.fft.ifftshift)
def ifftshift(x: Any, axes: Any = None) -> Any:
    return _shifted(x, axes, lambda length: -(length // 2))


def _shifted(x: Any, axes: Any, shift: Any) -> Any:
    chosen = range(np.ndim(x)) if axes is None else axes if isinstance(axes, tuple | list) else (axes,)
    places = tuple(normalized_axis(axis, np.ndim(x)) for axis in chosen)
    return np.roll(x, tuple(shift(np.shape(x)[place]) for place in places), places)


# --- arguments ------------------------------------------------------------------------------------------------------
def _norm(norm: Any) -> str:
    if norm is None:
        return "backward"
    if norm not in OTHER_NORM:
        raise ValueError(f"numpy.fft: norm={norm!r} is unknown; it is 'backward', 'ortho' or 'forward'")
    return str(norm)


def opposite_norm(norm: Any) -> str:
    """The norm of the transform in the other direction, for Hermitian transforms are inverse real ones and back."""
    return OTHER_NORM[_norm(norm)]


def _lengths_and_places(a: Any, s: Any, axes: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Length and axis of each transform; a length of -1 is that of the array."""
    shape = np.shape(a)
    if axes is None:
        axes = range(len(shape)) if s is None else range(len(shape) - len(s), len(shape))
    places = tuple(normalized_axis(axis, len(shape)) for axis in axes)
    if s is None:
        return tuple(shape[place] for place in places), places
    if len(s) != len(places):
        raise ValueError(f"numpy.fft: {len(s)} lengths for {len(places)} axes")
    lengths = (operator.index(length) for length in s)
    return tuple(shape[p] if length == -1 else length for length, p in zip(lengths, places, strict=True)), places


def _positive(n: Any) -> int:
    length = operator.index(n)
    if length < 1:
        raise ValueError(f"numpy.fft: {length} samples were requested; at least one is needed")
    return length


def _fitted(a: Any, n: Any, place: int) -> Any:
    """Cut or filled up with zeros to a length along an axis."""
    a = as_operand(a)
    shape = np.shape(a)
    if n is None or operator.index(n) == shape[place]:
        return a
    length = _positive(n)
    key = (*[slice(None)] * place, slice(min(length, shape[place])), *[slice(None)] * (len(shape) - place - 1))
    if length < shape[place]:
        return index(a, key=key)
    return scatter(a, key=key, shape=(*shape[:place], length, *shape[place + 1 :]), dtype=a.dtype)

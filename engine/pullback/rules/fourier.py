"""Discrete Fourier transforms of full length; padding and cutting are done before (`numpy_api.fft`).

The matrix of a complex transform is symmetric, so each is its own transpose. A real transform keeps the half of the
spectrum that determines the other: its transpose is the inverse real transform of the cotangent, where every line but
the first, and the last of an even length, stands for two and has to be counted once. Norms name where 1/n goes;
the transpose exchanges "backward" and "forward" where it exchanges directions.
"""

from typing import Any

import numpy as np

from pullback.core.cases import cases, normal, tested_in
from pullback.core.kinds import Linear, cast
from pullback.core.types import ArrayType, dtype_of

OTHER_NORM = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


def complex_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Dtype of the spectrum of values of a dtype."""
    return np.fft.fft(np.ones(1, dtype)).dtype


def lines(n: int) -> int:
    """Lines of the half spectrum of n real samples."""
    return n // 2 + 1


def _multiplicities(n: int, axis: int, ndim: int, dtype: np.dtype[Any]) -> Any:
    """The number of lines of the full spectrum that each line of the half spectrum stands for, along one axis."""
    counts = np.full(lines(n), 2, dtype)
    counts[0] = 1
    if n % 2 == 0:
        counts[-1] = 1
    return counts.reshape([-1 if place == axis else 1 for place in range(ndim)])


def with_length(shape: tuple[int, ...], axis: int, n: int) -> tuple[int, ...]:
    """A shape with another length along one axis."""
    return (*shape[:axis], n, *shape[axis + 1 :])


def _fft(x: Any, *, axes: tuple[int, ...], inverse: bool, norm: Any) -> Any:
    return (np.fft.ifftn if inverse else np.fft.fftn)(x, axes=axes, norm=norm)


def _rfft_transpose(v: Any, x: Any, *, axis: int, norm: str) -> Any:
    n = np.shape(x)[axis]
    counts = _multiplicities(n, axis, np.ndim(x), dtype_of(x))
    return cast(irfft(np.conjugate(v) / counts, n=n, axis=axis, norm=OTHER_NORM[norm]), dtype_of(x))


def _irfft_transpose(v: Any, x: Any, *, n: int, axis: int, norm: str) -> Any:
    counts = _multiplicities(n, axis, np.ndim(x), dtype_of(v))
    return cast(np.conjugate(rfft(v, axis=axis, norm=OTHER_NORM[norm])) * counts, dtype_of(x))


def _irfft_type(type_: ArrayType, *, n: int, axis: int, norm: str) -> ArrayType:
    dtype = np.fft.irfft(np.ones(2, type_.dtype), 2).dtype
    return ArrayType(with_length(type_.shape, axis, n), dtype)


def transform_flops(types: Any) -> int:
    """About how many operations a transform takes, of the operands' size."""
    size: int = types[0].size
    return 5 * size * max(1, size.bit_length())


fft: Linear = Linear(
    "fft",
    _fft,
    lambda type_, axes, inverse, norm: ArrayType(type_.shape, complex_dtype(type_.dtype)),
    lambda v, x, axes, inverse, norm: cast(fft(v, axes=axes, inverse=inverse, norm=norm), dtype_of(x)),
    flops=transform_flops,
    batch=lambda x, axes, inverse, norm: fft(x, axes=tuple(axis + 1 for axis in axes), inverse=inverse, norm=norm),
)
rfft: Linear = Linear(
    "rfft",
    lambda x, axis, norm: np.fft.rfft(x, axis=axis, norm=norm),
    lambda type_, axis, norm: ArrayType(
        with_length(type_.shape, axis, lines(type_.shape[axis])), complex_dtype(type_.dtype)
    ),
    _rfft_transpose,
    flops=transform_flops,
    batch=lambda x, axis, norm: rfft(x, axis=axis + 1, norm=norm),
)
irfft: Linear = Linear(
    "irfft",
    lambda x, n, axis, norm: np.fft.irfft(x, n, axis=axis, norm=norm),
    _irfft_type,
    _irfft_transpose,
    flops=transform_flops,
    batch=lambda x, n, axis, norm: irfft(x, n=n, axis=axis + 1, norm=norm),
)

for _n in (5, 6):
    for _norm in ("backward", "ortho", "forward"):
        cases(irfft, normal(2, lines(_n)), n=_n, axis=1, norm=_norm, because="real lines, an odd and an even length")

tested_in("numpy_api/test_fft.py", "fft", "rfft")

"""Rows of linear algebra and of Fourier transforms, by the libraries that PyTorch brings.

Where NumPy's and SciPy's functions refuse a singular matrix these do, with their error: that is a look at the device, so they are
in no CUDA graph.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pullback.core.types import ArrayType, Shape
from pullback.devices.cuda.rows.table import row


def _refusing(function: Callable[..., Tensor], message: str) -> Callable[..., Tensor]:
    """A function of matrices in the dtype of the result, with NumPy's error in place of PyTorch's."""

    def run(_result: ArrayType, dtype: torch.dtype, *operands: Tensor, **params: Any) -> Tensor:
        try:
            return function(*(x.to(dtype) for x in operands), **params)
        except torch.linalg.LinAlgError as error:
            raise np.linalg.LinAlgError(message) from error

    return run


def _solve(a: Tensor, b: Tensor) -> Tensor:
    """Solve for matrices; PyTorch treats right sides with fewer axes as vectors if the shapes allow it."""
    return torch.linalg.solve(a, b.expand(*a.shape[: a.ndim - b.ndim], *b.shape) if b.ndim < a.ndim else b)


def _pinv(a: Tensor, *, rtol: float | None, hermitian: bool) -> Tensor:
    return torch.linalg.pinv(a, rtol=1e-15 if rtol is None else rtol, hermitian=hermitian)


row("inv")(_refusing(torch.linalg.inv, "Singular matrix"))
row("solve")(_refusing(_solve, "Singular matrix"))
row("pinv")(_refusing(_pinv, "SVD did not converge"))


@row("det")
def _det(_result: ArrayType, dtype: torch.dtype, a: Tensor) -> Tensor:
    return torch.linalg.det(a.to(dtype))


@row("expm")
def _expm(_result: ArrayType, dtype: torch.dtype, a: Tensor) -> Tensor:
    return torch.linalg.matrix_exp(a.to(dtype))


@row("solve_triangular")
def _solve_triangular(
    _result: ArrayType, dtype: torch.dtype, a: Tensor, b: Tensor, *, trans: int, lower: bool, unit_diagonal: bool
) -> Tensor:
    zeros = a.diagonal(dim1=-2, dim2=-1) == 0
    if not unit_diagonal and bool(torch.any(zeros)):
        raise np.linalg.LinAlgError(
            f"singular matrix: resolution failed at diagonal {int(torch.nonzero(zeros)[0, -1])}"
        )
    applied = (a, a.mT, a.mH)[trans].to(dtype)
    return torch.linalg.solve_triangular(applied, b.to(dtype), upper=lower == (trans > 0), unitriangular=unit_diagonal)


@row("fft")
def _fft(_result: ArrayType, dtype: torch.dtype, x: Tensor, *, axes: Shape, inverse: bool, norm: str | None) -> Tensor:
    x = x.to(dtype)
    for axis in axes:  # which may repeat, not so in PyTorch's of several axes
        x = (torch.fft.ifft if inverse else torch.fft.fft)(x, dim=axis, norm=norm)
    return x


@row("rfft", kinds="biuf")
def _rfft(_result: ArrayType, dtype: torch.dtype, x: Tensor, axis: int, norm: str) -> Tensor:
    return torch.fft.rfft(x.to(dtype.to_real()), dim=axis, norm=norm)


@row("irfft")
def _irfft(_result: ArrayType, dtype: torch.dtype, x: Tensor, n: int, axis: int, norm: str) -> Tensor:
    x = x.to(dtype.to_complex(), copy=True)
    # cuFFT takes part of the imaginary parts that these cannot have, and that NumPy drops (pytorch#154496).
    for line in (0, n // 2) if n % 2 == 0 else (0,):
        if line < x.shape[axis]:
            x.select(axis, line).imag.zero_()
    return torch.fft.irfft(x, n, dim=axis, norm=norm)

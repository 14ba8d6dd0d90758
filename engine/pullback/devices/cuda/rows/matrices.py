"""Rows of linear algebra and of Fourier transforms, by the libraries that PyTorch brings.

Where NumPy's and SciPy's functions refuse a matrix these do, with their error: that is a look at the device, so they are
in no CUDA graph. Eigenvalues ascend and singular values descend, as NumPy's; the signs of vectors are what the library finds.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pullback.core.types import ArrayType, Shape
from pullback.devices.cuda.rows.table import row


def _refusing(function: Callable[..., Any], message: str) -> Callable[..., Any]:
    """A function of matrices in the precision of the result, with NumPy's error in place of PyTorch's."""

    def run(_result: ArrayType, dtype: torch.dtype, *operands: Tensor, **params: Any) -> Any:
        try:
            return function(*(_in_precision(x, dtype) for x in operands), **params)
        except torch.linalg.LinAlgError as error:
            raise np.linalg.LinAlgError(message) from error

    return run


def _in_precision(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Operands in the dtype of the result; complex ones stay complex where the first result is real."""
    return x.to(dtype.to_complex() if x.is_complex() else dtype)


def _solve(a: Tensor, b: Tensor) -> Tensor:
    """Solve for matrices; PyTorch treats right sides with fewer axes as vectors if the shapes allow it."""
    return torch.linalg.solve(a, b.expand(*a.shape[: a.ndim - b.ndim], *b.shape) if b.ndim < a.ndim else b)


def _pinv(a: Tensor, *, rtol: float | None, hermitian: bool) -> Tensor:
    return torch.linalg.pinv(a, rtol=1e-15 if rtol is None else rtol, hermitian=hermitian)


def _cholesky(a: Tensor) -> Tensor:
    """The Cholesky factor; NaN if a NaN in the leading part is why it has none, as in NumPy, where PyTorch raises an error."""
    factor, info = torch.linalg.cholesky_ex(a)
    is_leading = (torch.arange(a.shape[-1], device=a.device) < info[..., None])[..., None]
    failed, is_nan = info > 0, (torch.isnan(a.tril()) & is_leading).any(dim=-1).any(dim=-1)
    if bool(torch.any(failed & ~is_nan)):
        raise torch.linalg.LinAlgError
    return torch.where((failed & is_nan)[..., None, None], torch.nan, factor).tril()


def _uplo(*, lower: bool) -> str:
    return "L" if lower else "U"


def _eigh(a: Tensor, *, lower: bool) -> tuple[Tensor, Tensor]:
    return tuple(torch.linalg.eigh(a, _uplo(lower=lower)))


def _eigvalsh(a: Tensor, *, lower: bool) -> Tensor:
    return torch.linalg.eigvalsh(a, _uplo(lower=lower))


def _svd(a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return tuple(torch.linalg.svd(a, full_matrices=False))


def _slogdet(a: Tensor) -> tuple[Tensor, Tensor]:
    """Sign and logarithm. That of a real matrix with NaN is 1 or -1, as NumPy has it: PyTorch's is 0, that of a singular matrix."""
    if a.is_complex():
        return tuple(torch.linalg.slogdet(a))
    factors, pivots, _ = torch.linalg.lu_factor_ex(a)
    diagonal = factors.diagonal(dim1=-2, dim2=-1)
    swaps = pivots != torch.arange(1, a.shape[-1] + 1, dtype=pivots.dtype, device=a.device)
    changes = torch.sum(swaps, -1) + torch.sum(diagonal < 0, -1)
    is_singular = torch.any(diagonal == 0, -1)
    sign = torch.where(is_singular, 0, 1 - 2 * (changes % 2)).to(a.dtype)
    return sign, torch.where(is_singular, -torch.inf, torch.sum(torch.log(torch.abs(diagonal)), -1))


def _cholesky_pull(factor: Tensor, v: Tensor) -> Tensor:
    """The matrix l^-T lower_half(l^T v) l^-1, made symmetric."""
    factor = factor.tril()
    inner = (factor.mT @ v).tril()
    inner.diagonal(dim1=-2, dim2=-1).mul_(0.5)
    left = torch.linalg.solve_triangular(factor.mT, inner, upper=True)
    whole = torch.linalg.solve_triangular(factor, left, upper=False, left=False)
    return (whole + whole.mT) / 2


def _adjugate(a: Tensor) -> Tensor:
    """The adjugate by singular values, each product of which omits one; NaN for a matrix that is not finite."""
    is_finite = torch.isfinite(a).all(dim=-1, keepdim=True).all(dim=-2, keepdim=True)
    u, s, vh = _svd(torch.where(is_finite, a, 0))
    if not a.shape[-1]:
        return a
    one = torch.ones_like(s[..., :1])
    before = torch.cumprod(torch.cat([one, s[..., :-1]], -1), -1)
    after = torch.cumprod(torch.cat([one, s[..., 1:].flip(-1)], -1), -1).flip(-1)
    sign = (torch.linalg.det(u) * torch.linalg.det(vh))[..., None, None]
    found = sign * ((vh.mH * (before * after)[..., None, :]) @ u.mH)
    return torch.where(is_finite, found, torch.nan)


row("cholesky")(_refusing(_cholesky, "Matrix is not positive definite"))
row("cholesky_pull", kinds="f")(_refusing(_cholesky_pull, "Singular matrix"))
row("adjugate")(_refusing(_adjugate, "SVD did not converge"))
row("eigh")(_refusing(_eigh, "Eigenvalues did not converge"))
row("eigvalsh")(_refusing(_eigvalsh, "Eigenvalues did not converge"))
row("qr")(_refusing(lambda a: tuple(torch.linalg.qr(a)), "Incorrect argument found while performing QR factorization"))
row("slogdet")(_refusing(_slogdet, "Singular matrix"))
row("svd")(_refusing(_svd, "SVD did not converge"))
row("svdvals")(_refusing(torch.linalg.svdvals, "SVD did not converge"))
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

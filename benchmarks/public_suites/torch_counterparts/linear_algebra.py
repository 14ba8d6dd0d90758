"""Decompositions, solutions and norms."""

from collections.abc import Callable
from typing import Any

import numpy as np
from benchmarks.public_suites.torch_counterparts.shapes import adjoint

Counterpart = Callable[..., Any]


def vector_norm(x: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The norm along an axis, or of all elements."""
    x = x if dtype is None else x.astype(dtype)
    if dim is None:
        return np.reshape(np.linalg.norm(np.ravel(x), ord), (1,) * np.ndim(x) if keepdim else ())
    return np.linalg.norm(x, ord, axis=tuple(dim) if isinstance(dim, list) else dim, keepdims=keepdim)


def _matrix_norm(x: Any, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: Any = None) -> Any:
    x = x if dtype is None else x.astype(dtype)
    return np.linalg.norm(x, ord, axis=tuple(dim), keepdims=keepdim)


def _pinv(x: Any, other: Any = None, *, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Any:
    if other is not None:  # a sample of a singular product
        x = x @ np.swapaxes(other, -1, -2)
    if atol is not None:
        raise NotImplementedError("atol")
    return np.linalg.pinv(x, hermitian=hermitian) if rtol is None else np.linalg.pinv(x, rtol=rtol, hermitian=hermitian)


def _solved(a: Any, b: Any) -> Any:
    return np.linalg.solve(a, b[..., None])[..., 0] if np.ndim(b) == 1 else np.linalg.solve(a, b)


COUNTERPARTS: dict[str, Counterpart] = {
    "linalg.cholesky": lambda x, *, upper=False: adjoint(np.linalg.cholesky(x)) if upper else np.linalg.cholesky(x),
    "cholesky": lambda x, upper=False: adjoint(np.linalg.cholesky(x)) if upper else np.linalg.cholesky(x),
    "linalg.cond": np.linalg.cond,
    "linalg.det": np.linalg.det,
    "logdet": lambda x: np.linalg.slogdet(x)[1],
    "linalg.eigvals": np.linalg.eigvals,
    "linalg.eigvalsh": lambda x, UPLO="L": np.linalg.eigvalsh(x, UPLO),
    "linalg.inv": np.linalg.inv,
    "linalg.inv_ex": np.linalg.inv,
    "linalg.lstsq": lambda a, b, **_: np.linalg.lstsq(a, b)[:2],
    "linalg.matrix_norm": _matrix_norm,
    "linalg.matrix_power": np.linalg.matrix_power,
    "linalg.multi_dot": np.linalg.multi_dot,
    "linalg.norm": lambda x, ord=None, dim=None, keepdim=False, **_: np.linalg.norm(
        x if ord is not None or dim is not None or np.ndim(x) == 2 else np.ravel(x),
        ord,
        tuple(dim) if isinstance(dim, list) else dim,
        keepdim,
    ),
    "linalg.pinv": _pinv,
    "pinverse": lambda x, rcond=1e-15: np.linalg.pinv(x, rcond),
    "linalg.slogdet": lambda x: tuple(np.linalg.slogdet(x)),
    "linalg.solve": lambda a, b, left=True: _solved(a, b) if left else adjoint(_solved(adjoint(a), adjoint(b))),
    "linalg.solve_ex": lambda a, b, left=True, **_: _solved(a, b),
    "linalg.svdvals": lambda x: np.linalg.svd(x, compute_uv=False),
    "linalg.vector_norm": vector_norm,
    "linalg.qr": lambda x, mode="reduced": tuple(np.linalg.qr(x, mode)),
    "qr": lambda x, some=True: tuple(np.linalg.qr(x, "reduced" if some else "complete")),
}

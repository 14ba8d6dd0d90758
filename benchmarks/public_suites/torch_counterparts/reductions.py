"""Operators that reduce, accumulate, select and sort."""

from collections.abc import Callable
from typing import Any

import numpy as np
from benchmarks.public_suites.torch_counterparts.linear_algebra import vector_norm

Counterpart = Callable[..., Any]


def _spread(function: Counterpart) -> Counterpart:
    def counterpart(
        x: Any, dim: Any = None, unbiased: bool = True, *, correction: Any = None, keepdim: bool = False
    ) -> Any:
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        ddof = correction if correction is not None else int(unbiased)
        return function(x, axis=tuple(dim) if isinstance(dim, list) else dim, ddof=ddof, keepdims=keepdim)

    return counterpart


def _extremum(function: Counterpart) -> Counterpart:
    """An extremum along one axis, of all elements, or of two arrays."""
    pairwise = {np.max: np.maximum, np.min: np.minimum}[function]

    def counterpart(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
        if dim is not None and not isinstance(dim, int):
            return pairwise(x, dim)
        return function(x) if dim is None else function(x, axis=dim, keepdims=keepdim)

    return counterpart


def _logsumexp(x: Any, dim: Any, keepdim: bool = False) -> Any:
    top = np.max(np.real(x), axis=dim if isinstance(dim, int) else tuple(dim), keepdims=True)
    summed = np.log(np.sum(np.exp(x - top), axis=dim if isinstance(dim, int) else tuple(dim), keepdims=True)) + top
    return summed if keepdim else np.squeeze(summed, axis=dim if isinstance(dim, int) else tuple(dim))


def softmax(x: Any, dim: int, *, dtype: Any = None) -> Any:
    """Shares of the exponentials along an axis."""
    x = x if dtype is None else x.astype(dtype)
    raised = np.exp(x - np.max(x, axis=dim, keepdims=True))
    return raised / np.sum(raised, axis=dim, keepdims=True)


def _log_softmax(x: Any, dim: int, *, dtype: Any = None) -> Any:
    x = x if dtype is None else x.astype(dtype)
    shifted = x - np.max(x, axis=dim, keepdims=True)
    return shifted - np.log(np.sum(np.exp(shifted), axis=dim, keepdims=True))


def _trapezoid(y: Any, x: Any = None, *, dx: float = 1.0, dim: int = -1) -> Any:
    return np.trapezoid(y, x, dx=dx, axis=dim)


def _gather(x: Any, dim: int, index: Any) -> Any:
    if np.ndim(x) == 0:
        return np.broadcast_to(x, np.shape(index))
    trimmed = x[
        tuple(slice(size) if axis != dim % np.ndim(x) else slice(None) for axis, size in enumerate(index.shape))
    ]
    return np.take_along_axis(trimmed, index, dim)


def _taken_along(x: Any, index: Any, dim: int | None = None) -> Any:
    if dim is None:
        return np.take_along_axis(np.ravel(x), np.ravel(index), 0)
    return np.take_along_axis(x, index, dim)


def _quantile(x: Any, q: Any, dim: Any = None, keepdim: bool = False, *, interpolation: Any = "linear") -> Any:
    return np.quantile(x, q, axis=dim, keepdims=keepdim, method=interpolation)


def _sorted(x: Any, dim: int = -1, descending: bool = False, **_: Any) -> Any:
    if np.ndim(x) == 0:
        return x
    return np.flip(np.sort(x, axis=dim), dim) if descending else np.sort(x, axis=dim)


def _gradient_options(ndim: int, spacing: Any = None, dim: Any = None, edge_order: int = 1) -> tuple[Any, Any]:
    if edge_order != 1:
        raise NotImplementedError("edge_order")
    axes = tuple(range(ndim)) if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    if spacing is None:
        return (), axes
    return (tuple(spacing) if isinstance(spacing, list | tuple) else (spacing,)), axes


def _mean_beside(
    x: Any, dim: Any = None, unbiased: Any = None, *, correction: Any = None, keepdim: bool = False
) -> Any:
    return np.mean(
        x, axis=None if isinstance(dim, bool) else tuple(dim) if isinstance(dim, list) else dim, keepdims=keepdim
    )


COUNTERPARTS: dict[str, Counterpart] = {
    "cumsum": lambda x, dim, dtype=None: np.cumsum(x, axis=dim, dtype=dtype) if np.ndim(x) else x + 0,
    "cumprod": lambda x, dim, dtype=None: np.cumprod(x, axis=dim, dtype=dtype) if np.ndim(x) else x + 0,
    "corrcoef": np.corrcoef,
    "cov": lambda x, correction=1, fweights=None, aweights=None: np.cov(
        x, ddof=correction, fweights=fweights, aweights=aweights
    ),
    "cross": lambda a, b, dim=None: np.cross(a, b, axis=-1 if dim is None else dim),
    "gather": _gather,
    "take": lambda x, index: np.take(np.ravel(x), index),
    "take_along_dim": _taken_along,
    "index_select": lambda x, dim, index: np.take(x, index, axis=dim) if np.ndim(x) else x,
    "masked_select": lambda x, mask: np.broadcast_to(x, np.broadcast_shapes(x.shape, mask.shape))[
        np.broadcast_to(mask, np.broadcast_shapes(x.shape, mask.shape))
    ],
    "masked_fill": lambda x, mask, value: np.where(mask, value, x),
    "gradient": lambda x, **options: np.gradient(
        x, *_gradient_options(np.ndim(x), **options)[0], axis=_gradient_options(np.ndim(x), **options)[1]
    ),
    "log_softmax": _log_softmax,
    "softmax": softmax,
    "logsumexp": _logsumexp,
    "max": _extremum(np.max),
    "min": _extremum(np.min),
    "msort": lambda x: np.sort(x, axis=0) if np.ndim(x) else x,
    "sort": _sorted,
    "quantile": _quantile,
    "nanquantile": lambda x, q, dim=None, keepdim=False, *, interpolation="linear": np.nanquantile(
        x, q, axis=dim, keepdims=keepdim, method=interpolation
    ),
    "std": _spread(np.std),
    "var": _spread(np.var),
    "std_mean": lambda x, *args, **options: (_spread(np.std)(x, *args, **options), _mean_beside(x, *args, **options)),
    "var_mean": lambda x, *args, **options: (_spread(np.var)(x, *args, **options), _mean_beside(x, *args, **options)),
    "trapezoid": _trapezoid,
    "trapz": _trapezoid,
    "norm": lambda x, p="fro", dim=None, keepdim=False: vector_norm(x, 2 if p == "fro" else p, dim, keepdim),
}

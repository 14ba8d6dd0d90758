"""Norms and condition numbers.

The 2-norm is differentiated at zero as zero (`rules.norms`); so are the sums and largest values of absolute values that
the other norms are made of, whose kinks the elementwise rules describe.
"""

from typing import Any

import numpy as np

from pullback.numpy_api.operands import as_operand
from pullback.numpy_api.shapes import astype
from pullback.numpy_api.translations import implements, normalized_axes
from pullback.rules.norms import p_norm
from pullback.rules.singular import svdvals


@implements(np.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:  # noqa: A002 (NumPy's name)
    x = _inexact(x)
    if axis is None:
        if ord is not None and np.ndim(x) not in (1, 2):
            raise ValueError(f"numpy.linalg.norm of an array of shape {np.shape(x)} with an order needs an axis")
        axes: tuple[int, ...] = tuple(range(np.ndim(x)))
        if ord is None:
            return p_norm(x, p=2.0, axes=axes, keepdims=bool(keepdims))
    else:
        # The order of the two axes of a matrix says which are its rows.
        axes = np.lib.array_utils.normalize_axis_tuple(axis, np.ndim(x))
    if len(axes) == 1:
        return _of_vectors(x, 2 if ord is None else ord, axes, keepdims=bool(keepdims))
    if len(axes) == 2:
        return _of_matrices(x, ord, axes, keepdims=bool(keepdims))
    raise ValueError(f"numpy.linalg.norm takes one axis or two, not {len(axes)}")


@implements(np.linalg.vector_norm)
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:  # noqa: A002
    x = _inexact(x)
    return _of_vectors(x, ord, normalized_axes(axis, np.ndim(x)), keepdims=bool(keepdims))


@implements(np.linalg.matrix_norm)
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:  # noqa: A002 (NumPy's name)
    x = _inexact(x)
    return _of_matrices(x, ord, (np.ndim(x) - 2, np.ndim(x) - 1), keepdims=bool(keepdims))


@implements(np.linalg.cond)
def cond(x: Any, p: Any = None) -> Any:
    if p in (None, 2, -2):
        s = svdvals(_inexact(x))
        return s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    return norm(x, p, axis=(-2, -1)) * norm(np.linalg.inv(x), p, axis=(-2, -1))


def _inexact(x: Any) -> Any:
    x = as_operand(x)
    return astype(x, np.float64) if x.dtype.kind in "biu" else x


def _of_vectors(x: Any, order: Any, axes: tuple[int, ...], *, keepdims: bool) -> Any:
    if order in ("fro", "nuc"):
        raise ValueError(f"numpy.linalg.norm: {order!r} is no order of a vector norm")
    if order == np.inf:
        return np.max(np.abs(x), axis=axes, keepdims=keepdims)
    if order == -np.inf:
        return np.min(np.abs(x), axis=axes, keepdims=keepdims)
    if order == 0:
        return np.sum(astype(x != 0, np.abs(np.zeros(1, x.dtype)).dtype), axis=axes, keepdims=keepdims)
    if order == 1:
        return np.sum(np.abs(x), axis=axes, keepdims=keepdims)
    return p_norm(x, p=float(order), axes=tuple(sorted(axes)), keepdims=keepdims)


def _of_matrices(x: Any, order: Any, axes: tuple[int, ...], *, keepdims: bool) -> Any:
    rows, columns = axes
    if order in (None, "fro", "f"):
        return p_norm(x, p=2.0, axes=tuple(sorted(axes)), keepdims=keepdims)
    if order in (1, -1, np.inf, -np.inf):
        summed, compared = (rows, columns) if abs(order) == 1 else (columns, rows)
        sums = np.sum(np.abs(x), axis=summed, keepdims=True)
        y = (np.max if order > 0 else np.min)(sums, axis=compared, keepdims=True)
    elif order in (2, -2, "nuc"):
        s = svdvals(np.moveaxis(x, (rows, columns), (-2, -1)))
        y = np.sum(s, axis=-1) if order == "nuc" else s[..., 0 if order == 2 else -1]
        return np.expand_dims(y, sorted(axes)) if keepdims else y
    else:
        raise ValueError(f"numpy.linalg.norm: {order!r} is no order of a matrix norm")
    return y if keepdims else np.squeeze(y, axis=tuple(sorted(axes)))

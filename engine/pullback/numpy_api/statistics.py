"""Covariance and correlation."""

from typing import Any

import numpy as np

from pullback.numpy_api.joining import concatenate
from pullback.numpy_api.operands import as_operand
from pullback.numpy_api.reductions import average, sum_
from pullback.numpy_api.selecting import diagonal
from pullback.numpy_api.shapes import astype, atleast_2d, reshape, squeeze, transpose
from pullback.numpy_api.translations import implements
from pullback.rules.contractions import matmul
from pullback.rules.exponential import sqrt


@implements(np.cov)
def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: Any = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: Any = None,
) -> Any:
    rows = _rows(m, y, rowvar=rowvar)
    if dtype is not None:
        rows = astype(rows, dtype)
    ddof = (0 if bias else 1) if ddof is None else ddof
    weights = None
    for given in (fweights, aweights):
        if given is not None:
            weights = as_operand(given) * (1 if weights is None else weights)
    apart = rows - reshape(average(rows, axis=1, weights=weights), (np.shape(rows)[0], 1))
    total: Any = np.shape(rows)[1] if weights is None else sum_(weights)
    if aweights is None or ddof == 0:
        count = total - ddof
    else:
        count = total - ddof * sum_(weights * as_operand(aweights)) / total
    count = np.maximum(count, 0)  # as in NumPy: too few observations are no negative number of them
    weighted = apart if weights is None else apart * weights
    return squeeze(matmul(apart, np.conj(transpose(weighted))) / count)


def _rows(m: Any, y: Any, *, rowvar: bool) -> Any:
    """One variable a row, in floating point."""
    rows = _floating(atleast_2d(m))
    if not rowvar and np.ndim(m) != 1:
        rows = transpose(rows)
    if y is None:
        return rows
    more = _floating(atleast_2d(y))
    return concatenate([rows, transpose(more) if not rowvar and np.shape(more)[0] != 1 else more], 0)


def _floating(x: Any) -> Any:
    return astype(x, np.result_type(x.dtype, np.float64))


@implements(np.corrcoef)
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Any:
    covariance = cov(x, y, rowvar, dtype=dtype)
    if np.ndim(covariance) == 0:
        return covariance / covariance
    deviations = sqrt(np.real(diagonal(covariance)))
    return covariance / reshape(deviations, (np.size(deviations), 1)) / deviations

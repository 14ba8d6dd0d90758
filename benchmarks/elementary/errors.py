"""Errors in units in the last place."""

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def in_units(values: Array, reference: Array) -> Array:
    """How far values are from a reference of higher precision, in units in the last place of the reference.

    Beyond the largest number an infinity counts as the power of two that comes next; NaN is right where the reference is.
    """
    format_ = np.finfo(values.dtype)
    wide = reference.dtype.type
    end = wide(2) ** int(format_.maxexp)
    y = np.where(np.isinf(values), np.copysign(end, values).astype(wide), values.astype(wide))
    is_beyond = np.abs(reference) > end
    r = np.where(is_beyond, np.copysign(end, reference), reference)
    _, exponent = np.frexp(np.where(np.isfinite(r), r, 1))
    unit = np.ldexp(wide(1), np.maximum(exponent - 1, format_.minexp) - format_.nmant)
    error = np.abs(y - r) / unit
    error = np.where(np.isnan(error) | (is_beyond & (y != r)), wide(np.inf), error)
    return np.asarray(np.where(np.isnan(y) & np.isnan(r), wide(0), error), float)

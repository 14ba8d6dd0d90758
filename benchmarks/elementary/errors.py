"""Errors in units in the last place."""

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def in_units(values: Array, reference: Array) -> Array:
    """Errors of values against a reference of higher precision, in units in the last place of the reference.

    The unit is the distance between the floats around the reference.
    """
    largest = np.finfo(values.dtype).max
    exact = np.abs(reference)
    below = np.minimum(exact.astype(values.dtype), largest)
    below = np.where(below > exact, np.nextafter(below, values.dtype.type(0)), below)
    unit = np.spacing(below)
    error = (np.abs(values - reference) / unit).astype(float)
    special = ~(np.isfinite(values) & (exact <= largest))
    if special.any():
        error[special] = _at_ends(values[special], reference[special])
    return np.asarray(error)


def _at_ends(values: Array, reference: Array) -> Array:
    """Errors where a value is not finite, or should not be: an infinity counts as the next power of two.

    NaN is right where the reference is; the largest number is wrong where the reference is beyond that power.
    """
    format_ = np.finfo(values.dtype)
    wide = reference.dtype.type
    end = wide(2) ** int(format_.maxexp)
    y = np.where(np.isinf(values), np.copysign(end, values.astype(wide)), values.astype(wide))
    is_beyond = np.abs(reference) > end
    r = np.where(is_beyond, np.copysign(end, reference), reference)
    error = np.abs(y - r) / np.spacing(format_.max).astype(wide)
    error = np.where(np.isnan(error) | (is_beyond & (y != r)), wide(np.inf), error)
    return np.asarray(np.where(np.isnan(y) & np.isnan(r), wide(0), error), float)

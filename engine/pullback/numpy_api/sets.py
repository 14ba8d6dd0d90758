"""Sets of values: each value is read where it first stands. How many there are depends on the values."""

from typing import Any

import numpy as np

from pullback.numpy_api.joining import concatenate
from pullback.numpy_api.operands import as_operand, concrete, normalized_axis
from pullback.numpy_api.shapes import ravel, reshape
from pullback.numpy_api.translations import implements, results_of
from pullback.rules import gathering, logic


@implements(np.unique)
def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Any = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,  # noqa: A002 (NumPy's name)
) -> Any:
    """Each value once, read where it first stands; how many there are depends on the values."""
    del sorted
    plain = concrete(ar, "numpy.unique")
    read, first, inverse, counts = np.unique(plain, True, True, True, axis, equal_nan=equal_nan)
    if plain.dtype.kind in "fc":  # else they are constants
        ar = ravel(ar) if axis is None else ar
        place = 0 if axis is None else normalized_axis(axis, np.ndim(ar))
        read = gathering.gather(ar, first, key=(*[slice(None)] * place, gathering.ARRAY))
    requested = zip((return_index, return_inverse, return_counts), (first, inverse, counts), strict=True)
    results = (read, *(result for wanted, result in requested if wanted))
    return results if len(results) > 1 else read


@implements(np.unique_values)
def unique_values(x: Any, /) -> Any:
    return unique(x, equal_nan=False)


@implements(np.unique_counts)
def unique_counts(x: Any, /) -> Any:
    return results_of(np.unique_counts)(*unique(x, return_counts=True, equal_nan=False))


@implements(np.unique_inverse)
def unique_inverse(x: Any, /) -> Any:
    values, inverse = unique(x, return_inverse=True, equal_nan=False)
    return results_of(np.unique_inverse)(values, np.reshape(inverse, np.shape(x)))


@implements(np.unique_all)
def unique_all(x: Any, /) -> Any:
    values, first, inverse, counts = unique(x, True, True, True, equal_nan=False)
    return results_of(np.unique_all)(values, first, np.reshape(inverse, np.shape(x)), counts)


@implements(np.union1d)
def union1d(ar1: Any, ar2: Any) -> Any:
    return unique(concatenate([ar1, ar2], axis=None))


@implements(np.intersect1d)
def intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False) -> Any:
    a, b = ravel(as_operand(ar1)), ravel(as_operand(ar2))
    common, of_a, of_b = np.intersect1d(
        concrete(a, "numpy.intersect1d"), concrete(b, "numpy.intersect1d"), assume_unique, return_indices=True
    )
    del common
    read = gathering.gather(a, of_a, key=(gathering.ARRAY,))
    return (read, of_a, of_b) if return_indices else read


@implements(np.setdiff1d)
def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    a = ravel(as_operand(ar1)) if assume_unique else unique(as_operand(ar1))
    kept = concrete(isin(a, ar2, invert=True), "numpy.setdiff1d")
    return gathering.gather(a, np.flatnonzero(kept), key=(gathering.ARRAY,))


@implements(np.setxor1d)
def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    both = [ravel(as_operand(x)) if assume_unique else unique(as_operand(x)) for x in (ar1, ar2)]
    values, counts = unique(concatenate(both), return_counts=True)
    return gathering.gather(values, np.flatnonzero(counts == 1), key=(gathering.ARRAY,))


@implements(np.isin)
def isin(
    element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, kind: Any = None
) -> Any:
    del assume_unique, kind
    elements = reshape(as_operand(element), (*np.shape(element), 1))
    found = np.any(logic.equal(elements, ravel(as_operand(test_elements))), axis=-1)
    return logic.logical_not(found) if invert else found

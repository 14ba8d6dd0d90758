"""Types of values: their shape, its dtype, and whether it is a Python number."""

import math
from typing import Any, TypeAlias

import numpy as np

from pullback.dataclass import dataclass

Shape: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ArrayType:
    """The type of a value before it exists.

    A weak type stands for a Python scalar: it takes part in NumPy's promotion by its kind alone (NEP 50).
    """

    shape: Shape
    dtype: np.dtype[Any]
    weak: bool = False

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of a dense array of this type."""
        return self.size * self.dtype.itemsize

    def __str__(self) -> str:
        dtype = self.dtype.str[1:] if not self.weak else self.dtype.kind
        return f"{dtype}[{','.join(map(str, self.shape))}]"


_PYTHON_SCALARS: dict[type, np.dtype[Any]] = {
    bool: np.dtype(bool),
    int: np.dtype(np.int64),
    float: np.dtype(np.float64),
    complex: np.dtype(np.complex128),
}


def type_of(value: Any) -> ArrayType:
    """Type of a concrete value; Python scalars are weak."""
    weak = _PYTHON_SCALARS.get(type(value))
    if weak is not None:
        return ArrayType((), weak, weak=True)
    return ArrayType(tuple(value.shape), value.dtype)


def is_array_like(value: Any) -> bool:
    """True if a value can be an operand: an array, a NumPy scalar or a Python scalar."""
    return issubclass(type(value), (np.ndarray, np.generic)) or type(value) in _PYTHON_SCALARS


def is_array(value: Any) -> bool:
    """True if a value is an array, of NumPy or on a device, and neither a number nor traced."""
    return issubclass(type(value), np.ndarray) or getattr(type(value), "on_device", False)


def dtype_of(value: Any) -> np.dtype[Any]:
    """Dtype of a value, traced or not; of a Python number the one NumPy gives it."""
    dtype: np.dtype[Any] | None = getattr(value, "dtype", None)
    return dtype if dtype is not None else type_of(value).dtype


def shape_of(value: Any) -> Shape:
    """Shape of a value, traced or not; unlike `numpy.shape` it makes no array of a Python number to ask it."""
    shape: Shape | None = getattr(value, "shape", None)
    if shape is not None:
        return shape
    return () if type(value) in _PYTHON_SCALARS else np.shape(value)

"""In-place kernels of the gated cells: the logistic function, and slopes from outputs."""

from typing import Any

import numpy as np

from pullback.core.constant_arrays import number

Array = np.ndarray[Any, Any]


def sigmoid_in_place(z: Array) -> None:
    """1 / (1 + exp(-z)), four passes and no further array.

    exp overflows to infinity for z below -709 (-88 in single precision), where the result is 0 as it should be.
    """
    with np.errstate(over="ignore"):
        np.negative(z, out=z)
        np.exp(z, out=z)
        np.add(z, number(1, z.dtype), out=z)
        np.reciprocal(z, out=z)


def slope_of_sigmoid(y: Array, out: Array) -> None:
    """The slope y (1 - y); `out` is another array."""
    np.subtract(number(1, y.dtype), y, out=out)
    out *= y


def slope_of_tanh(y: Array, out: Array) -> None:
    """The slope 1 - y^2; `out` may be y."""
    np.square(y, out=out)
    np.subtract(number(1, out.dtype), out, out=out)

"""Common parts of the whole-sequence rules: their memory, and the products after the loop back through time.

A rule writes into the arrays it is given: its results, and `spare` ones of the shapes it declares, whose contents are
not defined. It makes none, so that a plan which keeps its memory runs it without an allocation.
"""

from typing import Any

import numpy as np

from pullback.dataclass import dataclass
from pullback.nn.recurrent.weights import Weights

Array = np.ndarray[Any, Any]


def rows(a: Any) -> Any:
    """All examples of all steps as the rows of one matrix."""
    return a.reshape(-1, a.shape[-1])


def product_with_input(x: Array, weights: Weights, out: Array) -> None:
    """Wi x + b of all steps."""
    np.matmul(rows(x), weights.wi.T, out=rows(out))
    if weights.b is not None:
        out += weights.b


@dataclass(frozen=True, slots=True)
class Reverse:
    """The values that a cell needs to run back through a sequence."""

    x: Array
    weights: Weights
    initial: tuple[Any, ...]
    """Initial states; None stands for zeros that were not given."""
    results: tuple[Array, ...]
    bars: tuple[Any, ...]
    """Cotangents of the states of all steps; None for a kind of state that leads nowhere."""
    gradient: Weights | None
    """Views to write the gradient by the weights to; None if it is not needed."""
    x_bar: Array | None
    """The array to write the cotangent of x to; None if it is not needed."""
    initial_bars: tuple[Array | None, ...]
    """The arrays to write the cotangents of the initial states to."""
    spare: tuple[Array, ...]

    def pull_input(self, dz: Array) -> None:
        """Write the gradients by Wi and b and the cotangent of x, from rows of cotangents of Wi x + b."""
        if self.gradient is not None:
            np.matmul(dz.T, rows(self.x), out=self.gradient.wi)
            if self.gradient.b is not None:
                np.sum(dz, axis=0, out=self.gradient.b)
        if self.x_bar is not None:
            np.matmul(dz, self.weights.wi, out=rows(self.x_bar))

    def pull_product(self, dz: Array, h: Array, initial: Any, out: Array, spare: Array) -> None:
        """Gradient by a matrix that multiplied the states before each step: one product over all steps.

        The first step multiplied the initial state, if there is one; it lies elsewhere, so its share is added. `spare`
        has the shape of `out` then.
        """
        np.matmul(rows(dz[1:]).T, rows(h), out=out)
        if initial is not None:
            out += np.matmul(dz[0].T, initial, out=spare)

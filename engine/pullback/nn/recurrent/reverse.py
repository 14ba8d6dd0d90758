"""What the whole-sequence rules share: their memory, and the products after the loop back through time."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from pullback.ir.types import Shape
from pullback.nn.recurrent.weights import Weights

Array = np.ndarray[Any, Any]


def scratch(dtype: np.dtype[Any], *shapes: Shape) -> list[Array]:
    """Memory for a rule. Each asks once, for its results and all else it needs; the contents are not defined."""
    return [np.empty(shape, dtype) for shape in shapes]


def rows(a: Any) -> Any:
    """All examples of all steps as the rows of one matrix."""
    return a.reshape(-1, a.shape[-1])


@dataclass(frozen=True, slots=True)
class Reverse:
    """What a cell needs to run back through a sequence."""

    x: Array
    weights: Weights
    initial: tuple[Any, ...]
    """Initial states; None stands for zeros that were not given."""
    results: tuple[Array, ...]
    bars: tuple[Any, ...]
    """Cotangents of the states of all steps; None for a kind of state that leads nowhere."""
    gradient: Weights | None
    """Where the gradient by the weights goes; None if nobody needs it."""
    needs_x: bool
    needs_initial: tuple[bool, ...]

    def pull_input(self, dz: Array) -> Any:
        """From the cotangents of Wi x + b, one row per example and step: gradients by Wi and b; the cotangent of x."""
        if self.gradient is not None:
            np.matmul(dz.T, rows(self.x), out=self.gradient.wi)
            if self.gradient.b is not None:
                np.sum(dz, axis=0, out=self.gradient.b)
        return np.matmul(dz, self.weights.wi).reshape(self.x.shape) if self.needs_x else None

    def pull_product(self, dz: Array, h: Array, initial: Any, out: Array) -> None:
        """Gradient by a matrix that multiplied the states before each step: one product over all steps.

        The first step multiplied the initial state, if there is one; it lies elsewhere, so its share is added.
        """
        np.matmul(rows(dz[1:]).T, rows(h), out=out)
        if initial is not None:
            out += np.matmul(dz[0].T, initial)

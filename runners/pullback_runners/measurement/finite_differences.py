"""A gradient compared with differences of its value, for workloads that declare no closed form.

Along a direction d the value changes by (f(x + h d) - f(x - h d)) / 2h, which is <gradient, d> up to h^2 f''' / 6 and the
rounding of f by eps |f| / h. With h = eps^(1/3) of the size of x both are about eps^(2/3): 4e-11 in double and 2e-5 in single
precision, times how curved f is. Accepted are `TOLERANCE` of sum |gradient| |d|, and a few roundings of f. The directions
have random signs and no zeros, so an element that is wrong shows unless it is small beside all others together.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from pullback_runners.measurement.gradient_check import GradientCheck, array_of, parts_of
from pullback_runners.workloads import Inputs, ValueAndGradients

TOLERANCE = {"f4": 2e-2, "f8": 1e-6}
DIRECTIONS = 3
_ROUNDINGS = 64
_LONGER = (1, 8, 64)
"""Steps along a direction that decides, in those that are used otherwise. What the next longer one gives bounds the error of each."""

NAME = "central differences"


@dataclass(frozen=True)
class FiniteDifferences:
    """Differences of `value_at` around the arguments `wrt`, computed once: of a function that compiles for each of its arguments they take seconds."""

    value_at: Callable[[Inputs], Any]
    inputs: Inputs
    wrt: tuple[str, ...]
    dtype: str
    seed: int = 0
    """Of the random directions."""
    _first: list[tuple[dict[str, Any], float, float]] = field(
        default_factory=list, init=False, repr=False, compare=False
    )
    """The signs of the first gradients, the change of the value along them and its error."""

    def check(self, computed: ValueAndGradients) -> GradientCheck:
        """Compare the gradients with the differences along a few random directions."""
        value, gradients = computed
        if set(gradients) != set(self.wrt):
            return _wrong(
                None, f"gradients of {', '.join(gradients)} where those of {', '.join(self.wrt)} are asked for"
            )
        for name in self.wrt:
            complaint = unfit(name, array_of(self.inputs[name]), array_of(gradients[name]))
            if complaint is not None:
                return _wrong(None, complaint)
        here = float(array_of(value))
        if not np.isfinite(here):
            return _wrong(None, "value is NaN or infinity")
        worst = 0.0
        for directions, ahead, behind in self._values:
            parts = [array_of(gradients[name]).astype(float).ravel() * directions[name].ravel() for name in self.wrt]
            expected = (ahead - behind) / (2 * self._step)
            along = sum(float(part.sum()) for part in parts)
            size = sum(float(np.abs(part).sum()) for part in parts)
            rounding = _ROUNDINGS * self._eps * max(abs(ahead), abs(behind)) / self._step
            off = max(abs(along - expected) - rounding, 0.0) / size if size else float(abs(expected) > rounding)
            if not np.isfinite(expected) or off > TOLERANCE[self.dtype]:
                return _wrong(
                    off if np.isfinite(off) else None,
                    f"along a random direction the value changes by {expected:.6g} and the gradients say {along:.6g}; "
                    f"{TOLERANCE[self.dtype]:.0e} of their size is accepted",
                )
            worst = max(worst, abs(along - expected) / size if size else 0.0)
        return GradientCheck(worst, self._complaint_along(gradients), NAME)

    def _complaint_along(self, gradients: Mapping[str, Any]) -> str | None:
        """The reason why gradients contradict differences of the value along the first of them; None if no contradiction is found.

        Along random directions products of gradient and direction cancel: of n elements what is left is 1/sqrt(n) of their size,
        so that twice the gradient may pass. Here none cancel.
        """
        if not self._first:
            arrays = {name: array_of(gradients[name]).astype(float) for name in self.wrt}
            root = np.sqrt(
                sum(array.size for array in arrays.values())
            )  # with which the value changes as along a random one
            directions = {name: np.sign(array) * size_of(self.inputs[name]) / root for name, array in arrays.items()}
            self._first.append((directions, *self.quotient(directions, _LONGER[:2])))
        directions, change, error = self._first[0]
        along = sum(float(np.sum(array_of(gradients[name]).astype(float) * directions[name])) for name in self.wrt)
        if not abs(along - change) > error + TOLERANCE[self.dtype] * abs(along):
            return None
        return (
            f"along the gradients' own signs the value changes by {change:.6g} and the gradients say {along:.6g}; "
            f"{TOLERANCE[self.dtype]:.0e} of that is accepted"
        )

    def quotient(self, directions: Mapping[str, Any], steps: tuple[int, ...] = _LONGER) -> tuple[float, float]:
        """The change of the value along a direction, and how far it may be off; infinitely far where it cannot be computed."""
        quotients, roundings = [], []
        for step in (self._step * longer for longer in steps):
            try:
                ahead, behind = self.at(directions, step), self.at(directions, -step)
            except Exception:  # noqa: BLE001 - a function that cannot be computed there tells nothing
                ahead = behind = float("nan")
            quotients.append((ahead - behind) / (2 * step))
            roundings.append(_ROUNDINGS * self._eps * max(abs(ahead), abs(behind)) / step)
        errors = [
            abs(here - further) + rounding
            for here, further, rounding in zip(quotients, quotients[1:], roundings, strict=False)
        ]
        told = [pair for pair in zip(quotients, errors, strict=False) if np.isfinite(pair).all()]
        return min(told, key=lambda pair: pair[1], default=(float("nan"), float("inf")))

    def at(self, directions: Mapping[str, Any], step: float) -> float:
        """The value so many times a direction away."""
        moved = {
            name: with_numbers(self.inputs[name], array_of(self.inputs[name]) + step * directions[name])
            for name in self.wrt
        }
        return float(array_of(self.value_at({**self.inputs, **moved})))

    @property
    def _eps(self) -> float:
        return float(np.finfo(self.dtype).eps)

    @property
    def _step(self) -> float:
        return float(self._eps ** (1 / 3))

    @cached_property
    def _values(self) -> list[tuple[dict[str, Any], float, float]]:
        """Directions by argument, and the value ahead and behind along each."""
        rng = np.random.default_rng(self.seed)
        drawn = [{name: _direction(rng, self.inputs[name]) for name in self.wrt} for _ in range(DIRECTIONS)]
        step = self._step
        return [(directions, self.at(directions, step), self.at(directions, -step)) for directions in drawn]


def unfit(name: str, argument: Any, gradient: Any) -> str | None:
    """The reason why a gradient does not fit its argument, or cannot be compared with differences; None if it can."""
    if argument.dtype.kind == "c":
        return f"{name} is complex, which finite differences cannot check; declare an oracle of the workload"
    if (gradient.dtype, gradient.shape) != (argument.dtype, argument.shape):
        return f"gradient of {name} is {gradient.dtype} {gradient.shape} instead of {argument.dtype} {argument.shape}"
    return None if np.isfinite(gradient).all() else f"gradient of {name} holds NaN or infinity"


def _wrong(error: float | None, complaint: str) -> GradientCheck:
    return GradientCheck(error, complaint, NAME)


def _direction(rng: np.random.Generator, argument: Any) -> Any:
    """Signs times numbers from 0.5 to 1, of the size of the argument."""
    shape = array_of(argument).shape
    return rng.choice([-1.0, 1.0], shape) * rng.uniform(0.5, 1.0, shape) * size_of(argument)


def size_of(argument: Any) -> float:
    """The root mean square of an argument; 1 for zeros."""
    array = array_of(argument).astype(float)
    return (float(np.sqrt(np.mean(array**2))) if array.size else 0.0) or 1.0


def with_numbers(argument: Any, numbers: Any) -> Any:
    """An argument of the same kind with other numbers, which are in one array as `array_of` gives it."""
    if isinstance(argument, dict | tuple | list):
        parts = [(part, array_of(part)) for part in parts_of(argument)]
        ends = np.cumsum([array.size for _, array in parts])[:-1]
        pieces = zip(parts, np.split(numbers.ravel(), ends), strict=True)
        replaced = [with_numbers(part, piece.reshape(array.shape)) for (part, array), piece in pieces]
        if not isinstance(argument, dict):
            return type(argument)(replaced)
        by_name = dict(zip(sorted(argument), replaced, strict=True))
        return {name: by_name[name] for name in argument}
    if hasattr(argument, "map"):  # a block
        return argument.map(lambda array: numbers.astype(array.dtype))
    if isinstance(argument, float):
        return float(numbers)
    return np.asarray(numbers).astype(np.asarray(argument).dtype)

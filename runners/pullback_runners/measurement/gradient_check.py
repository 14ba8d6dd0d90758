"""A wrong gradient is a failed case, never a time: value and gradients are compared with the closed form first."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pullback_runners.workloads import Inputs, ValueAndGradients

TOLERANCE = {"f4": 5e-5, "f8": 1e-10}
"""Largest accepted relative error by dtype: some hundred roundings of a sum of that precision, far below 1e-3."""


AGREEMENT = {"f4": 5e-4, "f8": 1e-9}
"""Largest accepted relative difference of two computations in one precision, neither of which is exact."""

CLOSED_FORM = "closed form"


@dataclass(frozen=True)
class GradientCheck:
    """The largest relative error over the value and all gradients, and what is wrong, if anything is."""

    max_rel_error: float | None
    """None where no error can be given: a wrong shape, a missing gradient, a NaN."""
    complaint: str | None
    oracle: str = CLOSED_FORM
    refuted: tuple[str, str] | None = None
    """The variant that it was compared with, and the reason, if that one is wrong."""

    @property
    def ok(self) -> bool:
        """True if the gradient is right."""
        return self.complaint is None

    def document(self) -> dict[str, Any]:
        """The check as a report writes it."""
        return {
            "ok": self.ok,
            "max_rel_error": self.max_rel_error,
            "oracle": self.oracle,
            "complaint": self.complaint,
        }


def check_gradient(
    computed: ValueAndGradients,
    expected: ValueAndGradients,
    inputs: Inputs,
    dtype: str,
    oracle: str = CLOSED_FORM,
    tolerance: Mapping[str, float] = TOLERANCE,
) -> GradientCheck:
    """Compare value and gradients with the oracle's: shape, dtype, every element.

    A gradient has its argument's dtype and shape; what is named otherwise (a Jacobian) has the case's dtype and the
    oracle's shape.
    """

    def checked(error: float | None, complaint: str | None) -> GradientCheck:
        return GradientCheck(error, complaint, oracle)

    against = "the oracle" if oracle == CLOSED_FORM else oracle
    value, gradients = computed
    expected_value, expected_gradients = expected
    if set(gradients) != set(expected_gradients):
        return checked(
            None, f"gradients of {', '.join(gradients)} where {against} gives those of {', '.join(expected_gradients)}"
        )
    pairs = {"value": (value, expected_value)}
    for name, gradient in gradients.items():
        array = array_of(gradient)
        if name in inputs:
            operand = array_of(inputs[name])
            wanted = (operand.dtype, operand.shape)
        else:
            wanted = (np.dtype(dtype), array_of(expected_gradients[name]).shape)
        if (array.dtype, array.shape) != wanted:
            return checked(
                None,
                f"gradient of {name} is {array.dtype} {array.shape} instead of {wanted[0]} {wanted[1]}",
            )
        pairs[f"gradient of {name}"] = (array, expected_gradients[name])
    errors = {name: relative_error(*pair) for name, pair in pairs.items()}
    worst = max(errors, key=lambda name: np.inf if np.isnan(errors[name]) else errors[name])
    largest = errors[worst]
    if not np.isfinite(largest):
        return checked(None, _no_difference(worst, *pairs[worst], against))
    if largest > tolerance[dtype]:
        beside = "" if oracle == CLOSED_FORM else f" from {oracle}"
        return checked(
            largest, f"{worst} is off by {largest:.2g} of its size{beside}; {tolerance[dtype]:.0e} is accepted"
        )
    return checked(largest, None)


def _no_difference(name: str, computed: Any, expected: Any, oracle: str) -> str:
    """The reason why the difference of two values is not a number."""
    computed, expected = array_of(computed), array_of(expected)
    if computed.shape != expected.shape:
        return f"{name} has the shape {computed.shape} and that of {oracle} has {expected.shape}"
    if not np.isfinite(expected).all():
        return f"{name} by {oracle} holds NaN or infinity"
    return f"{name} holds NaN or infinity where that of {oracle} does not"


def relative_error(computed: Any, expected: Any) -> float:
    """Return the largest elementwise |found - expected| / max(|expected|, rms(expected)); NaN and infinity pass through.

    The root mean square is the floor of the divisor: an element that is small by cancellation may keep the absolute error
    of its neighbours, but no element may be wrong by as much as a typical one weighs.
    """
    computed, expected = array_of(computed), array_of(expected)
    double = np.complex128 if "c" in {computed.dtype.kind, expected.dtype.kind} else np.float64
    computed, expected = computed.astype(double), expected.astype(double)
    if computed.shape != expected.shape:
        return float("nan")
    with np.errstate(invalid="ignore", over="ignore"):
        difference = np.abs(computed - expected)
    if not difference.any():  # NaN counts as true
        return 0.0
    size = np.maximum(np.abs(expected), np.sqrt(np.mean(np.abs(expected) ** 2)))
    return float(np.max(difference / np.where(size > 0, size, 1.0)))


def array_of(value: Any) -> Any:
    """An argument or gradient as one array: of a block, or of arrays by name or in a list, all of them in order."""
    if isinstance(value, dict) or (isinstance(value, tuple | list) and _holds_arrays(value)):
        return np.concatenate([array_of(part).ravel() for part in parts_of(value)])
    # Told by what it has: the engine is not imported here, a worker chooses which one it will be.
    if hasattr(value, "detach"):  # a tensor of PyTorch
        return value.detach().cpu().numpy()
    return np.asarray(getattr(value, "array", value))


def _holds_arrays(value: Any) -> bool:
    """True if there is an array in nested lists, which else are the rows of one."""
    if isinstance(value, dict | tuple | list):
        return any(map(_holds_arrays, parts_of(value)))
    return bool(getattr(value, "shape", ()))


def parts_of(value: dict[str, Any] | tuple[Any, ...] | list[Any]) -> list[Any]:
    """The parts of a container, by name in order."""
    return [value[name] for name in sorted(value)] if isinstance(value, dict) else list(value)


def bytes_of(inputs: Inputs) -> dict[str, bytes]:
    """Every argument's bytes, to see that a call leaves its arguments as they were."""
    return {name: array_of(value).tobytes() for name, value in inputs.items()}


def check_restored(before: dict[str, bytes], inputs: Inputs) -> str | None:
    """Name the arguments that a call did not leave bit for bit as they were, or return None."""
    changed = [name for name, content in bytes_of(inputs).items() if content != before[name]]
    return f"argument {', '.join(changed)} was not restored bit for bit" if changed else None

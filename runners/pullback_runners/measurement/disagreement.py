"""The wrong one of two gradients that differ: differences of the value along what they differ in decide.

Along random directions one wrong element is hidden by the size of all others together. Along d = g - g' over the elements that
differ by more than is accepted, the two gradients say values that are as far apart as can be, and the value itself changes by
what one of them says, or by neither. It is the value of the reference: a variant that computes another function is wrong.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from pullback_runners.measurement.finite_differences import FiniteDifferences, size_of, unfit
from pullback_runners.measurement.gradient_check import AGREEMENT, GradientCheck, array_of, relative_error
from pullback_runners.workloads import Inputs, ValueAndGradients
from pullback_runners.workloads.registry import in_double_precision

_QUARTER = 0.25
"""Share of the difference of two gradients that the error of a quotient may be, if the quotient is to decide between them; and share of
the tolerance by which the gradient that agrees with it may be off."""

_UNSEEN = 1e-9
"""A relative change of a single-precision number that is lost where it is rounded to single precision."""


def settle(
    done: GradientCheck,
    gradients: Mapping[str, ValueAndGradients],
    differences: FiniteDifferences,
    reference_value: Callable[[Inputs], Any],
) -> GradientCheck:
    """The check of a variant whose gradient is not that of its reference, in this order in `gradients`; `done` says by how much it is off."""
    (variant, (value, gradient)), (reference, (other_value, other)) = gradients.items()
    inputs, wrt, accepted = differences.inputs, differences.wrt, AGREEMENT[differences.dtype]
    if not np.isfinite(array_of(other_value)).all() or _unfit(inputs, wrt, other):
        return differences.check((value, gradient))  # the reference fails by its own check
    if _unfit(inputs, wrt, gradient) or not relative_error(value, other_value) <= accepted:
        return done
    pairs = {name: (_double(gradient[name]), _double(other[name])) for name in wrt}
    errors = {name: relative_error(*pair) for name, pair in pairs.items()}
    worst = max(errors, key=lambda name: errors[name])
    off = f"{errors[worst]:.2g} of its size"
    directions, tolerated = {}, 0.0
    for name, (ours, theirs) in pairs.items():
        size = np.maximum(np.abs(theirs), np.sqrt(np.mean(theirs**2)))
        differs = np.where(np.abs(ours - theirs) > accepted * size, ours - theirs, 0.0)
        directions[name] = differs / (np.abs(differs).max(initial=0.0) or 1.0) * size_of(inputs[name])
        tolerated += float(np.sum(accepted * size * np.abs(directions[name])))
    we_say, they_say = (
        sum(float(np.sum(pair[side] * directions[name])) for name, pair in pairs.items()) for side in (0, 1)
    )
    change, error = _change(differences, reference_value, directions)
    both = f"gradients of {worst} by {reference} and {variant} differ by {off}"
    if error > _QUARTER * (we_say - they_say):
        # Too little to speak against the reference, which its own check has passed.
        return replace(done, complaint=f"{done.complaint}; differences cannot decide which of the two is right")
    we_agree, they_agree = (abs(said - change) <= error + _QUARTER * tolerated for said in (we_say, they_say))
    if they_agree:
        return replace(done, complaint=f"{done.complaint}; differences of the value agree with {reference}")
    seen = f"where they differ most the value changes by {change:.10g}, {reference} says {they_say:.10g} and {variant} {we_say:.10g}"
    if not we_agree:
        doubt = f"{both}, and differences of the value agree with neither: {seen}"
        return replace(done, complaint=doubt, refuted=(reference, doubt))
    wrong = f"gradient of {worst} is off by {off} from variant {variant}, and differences of the value agree with that one: {seen}"
    return replace(differences.check((value, gradient)), refuted=(reference, wrong))


def _change(
    differences: FiniteDifferences, value_at: Callable[[Inputs], Any], directions: Mapping[str, Any]
) -> tuple[float, float]:
    """The change of a value along a direction and its error, in double precision where the function computes in it."""
    double = {name: in_double_precision(each) for name, each in differences.inputs.items()}
    finer = replace(differences, value_at=value_at, inputs=double, dtype="f8")
    if differences.dtype != "f8":
        nearby = {name: np.sign(by) * np.abs(array_of(double[name])) for name, by in directions.items()}
        try:
            if finer.at(nearby, 0.0) == finer.at(nearby, _UNSEEN):
                finer = replace(differences, value_at=value_at)
        except Exception:  # noqa: BLE001 - a function may take nothing but single precision
            finer = replace(differences, value_at=value_at)
    return finer.quotient(directions)


def _double(gradient: Any) -> Any:
    return array_of(gradient).astype(float)


def _unfit(inputs: Inputs, wrt: tuple[str, ...], gradients: Mapping[str, Any]) -> bool:
    """True if these are no real numbers for each of the arguments."""
    return set(gradients) != set(wrt) or any(
        unfit(name, array_of(inputs[name]), array_of(gradients[name])) is not None for name in wrt
    )

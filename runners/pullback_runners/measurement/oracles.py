"""The oracle of a variant: what its value and gradients are compared with.

closed form           of the workload, where it declares one
first gradient        in timed processes of workloads without one: what was checked when the variant was examined
variant NAME          the workload's baseline, for its other variants: another computation in the same precision. Where the two
                      gradients differ, `disagreement` says which of them is wrong
central differences   for the baseline, for a variant without another one, and where the baseline cannot be computed
"""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from pullback_runners.measurement.disagreement import settle
from pullback_runners.measurement.finite_differences import FiniteDifferences
from pullback_runners.measurement.gradient_check import AGREEMENT, GradientCheck, array_of, check_gradient
from pullback_runners.variants import open_variant, value_of
from pullback_runners.workloads import Case, Inputs, ValueAndGradients, Workload

Oracle = Callable[[ValueAndGradients], GradientCheck]


def oracle_of(
    variant: str,
    workload: Workload,
    case: Case,
    inputs: Inputs,
    gradient_file: Path | None,
    reference: str | None = None,
) -> Oracle:
    """The check of what a variant gives for some arguments; `gradient_file` is where its first gradient lies once it was checked.

    `reference` is the variant that it is compared with in the place of the baseline.
    """
    if workload.has_oracle:
        closed_form = workload.closed_form(case, inputs)
        return lambda computed: check_gradient(computed, closed_form, inputs, case.dtype)
    first = read_gradient(gradient_file) if gradient_file is not None and gradient_file.exists() else None
    if first is not None:
        return lambda computed: check_gradient(computed, first, inputs, case.dtype, "its first gradient", AGREEMENT)
    differences = FiniteDifferences(value_of(variant, workload, case), inputs, workload.wrt, case.dtype)
    name = reference or workload.baseline
    other = _differentiated_by(name, workload, case, inputs) if name != variant else None
    if name is None or other is None:
        return differences.check

    def compared(computed: ValueAndGradients) -> GradientCheck:
        done = check_gradient(computed, other, inputs, case.dtype, f"variant {name}", AGREEMENT)
        if done.ok:
            return done
        return settle(done, {variant: computed, name: other}, differences, value_of(name, workload, case))

    return compared


def keep_gradient(computed: ValueAndGradients, gradient_file: Path) -> None:
    """Write a gradient that was checked, for the timed processes of the same variant and for checks outside of it."""
    value, gradients = computed
    part = gradient_file.with_suffix(f".{os.getpid()}")
    with part.open("wb") as file:
        for array in (np.array(list(gradients), dtype=str), array_of(value), *map(array_of, gradients.values())):
            np.save(file, array)
    part.replace(gradient_file)  # twins are examined side by side


def read_gradient(gradient_file: Path) -> ValueAndGradients:
    """The value and the gradients in a file."""
    with gradient_file.open("rb") as file:
        names, value = np.load(file).tolist(), np.load(file)
        return value, {name: np.load(file) for name in names}


def _differentiated_by(variant: str | None, workload: Workload, case: Case, inputs: Inputs) -> ValueAndGradients | None:
    """The gradient by another variant; None if there is none, or where it cannot be computed: that is told where it is measured."""
    if variant is None:
        return None
    with contextlib.suppress(Exception), open_variant(variant, workload, case, inputs) as prepared:
        value, gradients = prepared.differentiated(prepared.call())
        return array_of(value).copy(), {name: array_of(each).copy() for name, each in gradients.items()}
    return None

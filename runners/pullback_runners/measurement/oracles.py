"""The oracle of a variant: what its value and gradients are compared with.

closed form           of the workload, where it declares one
first gradient        in timed processes of workloads without one: what was checked when the variant was examined
variant NAME          the workload's baseline, for its other variants: another computation in the same precision. Where the two
                      gradients differ, `disagreement` says which of them is wrong
central differences   for the baseline, for a variant without another one, and where the baseline cannot be computed

Code that is measured can change all of them where it runs. What a run reports has been compared once more by a process without that
code (`oracle_process`), from files that workers write; the differences are taken there alone.
"""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import IO

import numpy as np

from pullback_runners.measurement.disagreement import settle
from pullback_runners.measurement.finite_differences import NAME as DIFFERENCES
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
    left: Path | None = None,
) -> Oracle:
    """The check of what a variant gives for some arguments; `gradient_file` is where its first gradient lies once it was checked.

    `reference` is the variant that it is compared with in the place of the baseline. `left` is the file of a gradient that
    another process checks, to which differences are left; what it needs for workloads of others is written beside.
    """
    if left is not None and workload.is_foreign:
        keep_gradient((0.0, {name: inputs[name] for name in workload.wrt}), arguments_file(left))
    if workload.has_oracle:
        closed_form = workload.closed_form(case, inputs)
        if left is not None and workload.is_foreign:
            keep_gradient(closed_form, closed_form_file(left))
        return lambda computed: check_gradient(computed, closed_form, inputs, case.dtype)
    first = read_gradient(gradient_file) if gradient_file is not None and gradient_file.exists() else None
    if first is not None:
        return lambda computed: check_gradient(computed, first, inputs, case.dtype, "its first gradient", AGREEMENT)
    differences = FiniteDifferences(value_of(variant, workload, case), inputs, workload.wrt, case.dtype)
    name = reference or workload.baseline
    other = _differentiated_by(name, workload, case, inputs) if name != variant else None
    if name is None or other is None:
        return differences.check if left is None else _left_to_another(inputs, case.dtype)

    def compared(computed: ValueAndGradients) -> GradientCheck:
        done = check_gradient(computed, other, inputs, case.dtype, f"variant {name}", AGREEMENT)
        if done.ok:
            return done
        return settle(done, {variant: computed, name: other}, differences, value_of(name, workload, case))

    return compared


def keep_gradient(computed: ValueAndGradients, gradient_file: Path) -> None:
    """Write a gradient that was checked, for the timed processes of the same variant and for checks outside of it."""
    part = gradient_file.with_suffix(f".{os.getpid()}")
    with part.open("wb") as file:
        write_gradient(computed, file)
    part.replace(gradient_file)  # twins are examined side by side


def write_gradient(computed: ValueAndGradients, file: IO[bytes]) -> None:
    """Write a value and arrays by name."""
    value, gradients = computed
    for array in (np.array(list(gradients), dtype=str), array_of(value), *map(array_of, gradients.values())):
        np.save(file, array)


def read_gradient(gradient_file: Path) -> ValueAndGradients:
    """The value and the gradients in a file."""
    with gradient_file.open("rb") as file:
        names, value = np.load(file).tolist(), np.load(file)
        return value, {name: np.load(file) for name in names}


def arguments_file(gradient_file: Path) -> Path:
    """The file of the arguments that a kept gradient is with respect to."""
    return gradient_file.with_suffix(".arguments")


def closed_form_file(gradient_file: Path) -> Path:
    """The file of the closed form of a kept gradient, if a workload of others declares one."""
    return gradient_file.with_suffix(".expected")


def last_file(gradient_file: Path) -> Path:
    """The file of the gradient that a timed process found last."""
    return gradient_file.with_suffix(".last")


def _left_to_another(inputs: Inputs, dtype: str) -> Oracle:
    """An oracle that says nothing of the first gradient, and compares later ones with it."""
    first: list[ValueAndGradients] = []

    def check(computed: ValueAndGradients) -> GradientCheck:
        if first:
            return check_gradient(computed, first[0], inputs, dtype, "its first gradient", AGREEMENT)
        value, gradients = computed
        first.append((array_of(value).copy(), {name: array_of(each).copy() for name, each in gradients.items()}))
        return GradientCheck(0.0, None, DIFFERENCES)

    return check


def _differentiated_by(variant: str | None, workload: Workload, case: Case, inputs: Inputs) -> ValueAndGradients | None:
    """The gradient by another variant; None if there is none, or where it cannot be computed: that is told where it is measured."""
    if variant is None:
        return None
    with contextlib.suppress(Exception), open_variant(variant, workload, case, inputs) as prepared:
        value, gradients = prepared.differentiated(prepared.call())
        return array_of(value).copy(), {name: array_of(each).copy() for name, each in gradients.items()}
    return None

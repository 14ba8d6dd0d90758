"""An examination: a variant's gradient checked and its memory counted, in a process that times nothing.

Counting hooks change the heap's layout, so a process that counts is never one that is timed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pullback_runners.errors import VariantError
from pullback_runners.measurement.member import Member
from pullback_runners.measurement.worker_process import Surroundings
from pullback_runners.measurement.zygote_process import Zygotes
from pullback_runners.workloads import Case


@dataclass(frozen=True)
class Examination:
    """The results of examining a variant before it is timed; plain values, as the worker sent them."""

    gradient: dict[str, Any]
    counts: dict[str, Any]
    plan: dict[str, Any] | None
    environment: Mapping[str, str] = field(default_factory=dict)
    """Versions of what computes on a device, its driver first; empty on the CPU."""


def examine(
    case: Case, members: Sequence[Member], surroundings: Surroundings
) -> tuple[dict[str, Examination], dict[str, VariantError]]:
    """Examine all members for a case side by side; return what was found and what failed, by their names."""
    found: dict[str, Examination] = {}
    failures: dict[str, VariantError] = {}
    driver = None if surroundings.device is None else surroundings.device.driver
    zygote = Zygotes(case, members, surroundings, "examine")
    try:
        for name, worker in zygote.workers.items():
            try:
                answer = worker.answer()
                gradient = worker.checked_outside() or answer["gradient"]
                environment = {} if driver is None else {"driver": driver, **answer["libraries"]}
                found[name] = Examination(gradient, answer["counts"], answer["plan"], environment)
            except VariantError as error:
                failures[name] = error
    finally:
        zygote.end()
    if failures and surroundings.device is not None:
        surroundings.device.refuse_lost()  # which is nobody's failure
    return found, failures

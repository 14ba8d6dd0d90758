"""An examination: a variant's gradient checked and its memory counted, in a process that times nothing.

Counting hooks change the heap's layout, so a process that counts is never one that is timed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pullback_runners.errors import VariantError
from pullback_runners.measurement.affinity import allowed_cpus
from pullback_runners.measurement.answer_forms import is_examined
from pullback_runners.measurement.member import Member
from pullback_runners.measurement.worker_process import RandomDraws, WorkerSettings
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
    device_memory: Mapping[str, int] = field(default_factory=dict)
    """Bytes of the device: `held` at most by the process for its arrays, and `free` when it had been examined."""


@dataclass(frozen=True)
class _ExaminationResults:
    """The results of members by their names."""

    found: dict[str, Examination] = field(default_factory=dict)
    failures: dict[str, VariantError] = field(default_factory=dict)
    refuted: dict[str, tuple[str, str]] = field(default_factory=dict)
    """The variant that a member was compared with, and why it is wrong."""


def examine(
    case: Case,
    members: Sequence[Member],
    settings: WorkerSettings,
    draw: RandomDraws | None = None,
    started: Zygotes | None = None,
) -> tuple[dict[str, Examination], dict[str, VariantError]]:
    """Examine all members for a case side by side; return what was found and what failed, by their names.

    `draw` is the draw of all of them, where others are examined apart that are not to differ by it; `started` are their processes, where
    they have been started (`start_examination`).

    Where one is right and the variant that it was compared with is wrong, the others are compared with that one once more.
    """
    if started is not None:
        started.use(allowed_cpus())  # beside turns they kept off the measured one
    examined = _results(started or start_examination(case, members, settings, draw), settings)
    right = {
        member.subject: member
        for member in reversed(members)
        if member.name in examined.found and member.name in examined.refuted
    }
    again = [
        replace(member, reference=right[member.subject].variant)
        for member in members
        if member.subject in right
        and member.variant not in {right[member.subject].variant, examined.refuted[right[member.subject].name][0]}
        and (member.name in examined.found or examined.failures[member.name].kind == "gradient")
    ]
    subjects = {member.name: member.subject for member in members}
    by = [*examined.found, *examined.failures]  # the reason of one that is right comes first, and counts
    refuted = [(subjects[name], *examined.refuted[name]) for name in by if name in examined.refuted]
    examinations, failures = examined.found, examined.failures
    if again:
        once_more = _results(start_examination(case, again, settings, draw), settings)
        names = {member.name for member in again}
        examinations = {name: each for name, each in examinations.items() if name not in names} | once_more.found
        failures = {name: each for name, each in failures.items() if name not in names} | once_more.failures
        refuted += [(each.subject, *once_more.refuted[each.name]) for each in again if each.name in once_more.refuted]
    for subject, variant, reason in refuted:
        for member in members:
            if (member.subject, member.variant) == (subject, variant) and examinations.pop(
                member.name, None
            ) is not None:
                failures[member.name] = VariantError("gradient", reason)
    return examinations, failures


def start_examination(
    case: Case, members: Sequence[Member], settings: WorkerSettings, draw: RandomDraws | None = None
) -> Zygotes:
    """Start the processes of an examination, which need nothing more until they have answered."""
    return Zygotes(case, members, settings, "examine", draw)


def _results(zygotes: Zygotes, settings: WorkerSettings) -> _ExaminationResults:
    examined = _ExaminationResults()
    driver = None if settings.device is None else settings.device.driver
    try:
        answers: dict[str, dict[str, Any]] = {}
        for name, worker in zygotes.workers.items():
            try:
                answers[name] = worker.answer(is_examined)
                refuted = answers[name].get("refuted")
            except VariantError as error:
                examined.failures[name] = error
                refuted = error.refuted
            if refuted:
                examined.refuted[name] = tuple(refuted)
        subjects = {name: worker.member.subject for name, worker in zygotes.workers.items()}
        wrong = {(subjects[name], variant) for name, (variant, _) in examined.refuted.items()}
        for name, answer in answers.items():
            try:
                gradient = zygotes.workers[name].examined_outside(wrong) or answer["gradient"]
            except VariantError as error:
                examined.failures[name] = error
                examined.refuted.pop(name, None)
                continue
            environment = {} if driver is None else {"driver": driver, **answer.get("libraries", {})}
            examined.found[name] = Examination(
                gradient, answer["counts"], answer["plan"], environment, answer.get("device_memory", {})
            )
    finally:
        zygotes.end()
    if examined.failures and settings.device is not None:
        settings.device.refuse_lost()  # which is nobody's failure
    return examined

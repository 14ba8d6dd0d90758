"""Two commits compared with each other: every case and variant by both engines in the same groups, as a report."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pullback_runners.errors import DeviceMemoryError, LoadError, UsageError, VariantError
from pullback_runners.measurement.comparison import CANDIDATE, REFERENCE, Comparison, compare_members
from pullback_runners.measurement.device import measured_device
from pullback_runners.measurement.member import Member
from pullback_runners.measurement.sequential_sampling import FEWEST_GROUPS
from pullback_runners.measurement.subject import Subject
from pullback_runners.measurement.subject_cases import CaseSelection, choose_for
from pullback_runners.measurement.worker_process import StoppedError
from pullback_runners.progress import GroupSteps, Progress, Steps, ignore_progress
from pullback_runners.projects.subjects import BuiltCommit
from pullback_runners.report import ENGINE_PROJECT, absences
from pullback_runners.report.comparisons import compared_case, comparison_rows
from pullback_runners.runs import begin_run, ignore_refused, never_stop, throttled_slices, timed_waiting
from pullback_runners.suites import find_suite
from pullback_runners.variants import refuse_unknown_device, refuse_unknown_variants
from pullback_runners.workloads import CPU, FIX_IT, Case


def compare_commits(
    reference: BuiltCommit,
    candidate: BuiltCommit,
    suite: str = "standard",
    cases: Sequence[str] = (),
    *,
    device: str = CPU,
    variants: Sequence[str] = (),
    usual: Sequence[str] = (),
    project: str = ENGINE_PROJECT,
    job: Mapping[str, Any] | None = None,
    workload_files: Sequence[Path] = (),
    timeout_s: float = 60.0,
    effort: int = 1,
    measure_equal: bool = False,
    holds_device: bool = False,
    on_refused: Callable[[Sequence[str]], None] = ignore_refused,
    on_progress: Callable[[Progress], None] = ignore_progress,
    stop: Callable[[], bool] = never_stop,
) -> dict[str, Any]:
    """Compare two commits and return the report, whose commit is the candidate's and whose `comparisons` are filled.

    Commits with equal code are measured with `measure_equal` only: what differs between them is noise.

    `variants` are those to compare, by default the `usual` ones of the project, or what each workload declares and tiers
    (`CaseSelection.variants`); one that a commit does not have is left out unless it was asked for, and one that both commits have no room for on
    the device is refused; DeviceMemoryError if nothing else is left. `workload_files` serve both. `effort` is
    how many times as long as usual is measured. Everything else as in `run_suite`.
    """
    chosen = find_suite(suite).with_effort(effort)
    refuse_unknown_device(device)
    choice, subjects, refused = _choose_for_both(reference, candidate, suite, cases, workload_files, device)
    refuse_unknown_variants([*variants, *usual], choice.known)
    on_refused(refused)
    equal_code = is_equal_code(reference, candidate)
    measured = () if equal_code and not measure_equal else choice.cases
    pairs = [(case, variant) for case in measured for variant in (variants or usual or choice.variants(case.workload))]

    with measured_device(device, is_held=holds_device) as on_device:
        with begin_run(choice, on_device, timeout_s, stop, on_progress, of_commit=choice.of_engine) as (
            run,
            settings,
        ):
            comparisons: list[Comparison] = []
            steps = Steps(len(pairs) * (1 + chosen.groups), on_progress)
            complete = True
            absent = 0
            no_room: list[DeviceMemoryError] = []
            try:
                for number, (case, variant) in enumerate(pairs):
                    comparison = Comparison(
                        case,
                        Member(variant, subjects[0], REFERENCE),
                        Member(variant, subjects[1], CANDIDATE),
                        with_twin=chosen.twin,
                    )
                    comparisons.append(comparison)
                    name = f"{case.name} {variant}"
                    steps.say("examine", f"{name}: checking gradients, counting memory", case.name)
                    steps.done += 1
                    group_steps = GroupSteps(steps, chosen.groups, name, case.name)
                    # What plain answers leave over is shared by those that follow; a variant that is absent has no time.
                    ends = run.started + chosen.comparisons_s(len(pairs) - absent)
                    most_s = (ends - time.monotonic()) / (len(pairs) - number)
                    try:
                        compare_members(
                            comparison, chosen, settings, group_steps.begin, min(most_s, chosen.comparison_s)
                        )
                    except DeviceMemoryError as error:  # the others may have room
                        comparisons.pop()
                        no_room.append(error)
                        on_refused([str(error)])
                    group_steps.end()
                    absent += bool(comparison.absent()) and not variants
                    for failure in comparison.failures.values():
                        failure.message = _told(failure.message, candidate)
            except StoppedError:
                complete = False
                if len(comparisons[-1].groups) < FEWEST_GROUPS:
                    comparisons.pop()
        for comparison in comparisons:
            fail_beside_failed(comparison, comparisons, choice.offers[comparison.case.workload].baseline)
        if complete and no_room and all(each.absent() for each in comparisons):
            raise max(no_room, key=lambda error: error.may_pass)
        if complete and not variants and comparisons and all(each.absent() for each in comparisons):
            reasons = [absence["message"] for each in comparisons if (absence := each.failure()) is not None]
            raise UsageError(f"no variant exists at both commits: {reasons[0]}")
        sentences = [] if variants else absences((each.case, each.absent()) for each in comparisons)
        comparisons = [each for each in comparisons if variants or not each.absent()]
        harness = {
            "suite": suite,
            "complete": complete,
            "partial": True,  # it measures what both commits have
            "refused": [*refused, *map(str, no_room)],
            "absent": sentences,
            "environments": {
                REFERENCE: reference.document(),
                CANDIDATE: candidate.document(),
                "shared": reference.environment == candidate.environment,
            },
            "equal_code": equal_code,
            "budget": {
                **chosen.budget(),
                "comparison_s": chosen.comparison_s,
                "comparisons_s": chosen.comparisons_s(len(pairs) - absent),
            },
            "job": dict(job) if job is not None else None,
        }
        measured_groups = [each.groups for each in comparisons]
        head = run.head(
            timed_waiting(measured_groups),
            harness,
            project=project,
            commit=dict(candidate.commit),
            reference=dict(reference.commit),
            device=on_device,
            slices=throttled_slices(measured_groups),
        )
        by_case = {case: [each for each in comparisons if each.case == case] for case in choice.cases}
        return {
            **head,
            "cases": [
                compared_case(case, choice.offers[case.workload], compared)
                for case, compared in by_case.items()
                if compared
            ],
            "comparisons": [
                {
                    **(without_claim(row) if equal_code else row),
                    "reference": reference.commit["sha"],
                    "candidate": candidate.commit["sha"],
                }
                for each in comparisons
                for row in comparison_rows(
                    each, may_say_same=chosen.may_say_same, is_busy=head["harness"]["quality"] != "clean"
                )
            ],
        }


def fail_beside_failed(comparison: Comparison, others: Sequence[Comparison], baseline: str | None) -> None:
    """Fail what was compared with the baseline's gradient where that was wrong, as a run does."""
    for other in others:
        if other is comparison or other.case != comparison.case or other.reference.variant != baseline:
            continue
        for side in (REFERENCE, CANDIDATE):
            examined, failure = comparison.examinations.get(side), other.failures.get(side)
            if (
                failure
                and failure.kind == "gradient"
                and examined
                and examined.gradient["oracle"] == f"variant {baseline}"
            ):
                comparison.failures[side] = VariantError(
                    "gradient", f"{baseline}, which it was compared with, has failed"
                )


def _choose_for_both(
    reference: BuiltCommit,
    candidate: BuiltCommit,
    suite: str,
    patterns: Sequence[str],
    files: Sequence[Path],
    device: str,
) -> tuple[CaseSelection, tuple[Subject, Subject], list[str]]:
    """The cases that both have, their subjects with the modules that have to be theirs, and what cannot be had."""
    try:
        choice = choose_for(candidate.subject, suite, patterns, files, device)
    except LoadError as error:
        message = _told(str(error), candidate)
        raise LoadError(f"commit {_sha(candidate)} cannot be measured: {message}", error.log) from error
    except UsageError as error:
        raise UsageError(_told(str(error), candidate)) from error
    if candidate.subject.has_engine:
        return choice, (reference.subject, candidate.subject), choice.refused
    try:
        older = choose_for(reference.subject, suite, patterns, files, device)
    except UsageError as error:
        message = _told(str(error), candidate).replace(FIX_IT, "")  # the candidate could load it
        text = f"the reference {_sha(reference)} has none of the workloads: {message}; pass --workloads with a file that both commits can run"
        raise (LoadError(text, error.log) if isinstance(error, LoadError) else UsageError(text)) from error
    for remark in choice.remarks(candidate.subject):
        raise UsageError(remark)
    for own, other, built in ((choice, older, reference), (older, choice, candidate)):
        if installed := sorted(set(own.imports) & set(other.modules)):
            raise UsageError(
                f"{_sha(built)} has no {installed[0]} of its own, so the installed one would be compared; "
                "compare with a commit that has it, or uninstall that one"
            )
    names = {case.name for case in older.cases}
    refused = [_told(each, candidate) for each in dict.fromkeys([*choice.refused, *older.refused])]
    cases = [case for case in choice.cases if case.name in names]
    if not cases:
        raise UsageError(
            f"no case exists at both commits: {_sha(reference)} has {_some(older.cases)}, "
            f"{_sha(candidate)} has {_some(choice.cases)}; pass --workloads with a file that both commits can run"
        )
    return (
        replace(choice, cases=cases),
        (
            replace(reference.subject, imports=tuple(older.imports)),
            replace(candidate.subject, imports=tuple(choice.imports)),
        ),
        refused,
    )


def _told(said: str, candidate: BuiltCommit) -> str:
    """A sentence without the folder in which the candidate's workloads lie, which is no place that whoever wrote them knows."""
    return said.replace(f"{candidate.files}/", "")


def _sha(built: BuiltCommit) -> str:
    return str(built.commit["sha"])[:10]


def _some(cases: Sequence[Case]) -> str:
    more = f" and {len(cases) - 1} more" if len(cases) > 1 else ""
    return f"{cases[0].name}{more}"


def is_equal_code(reference: BuiltCommit, candidate: BuiltCommit) -> bool:
    """True if two commits have equal measured files, or equal installed files, in one environment.

    A commit compared with itself is A/A.
    """
    ours, theirs = candidate.subject, reference.subject
    is_equal = (ours.digest is not None and ours.digest == theirs.digest) or (
        ours.code is not None and ours.code == theirs.code
    )
    return (
        is_equal
        and reference.environment == candidate.environment
        and reference.commit["sha"] != candidate.commit["sha"]
    )


def without_claim(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """A comparison of two commits with equal code: whatever differs is noise."""
    is_claim = row["outcome"] in {"faster", "slower", "less", "more"}
    return {**row, "outcome": "ambiguous"} if is_claim else row


DECIDING_METRICS = ("time", "array_bytes", "array_allocs", "peak_bytes", "native_bytes", "gpu_bytes")
"""More of these is a regression. Requests of CPython's allocators change with any line of Python: shown, but they accuse
nobody."""


def regressions(report: dict[str, Any]) -> list[dict[str, Any]]:
    """The comparisons that say that the candidate is slower or uses more memory."""
    return [
        row
        for row in report["comparisons"]
        if row["metric"] in DECIDING_METRICS and row["outcome"] in {"slower", "more"}
    ]


def failures(report: dict[str, Any]) -> list[dict[str, Any]]:
    """The comparisons that could not be made, or whose gradient was wrong."""
    return [row for row in report["comparisons"] if row["outcome"] == "failed"]

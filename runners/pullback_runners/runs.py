"""One run: all groups and counts of some cases at one commit on one machine, as a report."""

import importlib.util
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pullback_runners.errors import UsageError
from pullback_runners.measurement.device import MeasuredDevice, measured_device
from pullback_runners.measurement.examination import examine, start_examination
from pullback_runners.measurement.instructions import count_instructions, refuse_without_valgrind
from pullback_runners.measurement.lockstep import Group
from pullback_runners.measurement.member import Member
from pullback_runners.measurement.oracle_process import OracleProcess
from pullback_runners.measurement.sequential_sampling import FEWEST_GROUPS, collect_groups
from pullback_runners.measurement.subject import INSTALLED, Subject, engine_subject
from pullback_runners.measurement.subject_cases import CaseSelection, choose_for
from pullback_runners.measurement.worker_process import StoppedError, WorkerSettings
from pullback_runners.peers.devices import peers_for
from pullback_runners.progress import GroupSteps, Progress, Steps, ignore_progress
from pullback_runners.projects.subjects import engine_digest
from pullback_runners.report import (
    ENGINE_PROJECT,
    Attribution,
    CaseResult,
    absences,
    belonging_of_engine,
    belonging_of_workloads,
    case_document,
)
from pullback_runners.report.run import Run
from pullback_runners.suites import Suite, find_suite
from pullback_runners.variants import TIERS, refuse_unknown_device, refuse_unknown_variants, why_no_form
from pullback_runners.workloads import CPU, Case, find_workload

if TYPE_CHECKING:
    from pullback_runners.measurement.zygote_process import Zygotes


def never_stop() -> bool:
    """Run to the end."""
    return False


def ignore_refused(_: Sequence[str]) -> None:
    """Leave it to the report."""


@contextmanager
def begin_run(
    choice: CaseSelection,
    device: MeasuredDevice | None,
    timeout_s: float,
    stop: Callable[[], bool],
    on_progress: Callable[[Progress], None],
    *,
    of_commit: bool,
) -> Iterator[tuple[Run, WorkerSettings]]:
    """A run and the settings of its processes, which keep gradients in a folder that is removed at the end.

    Those of a commit's engine (`of_commit`) and of workloads of others are checked by a process that imports nothing of what is measured.
    """
    on_progress(Progress("preflight", 0, 1, "looking at the machine"))
    run = Run()
    checks_outside = of_commit or any(offer.is_foreign for offer in choice.offers.values())
    with tempfile.TemporaryDirectory(prefix="pullback-") as folder, OracleProcess(Path(folder)) as oracle:
        if checks_outside:
            oracle.start()
        yield (
            run,
            WorkerSettings(
                choice.files,
                run.preflight.pinned_cpu,
                timeout_s,
                stop,
                modules=choice.modules,
                kept=Path(folder),
                check=oracle.check if checks_outside else None,
                baselines={name: offer.baseline for name, offer in choice.offers.items()},
                device=device,
            ),
        )


def run_suite(
    suite: str = "quick",
    cases: Sequence[str] = (),
    *,
    device: str = CPU,
    variants: Sequence[str] = (),
    usual: Sequence[str] = (),
    engine_dir: Path | None = None,
    subject: Subject | None = None,
    baseline: str | None = None,
    owner: Attribution | None = None,
    commit: Mapping[str, Any] | None = None,
    project: str | None = None,
    job: Mapping[str, Any] | None = None,
    workload_files: Sequence[Path] = (),
    timeout_s: float = 60.0,
    with_instructions: bool = False,
    partial: bool = False,
    holds_device: bool = False,
    on_refused: Callable[[Sequence[str]], None] = ignore_refused,
    on_progress: Callable[[Progress], None] = ignore_progress,
    stop: Callable[[], bool] = never_stop,
) -> dict[str, Any]:
    """Measure a suite and return its report, a plain dictionary of format `pullback-report`.

    `subject` is a commit that was built, or the files of a project as they are; `baseline` is the
    variant that ratios are against, `none` for no ratios, by default what each workload says.
    `variants` are asked for by name, so that one that is unavailable has failed; `usual` are those that a project measures where
    none are named, and one that a case does not have is left out there.
    `cases` are names or globs (`dense_bias_act*`), none means all of the suite; `device` is where they are computed: on
    `cuda` variants are those that have a form for it, by default all peers that do, and where `unfused` has none there are
    no ratios; `engine_dir` is a checkout whose engine
    is measured instead of the installed one; `commit` is the report's commit object. Where neither is given and workloads
    of a file of somebody's own are measured, project and commit are those of the repository that the file lies in, else
    the engine's. `with_instructions` adds the metric `instructions`, counted by valgrind. `partial`: the variants are
    a part of the usual ones, and reports say so, as for `cases`. `holds_device`: the caller has the lock of the
    device, which is taken otherwise. `stop` is asked often: once it
    answers true the run ends within a slice, and the report holds the cases finished so far, with `harness.complete`
    false. A case that fails is in the report with its reason. Names and files that cannot be had are sentences in
    `harness.refused`, told to `on_refused` before anything is measured, and variants that a case does not have are sentences in `harness.absent`; where nothing is left to measure, and for other wrong arguments, the sentence is raised
    (`pullback_runners.errors.UsageError`).
    """
    chosen_suite = find_suite(suite)
    refuse_unknown_device(device)
    choice = choose_for(subject or INSTALLED, suite, cases, workload_files, device)
    named = [baseline] if baseline not in {None, "none"} else []
    refuse_unknown_variants([*variants, *usual, *named], choice.known)
    if with_instructions:
        _refuse_instructions(device)
    refused = [*choice.refused, *_without_form(variants, device)]
    wanted = {case: _wanted(case, choice, chosen_suite, variants or usual, baseline, device) for case in choice.cases}
    chosen = {
        case: [variant for variant in names if why_no_form(variant, device) is None] for case, names in wanted.items()
    }
    if not any(chosen.values()):
        raise UsageError(refused[0] if refused else "no variant is left to be measured; name one with --variant")
    everything = dict.fromkeys(variant for names in wanted.values() for variant in names)
    without_form = _without_form([variant for variant in everything if variant not in variants], device)
    with measured_device(device, is_held=holds_device) as on_device:
        engine = _engine_folder(engine_dir)
        measured = (
            belonging_of_engine(_package(engine)) if commit is None else Attribution(ENGINE_PROJECT, dict(commit))
        )
        if owner is not None:
            measured = owner if subject is not None and subject.has_engine else measured
        elif engine is None and commit is None and (own := _files_of_own(choice.cases)):
            owner = belonging_of_workloads(own, _package(None)) or measured
        owner = owner or measured
        on_refused([*refused, *choice.remarks(subject)])

        if subject is None:
            subject = INSTALLED if engine is None else engine_subject(engine)
            # Of a file of somebody's own nobody knows which files of its repository it runs.
            subject = replace(subject, digest=engine_digest(_package(engine)) if owner is measured else None)
        is_of_commit = bool(subject.paths) and subject.has_engine
        with begin_run(choice, on_device, timeout_s, stop, on_progress, of_commit=is_of_commit) as (run, settings):
            steps = Steps(len(choice.cases) * (1 + chosen_suite.groups), on_progress)
            results: list[CaseResult] = []
            complete = True
            coming = [
                CaseResult(
                    case,
                    chosen[case],
                    _baseline(case, choice, baseline),
                    subject,
                    with_twin=chosen_suite.twin,
                    offer=choice.offers[case.workload],
                )
                for case in choice.cases
            ]
            examinations = _Examinations(coming, settings)
            try:
                for result in coming:
                    results.append(result)
                    _measure_case(
                        result,
                        examinations,
                        chosen_suite,
                        by_name=frozenset(variants),
                        with_instructions=with_instructions,
                        settings=settings,
                        steps=steps,
                    )
            except StoppedError:
                complete = False
                if len(results[-1].groups) < FEWEST_GROUPS:  # no interval can be made of it
                    results.pop()
            finally:
                examinations.end()
        measured_groups = [result.groups for result in results]
        harness = {
            "engine": measured.commit,
            "workload_files": list(owner.files),
            "suite": suite,
            "complete": complete,
            "partial": partial or bool(cases) or not complete,
            "refused": refused,
            "absent": [*without_form, *absences((result.case, result.absent) for result in results)],
            "budget": chosen_suite.budget(),
            "job": dict(job) if job is not None else None,
        }
        head = run.head(
            timed_waiting(measured_groups),
            harness,
            project=project or owner.project,
            commit=owner.commit,
            device=on_device,
            slices=throttled_slices(measured_groups),
        )
        is_busy = head["harness"]["quality"] != "clean"
        return {
            **head,
            "cases": [
                # Where no variant has a form of a workload for the device there is nothing to show; `absent` says so.
                case_document(result, may_say_same=chosen_suite.may_say_same, is_busy=is_busy)
                for result in results
                if result.variants
            ],
            "comparisons": [],
        }


def list_cases(
    suite: str,
    cases: Sequence[str] = (),
    workload_files: Sequence[Path] = (),
    device: str = CPU,
    subject: Subject | None = None,
) -> tuple[list[tuple[Case, str]], list[str]]:
    """Return the cases that `run_suite` would measure, each with its workload's sentence, and what cannot be had."""
    find_suite(suite)
    refuse_unknown_device(device)
    choice = choose_for(subject or INSTALLED, suite, cases, workload_files, device)
    return [(case, choice.offers[case.workload].sentence) for case in choice.cases], choice.refused


class _Examinations:
    """The examinations of a run's cases, in order."""

    def __init__(self, results: Sequence[CaseResult], settings: WorkerSettings) -> None:
        self._coming = list(reversed(results))
        self._settings = settings
        self._started: Zygotes | None = None

    def start_next(self) -> None:
        """Start the next one beside turns, on the CPUs that are left, if it is not there yet; on a device it would compute there as well."""
        if self._coming and self._started is None and self._settings.device is None:
            result = self._coming[-1]
            self._started = start_examination(result.case, _members(result), self._settings)

    def examine_next(self) -> None:
        """Fill in the results of the next one."""
        result, (started, self._started) = self._coming.pop(), (self._started, None)
        result.examinations, result.failures = examine(result.case, _members(result), self._settings, started=started)

    def end(self) -> None:
        """End the one that was started and nobody waits for."""
        if self._started is not None:
            self._started.end()


def _members(result: CaseResult) -> list[Member]:
    return [Member(variant, result.subject) for variant in result.variants]


def _measure_case(
    result: CaseResult,
    examinations: _Examinations,
    suite: Suite,
    *,
    by_name: frozenset[str],
    with_instructions: bool,
    settings: WorkerSettings,
    steps: Steps,
) -> None:
    """Examine a case, then time it in groups until the suite is satisfied.

    A variant of the suite that this engine or workload does not have (a tier that came later) is absent; one that was
    asked for by name has failed.
    """
    case = result.case
    steps.say("examine", f"{case.name}: checking the gradient, counting memory", case.name)
    members = _members(result)
    examinations.examine_next()
    result.leave_out_unavailable(by_name)  # the baseline like others: where it is not to be had there are no ratios
    if with_instructions:
        steps.say("examine", f"{case.name}: counting instructions, which takes minutes", case.name)
        alive = [member for member in members if member.name in result.examinations]
        for name, instructions in count_instructions(case, alive, settings).items():
            result.examinations[name].counts["instructions"] = instructions
    steps.done += 1
    group_steps = GroupSteps(steps, suite.groups, case.name, case.name)

    def members_left() -> list[Member]:
        if result.groups:
            result.failures |= result.groups[-1].failures
        return result.members()

    collect_groups(
        result.groups,
        case,
        members_left,
        suite,
        settings,
        is_ambiguous=lambda: result.is_ambiguous(may_say_same=suite.may_say_same),
        tell=group_steps.begin,
        at_last=examinations.start_next,
    )
    members_left()
    group_steps.end()


def _refuse_instructions(device: str) -> None:
    if device != CPU:
        raise UsageError(f"--instructions counts those of a CPU; leave it out, or --device {device}")
    refuse_without_valgrind()


def _without_form(variants: Iterable[str], device: str) -> list[str]:
    """A sentence for each reason why some of these variants cannot compute on a device."""
    reasons: dict[str, list[str]] = {}
    for variant in variants:
        reason = why_no_form(variant, device)
        if reason is not None:
            reasons.setdefault(reason, []).append(variant)
    return [
        f"{' and '.join(filter(None, [', '.join(names[:-1]), names[-1]]))} "
        f"{'takes' if len(names) == 1 else 'take'} part in no case: {reason}"
        for reason, names in reasons.items()
    ]


def _wanted(
    case: Case, choice: CaseSelection, suite: Suite, variants: Sequence[str], baseline: str | None, device: str
) -> list[str]:
    """The variants to measure a case by, the baseline first; by default those of the suite and what the workload declares."""
    offer = choice.offers[case.workload]
    if offer.is_foreign:
        usual = [*(each for each in suite.variants if offer.has_numpy and each in TIERS), *offer.variants]
    else:
        usual = [*suite.variants, *(peers_for(device) if device != CPU else ())]
    first = _baseline(case, choice, baseline)
    return list(dict.fromkeys([*([first] if first is not None else []), *(variants or usual)]))


def _baseline(case: Case, choice: CaseSelection, baseline: str | None) -> str | None:
    return (None if baseline == "none" else baseline) if baseline else choice.offers[case.workload].baseline


def _engine_folder(engine_dir: Path | None) -> Path | None:
    """The folder that holds the package `pullback`: a checkout's `engine`, or the folder given itself."""
    if engine_dir is None:
        return None
    for folder in (engine_dir / "engine", engine_dir):
        if (folder / "pullback" / "__init__.py").is_file():
            return folder.resolve()
    raise UsageError(f"no engine in {engine_dir}; give a checkout of Pullback, which contains engine/pullback")


def _package(engine: Path | None) -> Path:
    """The folder of the package `pullback` that is measured."""
    if engine is not None:
        return engine / "pullback"
    installed = importlib.util.find_spec("pullback")
    return Path(installed.origin).parent if installed and installed.origin else Path.cwd()


def _files_of_own(cases: Sequence[Case]) -> list[Path]:
    """The files of workloads that are not Pullback's."""
    chosen = [find_workload(name) for name in {case.workload for case in cases}]
    return sorted({Path(each.file).resolve() for each in chosen if each.is_foreign})


def timed_waiting(measured: Sequence[Sequence[Group]]) -> float | None:
    """Share of the time of all timed slices that their processes waited for a CPU."""
    timings = [timing for groups in measured for group in groups for timing in group.timings.values()]
    known = [timing for timing in timings if None not in timing.waited_s]
    waited_s, ran_s = map(sum, zip(*(timing.waiting() for timing in known), strict=True)) if known else (0.0, 0.0)
    return waited_s / (waited_s + ran_s) if ran_s else None


def throttled_slices(measured: Sequence[Sequence[Group]]) -> tuple[int, int]:
    """The number of timed slices, and of those during which the device was throttled."""
    timings = [timing for groups in measured for group in groups for timing in group.timings.values()]
    return sum(len(timing.wall_s) for timing in timings), sum(len(timing.throttled) for timing in timings)


__all__ = ["Progress", "ignore_refused", "list_cases", "never_stop", "run_suite"]

"""Queries of a check: the merge base of two commits, judgements of both, missing results, machines that could measure.

The base is the merge base of the head and the branch or commit that is named. Nothing else takes its place: where it has no
results, that is the answer.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Final, LiteralString

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.background_threads import in_background, large_reads
from pullback_service.checks.budgets import over_budget
from pullback_service.checks.findings import (
    KINDS,
    OF_THE_REFERENCE,
    ComparableCounts,
    Finding,
    FindingKind,
    Measurement,
    OtherMachineOutcome,
    comparable,
    failed,
    flags_of,
    gone,
    not_in_turns,
    wrong_gradients,
)
from pullback_service.commits.queries import commit_by_sha, find_merge_base, parents_of
from pullback_service.commits.ref_names import NamedCommit, named_commit, nearest_measured
from pullback_service.commits.trunk import trunk_of
from pullback_service.comparisons import queries as comparing
from pullback_service.comparisons.compared_commits import MANY_POINTS, points_at, uncertainty
from pullback_service.comparisons.judgements import NO_SERIES, Outcomes
from pullback_service.comparisons.queries import CommitComparison, Names, SeriesDetail
from pullback_service.comparisons.vectorized_judging import EVIDENCE, OUTCOMES
from pullback_service.errors import FieldError, NotFoundError
from pullback_service.ids import ProjectId
from pullback_service.jobs.labels import CPU, device_of, place_of
from pullback_service.jobs.queries import STANDING, JobChoice, StoredJob, list_jobs
from pullback_service.models.agents import SILENT_AFTER_S
from pullback_service.models.commits import Commit
from pullback_service.models.projects import Project
from pullback_service.projects.queries import project_by_name
from pullback_service.series.filters import SeriesChoice

MOST_FINDINGS = 500
MOST_JOBS = 50
USUAL_SUITE = "quick"
EXTERNAL = "external"
"""The kind of variants that another tool measured, and agents cannot."""
_OUR_SUITE = re.compile(r"(trial|quick|standard|full)(:|$)")

# A run with the same suite on the same device of the machine would have measured it; of another tool, one of the same format.
_MEASURED_ALIKE: Final[LiteralString] = """
SELECT DISTINCT series.case_id, series.machine_id, series.variant
  FROM point
  JOIN series ON series.id = point.series_id
  JOIN report ON report.id = point.report_id
 WHERE point.commit_id = %(base)s AND point.series_id = ANY (%(series)s::bigint[])
   AND EXISTS (SELECT FROM report newer
                WHERE newer.commit_id = %(head)s AND newer.machine_id = report.machine_id
                  AND newer.device IS NOT DISTINCT FROM report.device
                  AND newer.suite IS NOT DISTINCT FROM report.suite AND newer.points + newer.failures > 0
                  AND newer.status <> 'withdrawn' AND NOT newer.partial
                  AND (newer.suite IS NOT NULL OR newer.format = report.format))
"""
_SUITES: Final[LiteralString] = """
SELECT suite FROM report
 WHERE commit_id IN (%(head)s, %(base)s) AND suite IS NOT NULL
 ORDER BY commit_id = %(head)s DESC, received_at DESC
 LIMIT 20
"""
# Whoever measured commits of the project may do so again; or it says where its commits come from.
_MEASURING_DEVICES: Final[LiteralString] = """
SELECT DISTINCT coalesce(labels ->> 'device', 'cpu')
  FROM agent
 WHERE (project_id IS NULL OR project_id = %(project)s) AND refuses IS NULL
   AND (last_seen_at > now() - make_interval(secs => %(silent_after_s)s)
        OR EXISTS (SELECT FROM attempt WHERE attempt.agent_id = agent.id AND attempt.state IN ('leased', 'running')))
   AND (EXISTS (SELECT FROM project WHERE id = %(project)s AND (repository IS NOT NULL OR mirror IS NOT NULL))
        OR EXISTS (SELECT FROM job WHERE project_id = %(project)s AND state = 'done'))
"""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The answer to a check. `base` is the merge base of `head` and `against`; None where it is not known.

    `lacks` says why there are no or too few data for a verdict, with the remedy; it is empty if there are enough.
    `not_in_turns` counts series that agents could measure in turns and nobody has; `suite` is the suite of a job for
    that, and `wants_job_on` the devices of agents that could run it and have no such job yet.
    """

    project: str
    against: str
    head: NamedCommit
    can_measure: bool
    suite: str
    lacks: Sequence[str]
    notes: Sequence[str]
    base: NamedCommit | None = None
    judged: CommitComparison | None = None
    findings: Sequence[Finding] = ()
    counts: Mapping[FindingKind, int] = field(default_factory=dict)
    equal_code: bool = False
    not_in_turns: int = 0
    wants_job_on: Sequence[str] = ()
    jobs: Sequence[StoredJob] = ()


@dataclass(frozen=True, slots=True)
class _MergeBase:
    """The merge base of a head and what it is compared with, or why it is not known."""

    base: Commit | None = None
    branch: str | None = None
    lacks: Sequence[str] = ()
    notes: Sequence[str] = field(default=())


@dataclass(frozen=True, slots=True)
class Measure:
    """The work of a job for a check: a suite, None for the one that was measured, and names that narrow it."""

    suite: str | None = None
    cases: Sequence[str] = ()
    variants: Sequence[str] = ()


async def check(session: AsyncSession, project: str, head: str, base: str | None, measure: Measure) -> CheckResult:
    """A head against its merge base. Index: as `named_commit`, `find_merge_base`, `compare` and `show`."""
    stored = await project_by_name(session, project)
    project_id = ProjectId(stored.id)
    against = base or await trunk_of(session, stored.id)
    candidate = await _named(session, project_id, head, where="head")
    merge = await _merge_base(session, project_id, candidate, await _named(session, project_id, against, where="base"))
    devices = await _measuring_devices(session, project_id)
    suite = measure.suite or await _suite(session, stored, merge.base or candidate.commit, candidate.commit)
    if merge.base is None:
        return CheckResult(
            project=stored.name,
            against=against,
            head=candidate,
            can_measure=bool(devices),
            suite=suite,
            lacks=merge.lacks,
            notes=merge.notes,
        )
    points = await points_at(session, (merge.base.id, candidate.commit.id))
    async with large_reads.after(session) if points > MANY_POINTS else nullcontext():
        judged = await comparing.compare(session, merge.base, candidate.commit, SeriesChoice(project=project))
        outcomes = judged.outcomes
        failing = list(wrong_gradients(judged.inputs.failures, merge.base.id, candidate.commit.id))
        async with statements.together(session, read_in=in_background) as ask:
            named = comparing.names_by_id(
                ask,
                {*outcomes.case_id.tolist(), *(case_id for case_id, *_ in failing)},
                {*outcomes.machine_id.tolist(), *(machine_id for _, machine_id, *_ in failing)},
            )
        names = named()
        equal_code = _is_equal_code(judged)
        findings, counts = await _findings(session, project_id, judged, names, failing)
        compares = ComparableCounts() if equal_code else await in_background(comparable, outcomes)
        asked_for, apart = await in_background(_not_in_turns, judged, names, measure)
    lacks = await _lacks(session, project_id, merge.base, candidate.commit, outcomes, names, against)
    lacks = lacks or [*_too_little(compares, merge.base, candidate.commit)]
    jobs = await _jobs(session, project, candidate.commit, merge.base)
    devices &= asked_for or {CPU}
    return CheckResult(
        project=stored.name,
        against=against,
        head=candidate,
        base=NamedCommit(merge.base, merge.branch),
        judged=judged,
        findings=findings,
        counts=counts,
        equal_code=equal_code,
        not_in_turns=apart.total(),
        can_measure=bool(devices),
        suite=suite,
        wants_job_on=[
            device
            for device in sorted(devices)
            if (device in apart or lacks)
            and not _has_standing([each for each in jobs if device_of(each.job.requires) == device], suite, measure)
        ],
        jobs=jobs,
        lacks=lacks,
        notes=[*merge.notes, *([] if lacks else _not_compared(compares))],
    )


def _not_in_turns(judged: CommitComparison, names: Names, measure: Measure) -> tuple[set[str], Counter[str]]:
    """The devices of the cases that a job would measure, and the number of its series that were not measured in turns on each."""
    asked_for = {
        each.id: each.device or CPU
        for each in names.cases.values()
        if _is_named(each.label, each.workload, measure.cases)
    }
    devices, outcomes = {*asked_for.values()}, judged.outcomes
    if _is_equal_code(judged):
        return devices, Counter()
    of_variants = outcomes.of_shapes(
        [not measure.variants or shape.variant in measure.variants for shape in outcomes.shapes]
    )
    apart = outcomes[not_in_turns(outcomes, asked_for, EXTERNAL) & of_variants]
    return devices, Counter(asked_for[case_id] for case_id in apart.case_id.tolist())


async def _named(session: AsyncSession, project_id: ProjectId, name: str, *, where: str) -> NamedCommit:
    try:
        return await named_commit(session, project_id, name, where=where, measured=False)
    except NotFoundError as error:
        field_error = FieldError(path=f"query.{where}", message=error.detail)
        raise NotFoundError(error.detail, errors=[field_error], missing=error.missing) from error


async def _merge_base(
    session: AsyncSession, project_id: ProjectId, candidate: NamedCommit, named: NamedCommit
) -> _MergeBase:
    """The merge base of both; of a commit that is on the base already, its first parent."""
    head, other = candidate.commit, named.commit
    called = named.branch or other.sha
    merge_base = await find_merge_base(session, project_id, other.sha, head.sha)
    if merge_base.sha is None:
        return _MergeBase(
            lacks=[
                f"No common ancestor of {called!r} and {head.sha} is known: send the history of both with `pullback log`."
            ]
        )
    if merge_base.sha != head.sha:
        return _MergeBase(
            await commit_by_sha(session, project_id, merge_base.sha), named.branch, notes=[*uncertainty(merge_base)]
        )
    note = f"Commit {head.sha} is on {called!r} already, so it is compared with its first parent."
    parents = (await parents_of(session, [head.id])).get(head.id, [])
    try:
        return _MergeBase(await commit_by_sha(session, project_id, parents[0]), notes=[note])
    except (IndexError, NotFoundError):
        return _MergeBase(
            lacks=[f"The first parent of {head.sha} is not known: send its history with `pullback log`."], notes=[note]
        )


def _is_equal_code(judged: CommitComparison) -> bool:
    """True if all that was measured at both commits is of the same files."""
    outcomes = judged.outcomes
    return judged.equal_code == int((outcomes.has_reference & outcomes.has_candidate).sum()) > 0


async def _findings(
    session: AsyncSession,
    project_id: ProjectId,
    judged: CommitComparison,
    names: Names,
    failing: Sequence[tuple[int, int, str | None, str]],
) -> tuple[Sequence[Finding], Mapping[FindingKind, int]]:
    """The findings, the gravest first and of each kind the largest, up to so many; and how many there are of each kind."""
    outcomes = judged.outcomes
    wrong = {(case_id, machine_id, variant) for case_id, machine_id, variant, _ in failing}
    findings: dict[FindingKind, list[Finding]] = {
        "wrong-gradient": [
            _whole("wrong-gradient", names, (case_id, machine_id, variant), message)
            for case_id, machine_id, variant, message in failing
        ],
        "missing": [
            _whole("missing", names, each, reason)
            for each, reason in (await _missing(session, judged)).items()
            if each not in wrong and (*each[:2], None) not in wrong
        ],
        "budget": list(await over_budget(session, project_id, judged.reference_id, judged.candidate_id)),
    }
    machines = {each.name: place for place, each in enumerate(names.machines.values())}
    cases = {each.label: place for place, each in enumerate(names.cases.values())}
    for kind in ("wrong-gradient", "missing"):
        findings[kind].sort(key=lambda each: (cases[each.case], each.variant or "", machines[each.machine]))
    counts: dict[FindingKind, int] = {kind: len(of_kind) for kind, of_kind in findings.items()}
    others = await in_background(_others, outcomes, names)
    for kind, flags in flags_of(outcomes).items():
        details = await comparing.show(session, judged, outcomes[flags][:MOST_FINDINGS])
        # No difference between equal files is the commit's, and nobody has to decide about it.
        kept = [each for each in details if not (kind == "ambiguous" and each.compared.is_equal_code)]
        findings[kind] = [_changed(kind, each, others) for each in kept]
        counts[kind] = int(flags.sum()) - (len(details) - len(kept))
    return [finding for kind in KINDS for finding in findings[kind]][:MOST_FINDINGS], counts


def _whole(kind: FindingKind, names: Names, measurement: tuple[int, int, str | None], reason: str) -> Finding:
    case_id, machine_id, variant = measurement
    case = names.cases[case_id]
    machine = names.machines[machine_id].name
    return Finding(kind, case.label, case.workload, variant, machine, device=case.device, reason=reason)


def _changed(
    kind: FindingKind,
    detail: SeriesDetail,
    others: Mapping[tuple[int, str, str], Sequence[tuple[int, OtherMachineOutcome]]],
) -> Finding:
    compared, judgement = detail.compared, detail.compared.judgement
    case_id, machine_id, variant, metric = compared.key
    return Finding(
        kind=kind,
        case=detail.case.label,
        workload=detail.case.workload,
        device=detail.case.device,
        variant=variant,
        variant_kind=compared.kind,
        machine=detail.machine.name,
        metric=metric,
        unit=compared.unit,
        direction="bigger" if compared.bigger_is_better else "smaller",
        outcome=judgement.outcome,
        evidence=judgement.evidence,
        base=None if compared.reference is None else compared.reference.value,
        head=None if compared.candidate is None else compared.candidate.value,
        ratio=judgement.ratio,
        provisional=judgement.provisional,
        reason=judgement.reason,
        elsewhere=[
            each
            for place, each in others.get((case_id, variant, metric), ())
            if place != machine_id and each.outcome != judgement.outcome
        ],
    )


def _others(
    outcomes: Outcomes, names: Names
) -> Mapping[tuple[int, str, str], Sequence[tuple[int, OtherMachineOutcome]]]:
    """The judgements of each case, variant and metric, by machine, where there are several machines."""
    if len(names.machines) < 2:
        return {}
    by_series: dict[tuple[int, str, str], list[tuple[int, OtherMachineOutcome]]] = {}
    codes = zip(outcomes.named(), outcomes.outcome.tolist(), outcomes.evidence.tolist(), strict=True)
    for (case_id, machine_id, variant, metric), outcome, evidence in codes:
        if OUTCOMES[outcome] != "not_comparable":
            said = OtherMachineOutcome(names.machines[machine_id].name, OUTCOMES[outcome], EVIDENCE[evidence])
            by_series.setdefault((case_id, variant, metric), []).append((machine_id, said))
    return by_series


async def _missing(session: AsyncSession, judged: CommitComparison) -> Mapping[Measurement, str]:
    """Results that the base has and the head has not, with the reason: it failed, or a run of the same suite there was without it.

    Index: ix_point_commit_id_series_id, ix_report_commit_id.
    """
    reasons: dict[Measurement, str] = {}
    for case_id, machine_id, variant in failed(judged.outcomes):
        key = (case_id, machine_id, variant, "")
        failure, _ = judged.inputs.failures_of(key, judged.reference_id, judged.candidate_id)
        if failure is None or not failure.message.startswith(OF_THE_REFERENCE):
            reason = "It failed when both were compared." if failure is None else failure.message
            reasons[case_id, machine_id, variant] = reason
    absent = set(gone(judged.outcomes)) - set(reasons)
    if absent:
        outcomes = judged.outcomes
        series = [
            series_id
            for (case_id, machine_id, variant, _), series_id in zip(
                outcomes.named(), outcomes.reference_series_id.tolist(), strict=True
            )
            if series_id != NO_SERIES and (case_id, machine_id, variant) in absent
        ]
        values = {"base": judged.reference_id, "head": judged.candidate_id, "series": series}
        for case_id, machine_id, variant in await statements.rows(session, _MEASURED_ALIKE, values):
            reasons[case_id, machine_id, variant] = "The same suite ran on this machine without it."
    return reasons


async def _lacks(
    session: AsyncSession,
    project_id: ProjectId,
    base: Commit,
    head: Commit,
    outcomes: Outcomes,
    names: Names,
    against: str,
) -> Sequence[str]:
    """The reason why nothing is comparable, with the remedy. Index: as `nearest_measured`."""
    if not outcomes.having("not_comparable").all():
        return []
    reasons = []
    if not outcomes.has_reference.any():
        nearest = await nearest_measured(session, project_id, base)
        instead = "" if nearest is None else f" Its nearest ancestor with results is {nearest}: compare with that."
        reasons.append(
            f"Commit {base.sha}, the merge base of {head.sha[:10]} and {against!r}, has no results: measure it.{instead}"
        )
    if not outcomes.has_candidate.any():
        reasons.append(f"Commit {head.sha} has no results: measure it.")
    if not reasons:
        machines = [
            ", ".join(
                sorted(
                    {
                        place_of(names.machines[machine_id].name, names.cases[case_id].device)
                        for case_id, machine_id in zip(
                            outcomes.case_id[has].tolist(), outcomes.machine_id[has].tolist(), strict=True
                        )
                    }
                )
            )
            for has in (outcomes.has_reference, outcomes.has_candidate)
        ]
        reasons.append(
            f"Nothing that was measured at {base.sha[:10]} (on {machines[0]}) can be compared with what was measured at "
            f"{head.sha[:10]} (on {machines[1]}): measure both on one machine and device, with one suite."
        )
    return reasons


def _too_little(compares: ComparableCounts, base: Commit, head: Commit) -> Iterator[str]:
    """The reason why most series that both commits have are not comparable."""
    if compares.apart > compares.compared:
        yield (
            f"{compares.apart} of {compares.compared + compares.apart} series that both commits have cannot be compared: they were "
            f"measured on other machines or at other levels; measure {base.sha[:10]} again as {head.sha[:10]} was."
        )


def _not_compared(compares: ComparableCounts) -> Iterator[str]:
    """The number of series of the base that say nothing of the head, where there are any."""
    if compares.apart or compares.absent:
        yield (
            f"Not compared: {compares.apart + compares.absent} of {sum(compares)} series of the base, {compares.absent} of them not "
            f"measured at the head, {compares.apart} on other machines or at other levels."
        )


async def _measuring_devices(session: AsyncSession, project_id: ProjectId) -> set[str]:
    """The devices of agents that are there for jobs of the project. Index: agents are few; ix_job_commit."""
    values = {"project": project_id, "silent_after_s": SILENT_AFTER_S}
    return {device for (device,) in await statements.rows(session, _MEASURING_DEVICES, values)}


async def _suite(session: AsyncSession, project: Project, base: Commit, head: Commit) -> str:
    """The suite that was measured at the commits, else the project's own. Index: ix_report_commit_id."""
    rows = await statements.rows(session, _SUITES, {"base": base.id, "head": head.id})
    measured = next((suite for (suite,) in rows if _OUR_SUITE.match(suite)), None)
    return str(measured or (project.backfill or {}).get("suite") or USUAL_SUITE)


async def _jobs(session: AsyncSession, project: str, head: Commit, base: Commit) -> Sequence[StoredJob]:
    """The newest jobs that compare the two. Index: ix_job_commit."""
    choice = JobChoice(project=project, commit=head.sha, kind="compare")
    jobs = await list_jobs(session, choice=choice, before_id=None, limit=MOST_JOBS)
    return [each for each in jobs if each.reference == base.sha]


def _covers(measured: Sequence[str], expected: Sequence[str]) -> bool:
    """True if a job that is narrowed to some names, or to none, measures all that are wanted."""
    return not measured or (bool(expected) and set(expected) <= set(measured))


def _is_named(label: str, workload: str, patterns: Sequence[str]) -> bool:
    """True if a case is one of those that are named: by its name, its workload, or a glob, in which brackets stand for themselves."""
    return not patterns or any(
        pattern in {label, workload} or fnmatchcase(label, pattern.replace("[", "[[]")) for pattern in patterns
    )


def _has_standing(jobs: Collection[StoredJob], suite: str, measure: Measure) -> bool:
    """True if a job measures, or has measured, no less than what is asked for; those of incidents measure a few cases."""
    return any(
        each.job.suite == suite
        and each.job.state in STANDING
        and _covers(each.job.cases, measure.cases)
        and _covers(each.job.variants, measure.variants)
        for each in jobs
    )

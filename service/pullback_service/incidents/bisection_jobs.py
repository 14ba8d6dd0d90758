"""Jobs of bisections, one after the other; stored results are used before anything is measured."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, LiteralString

from sqlalchemy import func, select, update
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.sql.functions import now

from pullback_service import statements
from pullback_service.incidents.announcements import announce, note_event
from pullback_service.incidents.bisection import (
    EXPLAINED,
    LONGER,
    Answer,
    Culprit,
    KnownAnswer,
    Probe,
    next_step,
    share_of,
    shown_by,
    side_of,
)
from pullback_service.incidents.changes import Change, Places
from pullback_service.incidents.confirmation import (
    GIVEN_UP_AFTER_DAYS,
    NOBODY_CAME,
    Budget,
    MeasurementMethod,
    PlannedComparison,
    queue_comparison,
    shown_most,
)
from pullback_service.incidents.detection_inputs import OF_ANCHOR, Pair
from pullback_service.jobs.queries import UNFINISHED
from pullback_service.models.incidents import Bisection, Incident, IncidentJob, StoredChange
from pullback_service.models.jobs import Job

BISECTED: Final = frozenset({"worse", "wrong_gradient", "failed"})
"""Kinds of incidents that are bisected automatically."""

_PAIRS: Final[LiteralString] = f"""
SELECT reference_id, commit_id, log_ratio, low, high
  FROM step
 WHERE series_id = %(series)s AND commit_id = ANY (%(commits)s::bigint[]) AND evidence = 'paired' AND NOT stale
   AND log_ratio IS NOT NULL AND NOT (via = 'compared' AND {OF_ANCHOR})
"""  # noqa: S608 - our own words
_COUNTS: Final[LiteralString] = """
SELECT commit_id, value FROM reading
 WHERE series_id = %(series)s AND commit_id = ANY (%(commits)s::bigint[]) AND NOT dirty
"""
_NAMED: Final[LiteralString] = """
SELECT commit.id, commit.sha, parent.parent_sha
  FROM commit
  LEFT JOIN commit_parent parent ON parent.commit_id = commit.id AND parent.position = 0
 WHERE commit.id = ANY (%(commits)s::bigint[])
"""
_RUNS: Final[LiteralString] = """
SELECT DISTINCT commit_id, true
  FROM failure
 WHERE case_id = %(case)s AND machine_id = %(machine)s AND commit_id = ANY (%(commits)s::bigint[])
   AND (variant = %(variant)s OR variant IS NULL OR %(variant)s::text IS NULL)
 UNION
SELECT DISTINCT reading.commit_id, false
  FROM series
  JOIN reading ON reading.series_id = series.id
 WHERE series.case_id = %(case)s AND series.machine_id = %(machine)s AND reading.commit_id = ANY (%(commits)s::bigint[])
   AND (series.variant = %(variant)s OR %(variant)s::text IS NULL)
"""


def commits_between(incident: Incident, places: Places) -> int:
    """The number of commits that may have caused an incident; 0 if the range is not on the trunk any more."""
    if incident.reference_id not in places or incident.commit_id not in places:
        return 0
    return places[incident.commit_id] - places[incident.reference_id]


def leading(changes: Sequence[Change], measuring: Collection[Pair], places: Places) -> Change | None:
    """The change by which an incident is bisected, of those that an agent can measure.

    Counts before measurements, then the narrowest range, then the largest; not a budget, which has no size of the change.
    """
    claimed = [
        change
        for change in changes
        if change.standing == "claimed"
        and change.pair in measuring
        and change.kind != "unsteady"
        and change.evidence != "budget"
    ]

    def rank(change: Change) -> tuple[object, ...]:
        commits = places[change.commit_id] - places[change.reference_id]
        return change.evidence != "exact", commits, -abs(change.log_ratio or 0.0), change.case_id

    return min(claimed, key=rank, default=None)


async def search(
    session: AsyncSession,
    incident: Incident,
    bisection: Bisection | None,
    changes: Sequence[Change],
    places: Places,
    measuring: Mapping[Pair, MeasurementMethod],
    budget: Budget,
) -> None:
    """Continue the bisection of a confirmed incident, or begin one if its range has several commits.

    An incident of results older than detection is bisected only on request. Index: pk_bisection, pk_job.
    """
    if bisection is None:
        lead = leading(changes, measuring, places)
        if incident.seen or incident.kind not in BISECTED or lead is None or commits_between(incident, places) < 2:
            return
        if lead.evidence == "anchor":
            return  # a drift has no culprit; a person may request a bisection
        if await session.get(Bisection, incident.id) is not None:
            return  # another bisection found its cause just now
        bisection = await begin(session, incident, lead)
    if bisection.state == "running":
        await go_on(session, incident, bisection, changes, places, measuring, budget)
        await session.flush()
        if (
            bisection.incident_id != incident.id
        ):  # it found the cause of a part that was split off; this incident gets a bisection of its own
            await search(session, incident, None, changes, places, measuring, budget)


async def begin(session: AsyncSession, incident: Incident, lead: Change, *, asked_by: str | None = None) -> Bisection:
    """Begin a bisection of an incident, in place of an earlier one."""
    before = await session.get(Bisection, incident.id)
    if before is not None:
        await session.delete(before)
        await session.flush()
    bisection = Bisection(
        incident_id=incident.id,
        machine_id=lead.machine_id,
        case_id=lead.case_id,
        series_id=lead.series_id,
        variant=lead.variant,
        log_ratio=lead.log_ratio,
        reference_id=incident.reference_id,
        commit_id=incident.commit_id,
        asked_by=asked_by,
    )
    session.add(bisection)
    note_event(session, incident, "bisecting", actor=asked_by)
    await session.flush()
    await session.refresh(bisection)
    return bisection


async def go_on(
    session: AsyncSession,
    incident: Incident,
    bisection: Bisection,
    changes: Sequence[Change],
    places: Places,
    measuring: Mapping[Pair, MeasurementMethod],
    budget: Budget,
) -> None:
    """Queue the next job of a bisection, or end it with its result. Nothing happens while a job waits or runs.

    It is given up if its machine was away for two weeks.
    """
    first, last = places.get(bisection.reference_id), places.get(bisection.commit_id)
    if first is None or last is None:
        bisection.state = "undecided"
        note_event(session, incident, "bisected", details={"because": "The range is not on the trunk any more."})
        return
    jobs = await _jobs_of(session, bisection)
    if any(job.state in UNFINISHED for job in jobs):
        return
    along = sorted((id_ for id_, place in places.items() if first <= place <= last), key=places.__getitem__)
    evidence = await _evidence(session, bisection, along, places, jobs)
    step = next_step(len(along) - 1, evidence.answers)
    if isinstance(step, Culprit):
        await _end(session, incident, bisection, along, evidence, step)
        return
    by = measuring.get((bisection.case_id, bisection.machine_id))
    if by is None and await _is_over(session, bisection, jobs):
        because = f"No agent of its machine could go on for {GIVEN_UP_AFTER_DAYS} days. Begin again once one is back."
        bisection.state, bisection.next_at = "undecided", None
        note_event(session, incident, "bisected", details={"because": because})
        return
    if by is None:
        bisection.next_at = now() + func.make_interval(0, 0, 0, 0, 1)
        return
    there = {pair: each for pair, each in measuring.items() if each == by}
    request = _wanted(bisection, changes, there, along, step)
    if not budget.take(by.machine_id, len(request.cases), len(request.variants), step.effort):
        bisection.next_at = func.timezone(
            "UTC", func.date_trunc("day", func.timezone("UTC", now()))
        ) + func.make_interval(0, 0, 0, 1)
        return
    bisection.next_at = None
    bisection.job_id = await queue_comparison(session, incident, request, by, asked_by=bisection.asked_by)


def _wanted(
    bisection: Bisection,
    changes: Sequence[Change],
    measuring: Mapping[Pair, MeasurementMethod],
    along: Sequence[int],
    step: Probe,
) -> PlannedComparison:
    """The next comparison: of the leading change and of others that are measured there, so that their ranges narrow too."""
    others = shown_most([change for change in changes if change.standing == "claimed"], measuring)
    if bisection.series_id is None:
        others = []
    cases = list(dict.fromkeys([bisection.case_id, *(change.case_id for change in others)]))[:8]
    variants = {bisection.variant, *(change.variant for change in others if change.case_id in cases)}
    return PlannedComparison(
        reference_id=along[step.reference],
        commit_id=along[step.place],
        cases=cases,
        variants={variant for variant in variants if variant is not None},
        effort=step.effort,
        origin="bisect",
    )


async def _is_over(session: AsyncSession, bisection: Bisection, jobs: Sequence[Job]) -> bool:
    """True if the machine of a bisection was away for so long that it is given up."""
    ends = [job.finished_at for job in jobs if job.finished_at is not None and job.failure_message != NOBODY_CAME]
    waited = func.now() - max([bisection.started_at, *ends]) > func.make_interval(0, 0, 0, GIVEN_UP_AFTER_DAYS)
    return bool(await session.scalar(select(waited)))


async def _jobs_of(session: AsyncSession, bisection: Bisection) -> Sequence[Job]:
    """The jobs of a bisection, oldest first. Index: ix_incident_job_incident_id, pk_job."""
    statement = (
        select(Job)
        .join(IncidentJob, IncidentJob.job_id == Job.id)
        .where(IncidentJob.incident_id == bisection.incident_id, Job.origin == "bisect")
        .where(Job.created_at >= bisection.started_at)
        .order_by(Job.id)
        .execution_options(populate_existing=True)
    )
    return (await session.scalars(statement)).all()


@dataclass(frozen=True, slots=True)
class _Evidence:
    """Answers by pair of places; `shares` are the parts of the change between them."""

    answers: Mapping[tuple[int, int], KnownAnswer]
    shares: Mapping[tuple[int, int], float]


async def _evidence(
    session: AsyncSession, bisection: Bisection, along: Sequence[int], places: Places, jobs: Sequence[Job]
) -> _Evidence:
    """The stored evidence of the leading change, at the commits of the range.

    Index: pk_step, pk_reading, ix_failure_commit_id, uq_series_case_id_variant_metric_machine_id.
    """
    place_of = {id_: place for place, id_ in enumerate(along)}
    efforts: dict[tuple[int, int], int] = {}
    for job in jobs:
        if job.failure_message == NOBODY_CAME:
            continue  # not about the commit
        if job.reference_id in place_of and job.commit_id in place_of:
            pair = (place_of[job.reference_id], place_of[job.commit_id])
            efforts[pair] = max(job.effort, efforts.get(pair, 1))
    answers: dict[tuple[int, int], KnownAnswer] = {}
    shares: dict[tuple[int, int], float] = {}
    commits = {"commits": statements.array_of(along), "series": bisection.series_id}
    counts = await _counts(session, bisection, commits)
    if counts is None:
        change = bisection.log_ratio or 0.0
        for reference_id, commit_id, ratio, low, high in await statements.rows(session, _PAIRS, commits):
            if reference_id not in places or places[reference_id] >= places[commit_id]:
                continue
            pair = (
                place_of.get(reference_id, 0),
                place_of[commit_id],
            )  # an older reference counts as the begin of the range
            parts = (side_of if pair[0] == 0 else shown_by)(ratio, low, high, change)
            answers[pair] = KnownAnswer(parts, efforts.get(pair, 1))
            shares[pair] = share_of(ratio, change)
    else:
        at = sorted((place_of[id_], value) for id_, value in counts.items())
        before, after = at[0][1], at[-1][1]
        for place, value in at[1:-1]:
            is_bad = abs(value - after) < abs(value - before)
            answers[0, place] = KnownAnswer("bad" if is_bad else "good", LONGER)
        for (place, value), (next_place, next_value) in pairwise(at):
            share = (next_value - value) / (after - before)
            known: Answer = "bad" if share > 0 else "good"
            answers.setdefault((place, next_place), KnownAnswer(known, LONGER))
            shares[place, next_place] = share
    for pair, effort in efforts.items():
        answers.setdefault(pair, KnownAnswer("unusable", effort))
    return _Evidence(answers, shares)


async def _counts(
    session: AsyncSession, bisection: Bisection, commits: Mapping[str, object]
) -> Mapping[int, float] | None:
    """The counts of a series by commit, or 0 where a case runs and 1 where it fails; None if the metric is noisy.

    Both ends are known, and differ.
    """
    if bisection.series_id is None:
        of_case = {"case": bisection.case_id, "machine": bisection.machine_id, "variant": bisection.variant}
        failed = await statements.rows(session, _RUNS, {**commits, **of_case})
        counts: dict[int, float] = {}
        for commit_id, has_failed in failed:
            counts[commit_id] = max(counts.get(commit_id, 0.0), float(has_failed))
        return {**counts, bisection.reference_id: 0.0, bisection.commit_id: 1.0}
    is_exact = await statements.row(session, "SELECT exact FROM series WHERE id = %(series)s", commits)
    if is_exact is None or not is_exact[0]:
        return None
    rows = dict(await statements.rows(session, _COUNTS, commits))
    ends = {rows.get(bisection.reference_id), rows.get(bisection.commit_id)}
    return (
        rows if None not in ends and len(ends) == 2 else None
    )  # otherwise by paired comparisons, which uploads may contain


async def _end(
    session: AsyncSession,
    incident: Incident,
    bisection: Bisection,
    along: Sequence[int],
    evidence: _Evidence,
    culprit: Culprit,
) -> None:
    """Store the result of a bisection with its evidence, and announce it if it is one commit."""
    suspects = along[culprit.first : culprit.last + 1]
    named = {row[0]: row[1:] for row in await statements.rows(session, _NAMED, {"commits": statements.array_of(along)})}
    shas = {id_: sha for id_, (sha, _) in named.items()}
    unusable = [along[place] for (_, place), given in sorted(evidence.answers.items()) if given.answer == "unusable"]
    share = evidence.shares.get((culprit.first - 1, culprit.last))
    is_whole = named[suspects[0]][1] == shas[along[culprit.first - 1]]
    incident = await _owner(session, incident, bisection, (along[culprit.first - 1], suspects[-1]))
    is_one = len(suspects) == 1 and culprit.is_borne_out and is_whole
    bisection.state = "found" if is_one else "undecided"
    bisection.culprit_id, bisection.share, bisection.next_at = suspects[-1], share, None
    details: dict[str, Any] = {
        "commit": shas[suspects[-1]],
        "share": share,
        "passed_over": [shas[id_] for id_ in dict.fromkeys(unusable)],
    }
    if is_one:
        await announce(session, incident, "culprit", details=details)
    else:
        several = f"It is one of {len(suspects)} commits, of which the others gave no answer."
        alone = "Compared with the commit before it, it does not show the change: there may be several causes."
        gap = "Commits before it are not known here: upload the log of the branch with `pullback log`."
        because = gap if not is_whole else several if len(suspects) > 1 else alone
        details |= {"because": because, "suspects": [shas[id_] for id_ in suspects]}
        note_event(session, incident, "bisected", details=details)
    if culprit.is_borne_out and share is not None and share < EXPLAINED:
        because = f"That explains {max(share, 0.0):.0%} of the change: other commits of the range contribute too."
        note_event(session, incident, "rest", details={"because": because})
    await session.flush()


async def _owner(session: AsyncSession, incident: Incident, bisection: Bisection, result: tuple[int, int]) -> Incident:
    """The incident that the culprit belongs to: the part that was split off for it, if there are several causes. It gets the bisection.

    Index: ix_change_project_id.
    """
    owner_id = await session.scalar(
        select(StoredChange.incident_id).where(
            StoredChange.project_id == incident.project_id,
            StoredChange.case_id == bisection.case_id,
            StoredChange.machine_id == bisection.machine_id,
            StoredChange.series_id == bisection.series_id,
            StoredChange.reference_id == result[0],
            StoredChange.commit_id == result[1],
            StoredChange.standing == "claimed",
        )
    )
    if owner_id in {None, incident.id} or await session.get(Bisection, owner_id) is not None:
        return incident
    of_search = select(Job.id).where(Job.origin == "bisect", Job.created_at >= bisection.started_at)
    await session.execute(
        update(IncidentJob)
        .where(IncidentJob.incident_id == incident.id, IncidentJob.job_id.in_(of_search))
        .values(incident_id=owner_id)
    )
    owner = await session.get_one(Incident, owner_id)
    bisection.incident_id = owner.id
    await session.flush()
    return owner

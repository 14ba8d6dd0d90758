"""Detection after uploads: find the changes of the series that they touched, and bring incidents up to date.

The changes of a case on a machine depend only on what is stored of it along the trunk, and the grouping into incidents only on all
changes; so the order of uploads decides nothing but the ids. Chores of one project never run at the same time.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from typing import Final, LiteralString, NamedTuple

from sqlalchemy import delete, insert, select, update
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.sql.functions import now

from pullback_service import statements
from pullback_service.deferred_chores import defer_detection
from pullback_service.ids import ProjectId
from pullback_service.incidents.budget_inputs import budget_changes, missing_changes
from pullback_service.incidents.cause_inputs import store_causes
from pullback_service.incidents.change_search import NoiseSize, search_changes
from pullback_service.incidents.changes import Change, Places
from pullback_service.incidents.confirmation import GIVEN_UP_AFTER_DAYS, MINUTES_A_DAY, give_up_waiting
from pullback_service.incidents.detection_inputs import (
    Pair,
    Trunk,
    UploadContent,
    content_of,
    every_pair,
    follow_rewritten,
    is_judged,
    mark_detected,
    note_detector,
    read_trunk,
    reported_up_to,
    touched_pairs,
    waiting_reports,
)
from pullback_service.incidents.grouping import LocatedChange, group, successors
from pullback_service.incidents.level_comparisons import compare_across_edges
from pullback_service.incidents.lifecycle import AFTER_NOISE
from pullback_service.incidents.rule_decisions import unwatched
from pullback_service.incidents.transitions import SEEN_BY, settle
from pullback_service.incidents.trunk_changes import FOUND_BY, MOST_READINGS
from pullback_service.models.incidents import Incident, IncidentEvent, SeriesSetAside, StoredChange

REPORTS_AT_ONCE: Final = 200
MISSED_AFTER_S: Final = 120
MOST_SWEPT_AT_ONCE: Final = 500

_COLUMNS: Final[LiteralString] = ", ".join(f"change.{field}" for field in Change._fields)
_CHANGES: Final[LiteralString] = f"""
SELECT change.id, change.incident_id, "case".workload, {_COLUMNS}
  FROM change
  JOIN "case" ON "case".id = change.case_id
 WHERE change.project_id = %(project)s
"""  # noqa: S608 - our own words
_WORKLOADS: Final[LiteralString] = 'SELECT id, workload FROM "case" WHERE id = ANY (%(cases)s::bigint[])'
# Up to the next level of the series that an incident bore out.
_NOISE: Final[LiteralString] = """
SELECT noise.series_id, abs(noise.log_ratio), next.commit_id
  FROM change noise
  JOIN commit ON commit.id = noise.commit_id
  LEFT JOIN LATERAL (
       SELECT later.commit_id
         FROM change later
         JOIN commit begun ON begun.id = later.commit_id
         JOIN incident ON incident.id = later.incident_id AND incident.state IN ('confirmed', 'likely', 'resolved')
        WHERE later.project_id = noise.project_id AND later.case_id = noise.case_id AND later.machine_id = noise.machine_id
          AND later.series_id = noise.series_id AND later.standing <> 'refuted'
          AND (begun.ordered_at, begun.id) > (commit.ordered_at, commit.id)
        ORDER BY begun.ordered_at, begun.id LIMIT 1) next ON true
 WHERE noise.project_id = %(project)s AND noise.series_id IS NOT NULL AND noise.log_ratio IS NOT NULL
   AND (SELECT verdict FROM verdict
         WHERE verdict.incident_id = noise.incident_id AND revoked_at IS NULL ORDER BY id DESC LIMIT 1) = 'noise'
"""
_TOLD: Final[LiteralString] = """
SELECT DISTINCT incident_id FROM incident_event WHERE incident_id = ANY (%(incidents)s::bigint[]) AND told
"""
_UNDECIDED: Final[LiteralString] = """
SELECT id FROM incident
 WHERE project_id = %(project)s AND told_to = '{}' AND rules IS NULL AND state IN ('confirmed', 'likely') AND NOT seen
"""
# Null unless a result of the commit is old: true where one is older than detection, false where only the detector is newer.
_IS_OLD: Final[LiteralString] = """
SELECT bool_or(report.received_at < project.detected_from)
  FROM report
  JOIN project ON project.id = report.project_id
 WHERE report.commit_id = %(commit)s
   AND report.received_at < greatest(project.detected_from, CASE WHEN %(by_detector)s THEN project.detector_from END)
"""
_MISSED: Final[LiteralString] = """
SELECT DISTINCT project_id
  FROM report
 WHERE detected_at IS NULL AND followed_up_at < now() - make_interval(secs => %(age)s)
 UNION
SELECT DISTINCT incident.project_id
  FROM incident
  JOIN job ON job.id = incident.job_id
 WHERE incident.state = 'confirming' AND job.state NOT IN ('queued', 'leased', 'running')
 UNION
SELECT project_id
  FROM incident
 WHERE out_of_time_on < (now() AT TIME ZONE 'UTC')::date
   AND (state = 'suspected'
        OR state = 'unconfirmed' AND ended_id IS NULL AND found_at > now() - make_interval(days => %(late_days)s))
 UNION
SELECT incident.project_id
  FROM bisection
  JOIN incident ON incident.id = bisection.incident_id
  LEFT JOIN job ON job.id = bisection.job_id
 WHERE bisection.state = 'running' AND incident.state = 'confirmed' AND coalesce(bisection.next_at, now()) <= now()
   AND (job.id IS NULL OR job.state NOT IN ('queued', 'leased', 'running'))
 LIMIT %(most)s
"""


class _ChangeRecord(NamedTuple):
    """A change with its id and the id of its incident, each None while it is not stored."""

    id: int | None
    incident_id: int | None
    located: LocatedChange


async def detect(session: AsyncSession, project_id: ProjectId, *, minutes_a_day: float = MINUTES_A_DAY) -> int:
    """Look for changes in the oldest waiting reports of a project and settle incidents that wait for a measurement; returns the number of reports.

    If the trunk was changed, all its history is looked at first. Nothing is done while steps are not up to date: the sweep comes again. Index: ix_report_undetected; as `search_changes`.
    """
    # First, so that the trunk and all that is read later know the commits of these reports.
    reports = await waiting_reports(session, project_id, most=REPORTS_AT_ONCE)
    trunk = await read_trunk(session, project_id)
    if trunk is None or not await is_judged(session, project_id):
        return 0
    await note_detector(session, project_id, trunk)
    every = await every_pair(session, project_id, trunk)
    if every:
        await keep_incidents(session, project_id, trunk, every, seen=True, minutes_a_day=minutes_a_day)
    pairs = await touched_pairs(session, reports) if reports else []
    upload = await content_of(session, reports, trunk)
    await keep_incidents(session, project_id, trunk, pairs, upload=upload, minutes_a_day=minutes_a_day)
    await compare_across_edges(session, project_id, trunk, upload, minutes_a_day=minutes_a_day)
    await mark_detected(session, reports)
    return len(reports)


async def keep_incidents(
    session: AsyncSession,
    project_id: ProjectId,
    trunk: Trunk,
    pairs: Sequence[Pair],
    *,
    upload: UploadContent | None = None,
    seen: bool = False,
    minutes_a_day: float = MINUTES_A_DAY,
) -> None:
    """Compute the changes of some cases on some machines again, and bring their incidents up to date.

    Without an `upload` all readings are looked at again.
    New incidents are `seen` if the caller says so, or if their commit was measured before there was detection.
    """
    if trunk.branch_id is None:
        return
    followed = await follow_rewritten(session, project_id, trunk)
    reported = await reported_up_to(session, project_id, trunk) if trunk.rewritten else None
    stored = await _stored(session, project_id)
    known = [each.located.change for each in stored] if _is_at_the_end(upload, trunk) else None
    pairs, missing = await missing_changes(session, project_id, trunk, pairs, stored=known)
    least: dict[int, list[NoiseSize]] = defaultdict(list)
    for series_id, size, until in await statements.rows(session, _NOISE, {"project": project_id}):
        least[series_id].append(NoiseSize(AFTER_NOISE * size, trunk.places.get(until)))
    result, looked_at = await search_changes(
        session,
        project_id,
        pairs,
        trunk,
        [each.located.change for each in stored],
        upload=upload,
        least=least,
    )
    budgets = await budget_changes(session, project_id, trunk, sorted(looked_at), known)
    unseen = Counter((*result, *budgets, *missing))
    asked_for = set(pairs)
    records: list[_ChangeRecord] = []
    gone: list[_ChangeRecord] = []
    waiting: dict[tuple[object, ...], list[Change]] = defaultdict(list)
    for each in stored:
        change = each.located.change
        is_on_trunk = change.reference_id in trunk.places and change.commit_id in trunk.places
        looked = asked_for if change.evidence == "absence" else looked_at
        is_there = (change.case_id, change.machine_id) not in looked or unseen[change] > 0
        # Of a rewritten commit: nothing was measured since that confirms or refutes it.
        is_open = reported is not None and trunk.places.get(change.commit_id, -1) > reported.get(change.machine_id, -1)
        if is_on_trunk and (is_there or is_open):
            unseen[change] -= 1
            records.append(each)
            if is_open:
                waiting[_subject(change)].append(change)
        else:
            gone.append(each)
    unknown = [
        change
        for change in (+unseen).elements()
        if not any(change.meets(other, trunk.places) for other in waiting[_subject(change)])
    ]
    new = await _with_incidents(session, unknown, gone, trunk.places)
    new = await _watched(session, project_id, new)
    touched_incidents = followed | await _undecided(session, project_id)
    touched_incidents |= {each.incident_id for each in (*gone, *new) if each.incident_id is not None}
    if gone or new:
        touched_incidents |= await _regroup(session, project_id, records, new, gone, trunk.places, seen=seen)
    changes = [each.located for each in (*records, *new)]
    touched_incidents |= await store_causes(session, project_id, trunk, touched_incidents, changes, upload)
    await settle(session, project_id, trunk, touched_incidents, minutes_a_day=minutes_a_day)


async def _undecided(session: AsyncSession, project_id: ProjectId) -> set[int]:
    """The incidents that rules held back before the rules changed. Index: ix_incident_project_id."""
    return {incident_id for (incident_id,) in await statements.rows(session, _UNDECIDED, {"project": project_id})}


def _is_at_the_end(upload: UploadContent | None, trunk: Trunk) -> bool:
    """True if the upload has only readings of the newest commits of the trunk."""
    if upload is None:
        return False
    newest = max(trunk.places.values(), default=0) - MOST_READINGS
    return all(trunk.places[commit] > newest for commits in upload.commits.values() for commit in commits)


async def _stored(session: AsyncSession, project_id: ProjectId) -> list[_ChangeRecord]:
    """All changes of a project. Index: ix_change_project_id, pk_case."""
    rows = await statements.rows(session, _CHANGES, {"project": project_id}, binary=True)
    return [_ChangeRecord(row[0], row[1], LocatedChange(Change._make(row[3:]), row[2])) for row in rows]


async def _with_incidents(
    session: AsyncSession, changes: Sequence[Change], gone: Sequence[_ChangeRecord], places: Places
) -> list[_ChangeRecord]:
    """New changes, each with the incident of the stored change that it replaces, or of what was shown by the anchor alone until it explained that.

    Index: pk_case, ix_incident_event_incident_id.
    """
    rows = await statements.rows(
        session, _WORKLOADS, {"cases": statements.array_of({change.case_id for change in changes})}
    )
    workloads = dict(rows)
    before: dict[tuple[object, ...], list[_ChangeRecord]] = defaultdict(list)
    for each in gone:
        if each.located.change.commit_id in places and each.located.change.reference_id in places:
            before[_subject(each.located.change)].append(each)
    is_explained = any(each.located.change.evidence == "anchor" for each in gone)
    parameters = {"incidents": statements.array_of({each.incident_id for each in gone if each.incident_id is not None})}
    told = {row[0] for row in await statements.rows(session, _TOLD, parameters)} if is_explained else set()
    new = []
    for change in changes:
        same = [each for each in before[_subject(change)] if each.located.change.meets(change, places)]
        if change.standing == "claimed" and not any(each.incident_id in told for each in same):
            drifted = before[_subject(change._replace(evidence="anchor"))]
            same = [
                each for each in drifted if each.incident_id in told and each.located.change.meets(change, places)
            ] or same
        alike = [each for each in same if each.located.change.worse == change.worse] or [
            each for each in same if "unsteady" in {each.located.change.kind, change.kind}
        ]
        incident = min((each.incident_id for each in alike if each.incident_id is not None), default=None)
        new.append(_ChangeRecord(None, incident, LocatedChange(change, workloads[change.case_id])))
    return new


async def _watched(session: AsyncSession, project_id: ProjectId, changes: list[_ChangeRecord]) -> list[_ChangeRecord]:
    """The changes without those of series that rules do not watch, unless they belong to an incident already. Index: as `unwatched`."""
    new = [each.located.change for each in changes if each.incident_id is None]
    left_out = await unwatched(session, project_id, new)
    return [each for each in changes if each.incident_id is not None or each.located.change not in left_out]


def _subject(change: Change) -> tuple[object, ...]:
    return (
        change.case_id,
        change.machine_id,
        change.series_id,
        change.variant,
        change.kind in {"wrong_gradient", "failed"},
        change.evidence == "anchor",
    )


async def _regroup(
    session: AsyncSession,
    project_id: ProjectId,
    stored: Sequence[_ChangeRecord],
    new: Sequence[_ChangeRecord],
    gone: Sequence[_ChangeRecord],
    places: Places,
    *,
    seen: bool,
) -> set[int]:
    """Group all changes again and store what differs; returns the incidents that this touched."""
    everything = [*stored, *new]
    number = {id(each.located): place for place, each in enumerate(everything)}
    groups = [[number[id(each)] for each in part] for part in group([each.located for each in everything], places)]
    by_place = {place: each.incident_id for place, each in enumerate(everything) if each.incident_id is not None}
    touched: set[int] = set()
    rows: list[dict[str, object]] = []
    for members, (successor, merged) in zip(groups, successors(groups, by_place), strict=True):
        changes = [everything[place] for place in members]
        incident = successor
        if incident is None:
            if all(each.located.change.standing == "refuted" for each in changes):
                continue  # what was never suspected needs no refuting
            incident = await _open(
                session,
                project_id,
                changes,
                split_from=[by_place[p] for p in members if p in by_place],
                seen=seen,
                places=places,
            )
        if merged or any(each.id is None or each.incident_id != incident for each in changes):
            touched |= {incident, *merged, *(by_place[place] for place in members if place in by_place)}
        for other in merged:
            await _merge(session, other, incident)
        moved = [each.id for each in changes if each.id is not None and each.incident_id != incident]
        if moved:
            await session.execute(update(StoredChange).where(StoredChange.id.in_(moved)).values(incident_id=incident))
        rows += [
            {"project_id": project_id, "incident_id": incident, **each.located.change._asdict()}
            for each in changes
            if each.id is None
        ]
    await session.execute(delete(StoredChange).where(StoredChange.id.in_([each.id for each in gone])))
    if rows:
        await session.execute(insert(StoredChange), rows)
    return touched


async def _open(
    session: AsyncSession,
    project_id: ProjectId,
    changes: Sequence[_ChangeRecord],
    *,
    split_from: Collection[int],
    places: Places,
    seen: bool,
) -> int:
    """A new incident; one that was split from another is not announced again.

    One that only a new version of the detector sees in results that came before it is `seen` until it is confirmed.
    """
    first = changes[0].located.change
    commit_id = min((each.located.change.commit_id for each in changes), key=places.__getitem__)
    by_detector = all(each.located.change.evidence == "levels" for each in changes)
    ((is_old,),) = await statements.rows(session, _IS_OLD, {"commit": commit_id, "by_detector": by_detector})
    made = Incident(
        project_id=project_id,
        kind=first.incident_kind,
        state="suspected",
        seen=seen or is_old is not None,
        reference_id=max((each.located.change.reference_id for each in changes), key=places.__getitem__),
        commit_id=commit_id,
    )
    session.add(made)
    await session.flush()
    details: dict[str, object] = {"from": sorted(set(split_from))} if split_from else {}
    if is_old is False and not seen:
        details[SEEN_BY] = FOUND_BY
    session.add(IncidentEvent(incident_id=made.id, event="split" if split_from else "found", details=details))
    return made.id


async def _merge(session: AsyncSession, incident: int, into: int) -> None:
    values = {"state": "merged", "merged_into_id": into, "changed_at": now()}
    await session.execute(update(Incident).where(Incident.id == incident).values(**values))
    session.add(IncidentEvent(incident_id=incident, event="merged", details={"into": into}))


async def sweep(session: AsyncSession, *, missed_after_s: float = MISSED_AFTER_S) -> int:
    """Defer detection for projects with missed reports or with jobs that ended without a report; returns the number of projects.

    Jobs that nobody took for two weeks are given up first.
    Index: ix_job_state, ix_report_undetected, ix_incident_waiting, ix_bisection_running, pk_job.
    """
    await give_up_waiting(session)
    rows = await statements.rows(
        session, _MISSED, {"age": missed_after_s, "most": MOST_SWEPT_AT_ONCE, "late_days": GIVEN_UP_AFTER_DAYS}
    )
    return sum([await defer_detection(session, ProjectId(project_id)) for (project_id,) in rows])


async def set_aside(session: AsyncSession) -> Sequence[str]:
    """The reasons for which series are set aside, newest first. Index: pk_set_aside."""
    return (await session.scalars(select(SeriesSetAside.reason).order_by(SeriesSetAside.at.desc()))).all()

"""Reading incidents with everything that is shown of them."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, LiteralString, NamedTuple

from sqlalchemy import Select, select
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.errors import Missing, NotFoundError
from pullback_service.ids import ProjectId
from pullback_service.incidents.changes import Change
from pullback_service.models.incidents import Incident, IncidentEvent, StoredChange, Verdict
from pullback_service.models.projects import Project
from pullback_service.projects.queries import id_of
from pullback_service.rules.matching import Subject

_COMMITS: Final[LiteralString] = """
SELECT commit.id, commit.sha, commit.title, commit.author, parent.parent_sha
  FROM commit
  LEFT JOIN commit_parent parent ON parent.commit_id = commit.id AND parent.position = 0
 WHERE commit.id = ANY (%(ids)s::bigint[])
"""
_CASES: Final[LiteralString] = 'SELECT id, workload, label FROM "case" WHERE id = ANY (%(ids)s::bigint[])'
_MACHINES: Final[LiteralString] = "SELECT id, name FROM machine WHERE id = ANY (%(ids)s::bigint[])"
_SERIES: Final[LiteralString] = "SELECT id, metric, unit, direction FROM series WHERE id = ANY (%(ids)s::bigint[])"

_BISECTION: Final[LiteralString] = """
SELECT bisection.state, commit.sha, bisection.share, bisection.job_id,
       (SELECT count(*) FROM incident_job JOIN job ON job.id = incident_job.job_id
         WHERE incident_job.incident_id = bisection.incident_id AND job.origin = 'bisect'
           AND job.created_at >= bisection.started_at),
       bisection.started_at
  FROM bisection
  LEFT JOIN commit ON commit.id = bisection.culprit_id
 WHERE bisection.incident_id = %(incident)s
"""

OPEN: Final = ("confirmed", "likely", "suspected", "confirming")
"""States of incidents that nobody has refuted and nothing has ended."""


class NamedCommit(NamedTuple):
    """A commit of an incident, with its first parent as far as that is known."""

    id: int
    sha: str
    title: str | None
    author: str | None
    parent: str | None


class NamedChange(NamedTuple):
    """A change by its names; no metric where a case failed."""

    change: Change
    workload: str
    case: str
    machine: str
    metric: str | None
    unit: str | None
    direction: str | None
    reference: NamedCommit
    commit: NamedCommit
    ended: NamedCommit | None


@dataclass(frozen=True, slots=True)
class Detail:
    """An incident with its changes, the commits of its range, and the verdict that counts."""

    incident: Incident
    project: str
    reference: NamedCommit
    commit: NamedCommit
    ended: NamedCommit | None
    changes: Sequence[NamedChange]
    verdict: Verdict | None


class NamedBisection(NamedTuple):
    """The search for the commit of an incident, by its names."""

    state: str
    culprit: str | None
    share: float | None
    job_id: int | None
    jobs: int
    started_at: datetime


@dataclass(frozen=True, slots=True)
class IncidentChoice:
    """A choice of incidents; None is any."""

    project: str | None = None
    states: Collection[str] = ()
    kind: str | None = None
    since: datetime | None = None


async def list_incidents(
    session: AsyncSession, choice: IncidentChoice, *, before_id: int | None = None, limit: int
) -> Sequence[Detail]:
    """Incidents, newest first. Index: ix_incident_project_id, else pk_incident; as `details_of`."""
    statement = _matching(choice).order_by(Incident.id.desc()).limit(limit)
    if before_id is not None:
        statement = statement.where(Incident.id < before_id)
    return await details_of(session, (await session.scalars(statement)).all())


async def incidents_open_first(
    session: AsyncSession, choice: IncidentChoice, *, skip: int = 0, limit: int
) -> Sequence[Detail]:
    """Open incidents, then the others, each newest first. Index: ix_incident_project_id, else pk_incident; as `details_of`."""
    order = Incident.state.in_(OPEN).desc(), Incident.id.desc()
    statement = _matching(choice).order_by(*order).offset(skip).limit(limit)
    return await details_of(session, (await session.scalars(statement)).all())


async def open_incidents(session: AsyncSession, project_id: ProjectId, *, limit: int) -> Sequence[Incident]:
    """Open incidents that people are told of, newest first. Index: ix_incident_project_id."""
    statement = select(Incident).where(Incident.project_id == project_id, Incident.state.in_(OPEN))
    told = statement.where(Incident.kind != "better").order_by(Incident.id.desc()).limit(limit)
    return (await session.scalars(told)).all()


async def incidents_since(
    session: AsyncSession, project_id: ProjectId, commit_id: int, *, limit: int
) -> Sequence[Incident]:
    """Incidents that begin at a commit, newest first, but for those that became a part of another. Index: ix_incident_project_id."""
    statement = select(Incident).where(Incident.project_id == project_id, Incident.commit_id == commit_id)
    standing = statement.where(Incident.state != "merged").order_by(Incident.id.desc()).limit(limit)
    return (await session.scalars(standing)).all()


def _matching(choice: IncidentChoice) -> Select[Incident]:
    statement = select(Incident)
    if choice.project is not None:
        statement = statement.where(Incident.project_id == id_of(choice.project))
    if choice.states:
        statement = statement.where(Incident.state.in_(choice.states))
    if choice.kind is not None:
        statement = statement.where(Incident.kind == choice.kind)
    if choice.since is not None:
        statement = statement.where(Incident.found_at >= choice.since)
    return statement


async def incident_by_id(session: AsyncSession, incident_id: int, *, lock: bool = False) -> Incident:
    """An incident. Index: pk_incident."""
    statement = select(Incident).where(Incident.id == incident_id)
    found = await session.scalar(statement.with_for_update() if lock else statement)
    if found is None:
        raise NotFoundError(
            f"There is no incident {incident_id}: GET /api/v1/incidents lists them.",
            missing=Missing("incident", str(incident_id)),
        )
    return found


async def details_of(session: AsyncSession, incidents: Sequence[Incident]) -> list[Detail]:
    """Incidents with their changes. Index: ix_change_incident_id, ix_verdict_incident_id, pk_project, pk_commit, pk_case."""
    if not incidents:
        return []
    ids = [incident.id for incident in incidents]
    changes = await changes_of_incidents(session, ids)
    verdicts = await verdicts_of(session, ids)
    projects = await session.execute(
        select(Project.id, Project.name).where(Project.id.in_({incident.project_id for incident in incidents}))
    )
    names = {row[0]: row[1] for row in projects}
    every = [change for of_one in changes.values() for change in of_one]
    ends = [(change.reference_id, change.commit_id, change.ended_id) for change in every]
    ends += [(incident.reference_id, incident.commit_id, incident.ended_id) for incident in incidents]
    commits = {
        row[0]: NamedCommit._make(row) for row in await _rows(session, _COMMITS, {id_ for each in ends for id_ in each})
    }
    cases = {row[0]: row[1:] for row in await _rows(session, _CASES, {change.case_id for change in every})}
    machines = {row[0]: row[1] for row in await _rows(session, _MACHINES, {change.machine_id for change in every})}
    series = {row[0]: row[1:] for row in await _rows(session, _SERIES, {change.series_id for change in every})}

    def named(change: Change) -> NamedChange:
        workload, label = cases[change.case_id]
        metric, unit, direction = (None, None, None) if change.series_id is None else series[change.series_id]
        return NamedChange(
            change,
            workload,
            label,
            machines[change.machine_id],
            metric,
            unit,
            direction,
            commits[change.reference_id],
            commits[change.commit_id],
            None if change.ended_id is None else commits[change.ended_id],
        )

    return [
        Detail(
            incident,
            names[incident.project_id],
            commits[incident.reference_id],
            commits[incident.commit_id],
            None if incident.ended_id is None else commits[incident.ended_id],
            [named(change) for change in changes.get(incident.id, ())],
            verdicts.get(incident.id),
        )
        for incident in incidents
    ]


async def subjects_of(session: AsyncSession, changes: Collection[Change]) -> Mapping[Change, Subject]:
    """Changes by their names, as rules match them. Index: pk_case, pk_machine, pk_series."""
    cases = {row[0]: row[1:] for row in await _rows(session, _CASES, {change.case_id for change in changes})}
    machines = {row[0]: row[1] for row in await _rows(session, _MACHINES, {change.machine_id for change in changes})}
    metrics = {row[0]: row[1] for row in await _rows(session, _SERIES, {change.series_id for change in changes})}

    def subject(change: Change) -> Subject:
        workload, case = cases[change.case_id]
        metric = None if change.series_id is None else metrics[change.series_id]
        return Subject(workload, case, change.variant, metric, machines[change.machine_id])

    return {change: subject(change) for change in changes}


async def events_of(session: AsyncSession, incident_id: int) -> Sequence[IncidentEvent]:
    """The events of an incident, oldest first. Index: ix_incident_event_incident_id."""
    statement = select(IncidentEvent).where(IncidentEvent.incident_id == incident_id).order_by(IncidentEvent.id)
    return (await session.scalars(statement)).all()


async def bisection_of(session: AsyncSession, incident_id: int) -> NamedBisection | None:
    """The search for the commit of an incident. Index: pk_bisection, ix_incident_job_incident_id."""
    found = await statements.row(session, _BISECTION, {"incident": incident_id})
    return None if found is None else NamedBisection._make(found)


async def every_verdict(session: AsyncSession, incident_id: int) -> Sequence[Verdict]:
    """All verdicts on an incident, revoked ones too, oldest first. Index: ix_verdict_incident_id."""
    statement = select(Verdict).where(Verdict.incident_id == incident_id).order_by(Verdict.id)
    return (await session.scalars(statement)).all()


async def changes_of_incidents(session: AsyncSession, ids: Collection[int]) -> Mapping[int, list[Change]]:
    """The changes of each of some incidents. Index: ix_change_incident_id."""
    columns = [getattr(StoredChange, field) for field in Change._fields]
    found: dict[int, list[Change]] = defaultdict(list)
    rows = await session.execute(
        select(StoredChange.incident_id, *columns).where(StoredChange.incident_id.in_(ids)).order_by(StoredChange.id)
    )
    for incident_id, *change in rows:
        found[incident_id].append(Change._make(change))
    return found


async def verdicts_of(session: AsyncSession, ids: Collection[int]) -> Mapping[int, Verdict]:
    """The verdict of each of some incidents that counts. Index: ix_verdict_incident_id."""
    given = select(Verdict).where(Verdict.incident_id.in_(ids), Verdict.revoked_at.is_(None)).order_by(Verdict.id)
    return {verdict.incident_id: verdict for verdict in await session.scalars(given)}


async def _rows(session: AsyncSession, statement: LiteralString, ids: Collection[int | None]) -> list[tuple[Any, ...]]:
    wanted = {id_ for id_ in ids if id_ is not None}
    return await statements.rows(session, statement, {"ids": statements.array_of(wanted)}) if wanted else []

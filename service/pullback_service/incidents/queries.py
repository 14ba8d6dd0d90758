"""Queries of incidents, with everything that pages and the API show of them."""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, LiteralString, NamedTuple, TypeVar

from sqlalchemy import ARRAY, Select, func, select
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.errors import MissingObject, NotFoundError
from pullback_service.ids import MachineId, ProjectId
from pullback_service.incidents.changes import Change, supporting
from pullback_service.models import Case, Machine, Series
from pullback_service.models.incidents import Incident, IncidentEvent, StoredChange, Verdict
from pullback_service.projects.queries import id_of
from pullback_service.rules.matching import Subject
from pullback_service.series.filters import SeriesChoice, conditions
from pullback_service.statements import Query, QueryBatch, Rows
from pullback_service.steps.queries import IS_RESOLVED, JOINED_RESOLUTION

T = TypeVar("T")

_COMMITS: Final[LiteralString] = """
SELECT commit.id, commit.sha, commit.title, commit.author, parent.parent_sha
  FROM commit
  LEFT JOIN commit_parent parent ON parent.commit_id = commit.id AND parent.position = 0
 WHERE commit.id = ANY (%(ids)s::bigint[])
"""
_CHANGED: Final[LiteralString] = f"""
SELECT id, incident_id, {", ".join(Change._fields)}
  FROM change
 WHERE incident_id = ANY (%(incidents)s::bigint[])
"""  # noqa: S608 - our own words
_NAMED: Final[LiteralString] = f"""
SELECT changed.incident_id, {", ".join(f"changed.{field}" for field in Change._fields)}, "case".workload, "case".label,
       coalesce("case".device, 'cpu'), machine.name, series.metric, series.unit, series.direction
  FROM changed
  JOIN "case" ON "case".id = changed.case_id
  JOIN machine ON machine.id = changed.machine_id
  LEFT JOIN series ON series.id = changed.series_id
 ORDER BY "case".workload, "case".natural_label, changed.variant, series.metric, machine.name, changed.id
"""  # noqa: S608 - our own words
_LIKELY_TIMES: Final[LiteralString] = f"""
SELECT changed.incident_id, (array_agg(step.log_ratio ORDER BY abs(step.log_ratio) DESC))[1]
  FROM changed
  JOIN series ON series.case_id = changed.case_id AND series.variant = changed.variant AND series.metric = 'time'
       AND series.machine_id = changed.machine_id
  JOIN step ON step.series_id = series.id AND step.commit_id = changed.commit_id AND step.reference_id = changed.reference_id
       AND step.news AND NOT step.stale AND step.outcome = CASE WHEN changed.worse THEN 'likely_slower' ELSE 'likely_faster' END
  LEFT JOIN {JOINED_RESOLUTION}
 WHERE changed.kind = 'step' AND changed.standing <> 'refuted' AND {IS_RESOLVED}
 GROUP BY changed.incident_id
"""  # noqa: S608 - our own words
_ENDS: Final[LiteralString] = """
ARRAY (SELECT reference_id FROM changed UNION SELECT commit_id FROM changed UNION SELECT ended_id FROM changed
       UNION SELECT unnest(ARRAY[reference_id, commit_id, ended_id]) FROM incident WHERE id = ANY (%(incidents)s::bigint[]))
"""
_PROJECTS: Final[LiteralString] = """
SELECT id, name FROM project WHERE id IN (SELECT project_id FROM incident WHERE id = ANY (%(incidents)s::bigint[]))
"""
# Without the announced channels: Postgres makes no array of arrays of different lengths.
_INCIDENT: Final = tuple(column.name for column in Incident.__table__.columns if not isinstance(column.type, ARRAY))
_VERDICT: Final = tuple(Verdict.__table__.columns.keys())
_EVENT: Final = tuple(IncidentEvent.__table__.columns.keys())
_INCIDENTS: Final[LiteralString] = f"""
SELECT {", ".join(_INCIDENT)} FROM incident WHERE id = ANY (%(incidents)s::bigint[])
"""  # noqa: S608 - our own words
_VERDICTS: Final[LiteralString] = f"""
SELECT {", ".join(_VERDICT)} FROM verdict WHERE incident_id = ANY (%(incidents)s::bigint[]) AND revoked_at IS NULL ORDER BY id
"""  # noqa: S608 - our own words
_EVENTS: Final[LiteralString] = f"""
SELECT {", ".join(_EVENT)} FROM incident_event WHERE incident_id = %(incident)s ORDER BY id
"""  # noqa: S608 - our own words
_TOLD_AT: Final[LiteralString] = """
SELECT incident_id, max(at) FROM incident_event WHERE incident_id = ANY (%(incidents)s::bigint[]) AND told GROUP BY incident_id
"""
_OPEN: Final[LiteralString] = f"""
SELECT {", ".join(_INCIDENT)}
  FROM incident
 WHERE project_id = %(project)s AND state = ANY (%(open)s::text[]) AND kind <> 'better'
 ORDER BY id DESC
 LIMIT %(limit)s
"""  # noqa: S608 - our own words
_SINCE: Final[LiteralString] = """
SELECT id, kind, state
  FROM incident
 WHERE project_id = %(project)s AND commit_id = %(commit)s AND state <> 'merged'
 ORDER BY id DESC
 LIMIT %(limit)s
"""
_BETWEEN: Final[LiteralString] = """
SELECT incident.id, incident.kind, incident.state
  FROM incident
  JOIN commit ON commit.id = incident.commit_id
 WHERE incident.project_id = %(project)s AND incident.state = ANY (%(states)s::text[])
   AND (commit.ordered_at, commit.id) > (SELECT ordered_at, id FROM commit WHERE id = %(reference)s)
   AND (commit.ordered_at, commit.id) <= (SELECT ordered_at, id FROM commit WHERE id = %(candidate)s)
 ORDER BY incident.id DESC
 LIMIT %(limit)s
"""
_INCIDENT_CHANGES: Final[LiteralString] = """
SELECT incident.id, incident.kind, incident.state, given.verdict, "case".label, change.variant, series.metric, series.unit,
       series.exact, series.direction = 'bigger', change.worse, change.log_ratio, change.reference_id, change.commit_id,
       change.ended_id
  FROM incident
  JOIN change ON change.incident_id = incident.id AND change.machine_id = %(machine)s
       AND change.case_id = coalesce(%(case)s, change.case_id)
  JOIN "case" ON "case".id = change.case_id
  JOIN series ON series.id = change.series_id
  LEFT JOIN LATERAL (
       SELECT verdict FROM verdict WHERE incident_id = incident.id AND revoked_at IS NULL ORDER BY id DESC LIMIT 1) given ON true
 WHERE incident.project_id = %(project)s AND incident.state <> 'merged'
   AND (incident.commit_id = ANY (%(commits)s::bigint[]) OR incident.reference_id = ANY (%(commits)s::bigint[])
        OR incident.ended_id = ANY (%(commits)s::bigint[]))
 ORDER BY incident.id, "case".workload, "case".natural_label, change.variant, series.metric, change.id
"""
_SUBJECTS: Final[LiteralString] = """
SELECT wanted.place, "case".workload, "case".label, machine.name, series.metric, coalesce("case".device, 'cpu')
  FROM unnest(%(cases)s::bigint[], %(machines)s::bigint[], %(series)s::bigint[])
       WITH ORDINALITY wanted (case_id, machine_id, series_id, place)
  JOIN "case" ON "case".id = wanted.case_id
  JOIN machine ON machine.id = wanted.machine_id
  LEFT JOIN series ON series.id = wanted.series_id
"""
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
"""States of incidents that are neither refuted nor over."""
CLOSED: Final = ("resolved", "unconfirmed", "refuted")
"""States of incidents that are over or were not confirmed."""
NOT_WORKING: Final = ("wrong_gradient", "failed", "missing")
"""Kinds of incidents that have no size."""


class NamedCommit(NamedTuple):
    """A commit of an incident, with its first parent as far as that is known."""

    id: int
    sha: str
    title: str | None
    author: str | None
    parent: str | None


class NamedChange(NamedTuple):
    """A change with the names of its case, machine and commits; without a metric if the case failed."""

    change: Change
    workload: str
    case: str
    device: str
    machine: str
    metric: str | None
    unit: str | None
    direction: str | None
    reference: NamedCommit
    commit: NamedCommit
    ended: NamedCommit | None


class SeriesChange(NamedTuple):
    """A change of a series with the state and the verdict of its incident."""

    incident_id: int
    kind: str
    state: str
    verdict: str | None
    case: str
    variant: str
    metric: str
    unit: str
    exact: bool
    bigger_is_better: bool
    worse: bool | None
    log_ratio: float | None
    reference_id: int
    commit_id: int
    ended_id: int | None


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
    likely_time: float | None = None
    """The largest likely change of the time of what changed, between the same commits, as natural log."""

    @property
    def supporting(self) -> Sequence[NamedChange]:
        """The changes that support its state."""
        results = set(supporting(each.change for each in self.changes))
        return [each for each in self.changes if each.change in results]


class NamedBisection(NamedTuple):
    """A bisection with the names of its commits."""

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
    assignee: str | None = None
    told: bool = False
    """Only those that were announced."""
    workload: str | None = None
    case: str | None = None
    variant: str | None = None
    machine: str | None = None


async def list_incidents(
    session: AsyncSession, choice: IncidentChoice, *, before_id: int | None = None, limit: int
) -> Sequence[Detail]:
    """Incidents, newest first. Index: ix_incident_project_id, else pk_incident; as `details_of`."""
    statement = _matching(choice).order_by(Incident.id.desc()).limit(limit)
    if before_id is not None:
        statement = statement.where(Incident.id < before_id)
    return await details_of(session, (await session.scalars(statement)).all())


async def costly_incidents(
    session: AsyncSession, choice: IncidentChoice, *, by_cost: bool, skip: int = 0, limit: int
) -> Sequence[Detail]:
    """Open incidents, then the others; within each by cost, or newest first.

    Failures cost most; then those that add most time or memory, as the sum of the largest change of each case; improvements come last.
    Index: ix_incident_project_id, else pk_incident; ix_change_incident_id; as `details_of`.
    """
    statement = _matching(choice).order_by(Incident.state.in_(OPEN).desc())
    if by_cost:
        each = (
            select(func.max(func.abs(StoredChange.log_ratio)).label("size"))
            .where(StoredChange.incident_id == Incident.id)
            .group_by(StoredChange.case_id)
            .correlate(Incident)
            .subquery()
        )
        cost = select(func.sum(each.c.size)).scalar_subquery()
        statement = statement.order_by(
            Incident.kind == "better", Incident.kind.in_(NOT_WORKING).desc(), cost.desc().nulls_last()
        )
    statement = statement.order_by(Incident.id.desc()).offset(skip).limit(limit)
    return await details_of(session, (await session.scalars(statement)).all())


def open_incidents(project_id: ProjectId, *, limit: int) -> Query[Sequence[Incident]]:
    """Open incidents other than improvements, newest first. Index: ix_incident_project_id."""
    values = {"project": project_id, "open": list(OPEN), "limit": limit}
    return Query(_OPEN, values, _incidents, width=len(_INCIDENT))


async def open_incidents_of(
    session: AsyncSession, project_id: ProjectId, choice: SeriesChoice, *, limit: int
) -> Query[list[tuple[Any, ...]]]:
    """Id, kind and state of open incidents that changed a chosen series, or in which its case or variant does not work, newest first.

    `choice` names no project. Index: ix_incident_project_id, ix_change_incident_id, uq_series_case_id_variant_metric_machine_id.
    """
    of_its_case = StoredChange.series_id.is_(None) & (
        func.coalesce(StoredChange.variant, Series.variant) == Series.variant
    )
    changed = (
        select(StoredChange.id)
        .join(Series, (Series.case_id == StoredChange.case_id) & (Series.machine_id == StoredChange.machine_id))
        .join(Case, Case.id == Series.case_id)
        .join(Machine, Machine.id == Series.machine_id)
        .where(
            StoredChange.incident_id == Incident.id,
            (StoredChange.series_id == Series.id) | of_its_case,
            *(await conditions(session, choice)).values(),
        )
    )
    statement = (
        select(Incident.id, Incident.kind, Incident.state)
        .where(Incident.project_id == project_id, Incident.state.in_(OPEN), changed.exists())
        .order_by(Incident.id.desc())
        .limit(limit)
    )
    return Query(*statements.text_of(statement), list, width=3)


def incidents_since(project_id: ProjectId, commit_id: int, *, limit: int) -> Query[list[tuple[Any, ...]]]:
    """Id, kind and state of incidents that begin at a commit, newest first, without merged ones.

    Index: ix_incident_project_id.
    """
    return Query(_SINCE, {"project": project_id, "commit": commit_id, "limit": limit}, list, width=3)


def incidents_between(
    project_id: ProjectId,
    reference_id: int,
    candidate_id: int,
    *,
    states: Collection[str] = (*OPEN, *CLOSED),
    limit: int,
) -> Query[list[tuple[Any, ...]]]:
    """Id, kind and state of incidents that begin after one commit, up to another, newest first, without merged ones.

    Index: ix_incident_project_id, pk_commit.
    """
    values = {
        "project": project_id, "reference": reference_id, "candidate": candidate_id, "states": [*states], "limit": limit,
    }  # fmt: skip
    return Query(_BETWEEN, values, list, width=3)


def incident_changes_at(
    project_id: ProjectId, machine_id: MachineId, commits: Collection[int], *, case_id: int | None = None
) -> Query[Sequence[SeriesChange]]:
    """The changes of series of a machine, or of one case, in incidents whose range begins or ends at some commits, or whose level was back there.

    Index: ix_incident_project_id, ix_change_incident_id, pk_case, pk_series, ix_verdict_incident_id.
    """
    values = {"project": project_id, "machine": machine_id, "commits": statements.array_of(commits), "case": case_id}
    return Query(
        _INCIDENT_CHANGES,
        values,
        lambda rows: [SeriesChange(*row) for row in rows],
        width=len(SeriesChange._fields),
    )


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
    if choice.assignee is not None:
        statement = statement.where(Incident.assignee == choice.assignee)
    if choice.told:
        told = select(IncidentEvent.id).where(IncidentEvent.incident_id == Incident.id, IncidentEvent.told)
        statement = statement.where(told.exists())
    if {choice.workload, choice.case, choice.variant, choice.machine} != {None}:
        statement = statement.where(_changed_in(choice).exists())
    return statement


def _changed_in(choice: IncidentChoice) -> Select[int]:
    """The changes of an incident in the workload, case, variant and machine of a choice."""
    changed = select(StoredChange.id).where(StoredChange.incident_id == Incident.id)
    if choice.workload is not None or choice.case is not None:
        changed = changed.join(Case, Case.id == StoredChange.case_id)
    if choice.workload is not None:
        changed = changed.where(Case.workload == choice.workload)
    if choice.case is not None:
        changed = changed.where(Case.label == choice.case)
    if choice.variant is not None:
        changed = changed.where(StoredChange.variant == choice.variant)
    if choice.machine is not None:
        changed = changed.join(Machine, Machine.id == StoredChange.machine_id).where(Machine.name == choice.machine)
    return changed


async def count_incidents(session: AsyncSession, choice: IncidentChoice) -> Mapping[tuple[str, str], int]:
    """The number of incidents by kind and state. Index: ix_incident_project_id, else pk_incident; ix_change_incident_id."""
    by = Incident.kind, Incident.state
    rows = await session.execute(_matching(choice).with_only_columns(*by, func.count()).group_by(*by))
    return {(kind, state): count for kind, state, count in rows}


async def told_at(session: AsyncSession, incident_ids: Collection[int]) -> Mapping[int, datetime]:
    """The time of the last announcement of each incident that was announced. Index: ix_incident_event_incident_id."""
    rows = await statements.rows(session, _TOLD_AT, {"incidents": statements.array_of(incident_ids)})
    return dict(rows)


async def incident_by_id(session: AsyncSession, incident_id: int, *, lock: bool = False) -> Incident:
    """An incident. Index: pk_incident."""
    statement = select(Incident).where(Incident.id == incident_id)
    row = await session.scalar(statement.with_for_update() if lock else statement)
    if row is None:
        raise _unknown(incident_id)
    return row


def _unknown(incident_id: int) -> NotFoundError:
    return NotFoundError(
        f"There is no incident {incident_id}: GET /api/v1/incidents lists them.",
        missing=MissingObject("incident", str(incident_id)),
    )


async def details_of(session: AsyncSession, incidents: Sequence[Incident]) -> list[Detail]:
    """Incidents with their changes. Index: as `details_asked`."""
    if not incidents:
        return []
    async with statements.together(session) as ask:
        details = details_asked(ask, incidents)
    return details()


async def subjects_of(session: AsyncSession, changes: Collection[Change]) -> Mapping[Change, Subject]:
    """The names of changes, as rules match them. Index: as `_subjects_of`."""
    return {change: subject for change, subject, _ in await _subjects_of(session, changes)}


async def _subjects_of(session: AsyncSession, changes: Collection[Change]) -> Sequence[tuple[Change, Subject, str]]:
    """Changes with their names and the device of each. Index: pk_case, pk_machine, pk_series."""
    ordered = [*changes]
    values = {
        "cases": [change.case_id for change in ordered],
        "machines": [change.machine_id for change in ordered],
        "series": [change.series_id for change in ordered],
    }
    rows = await statements.rows(session, _SUBJECTS, values) if ordered else []
    return [
        (ordered[place - 1], Subject(workload, case, ordered[place - 1].variant, metric, machine), device)
        for place, workload, case, machine, metric, device in rows
    ]


async def named_changes(session: AsyncSession, changes: Collection[Change]) -> list[NamedChange]:
    """The names of changes that are not stored. Index: pk_commit, pk_case, pk_machine, pk_series."""
    subjects = await _subjects_of(session, changes)
    ends = {id_ for each in changes for id_ in (each.reference_id, each.commit_id, each.ended_id) if id_ is not None}
    commits = _commits(await statements.rows(session, _COMMITS, {"ids": statements.array_of(ends)})) if ends else {}
    return [
        NamedChange(
            change,
            subject.workload,
            subject.case,
            device,
            subject.machine,
            subject.metric,
            None,
            None,
            commits[change.reference_id],
            commits[change.commit_id],
            None if change.ended_id is None else commits[change.ended_id],
        )
        for change, subject, device in subjects
    ]


def detail_asked(ask: QueryBatch, incident_id: int) -> Callable[[], Detail]:
    """An incident with its changes. Index: pk_incident, and as `details_asked`."""
    incidents = ask(
        Query(_INCIDENTS, {"incidents": statements.array_of([incident_id])}, _incidents, width=len(_INCIDENT))
    )
    details = _details_asked(ask, [incident_id])

    def read() -> Detail:
        if not incidents.value:
            raise _unknown(incident_id)
        return details(incidents.value)[0]

    return read


def details_asked(ask: QueryBatch, incidents: Sequence[Incident]) -> Callable[[], list[Detail]]:
    """Incidents with their changes. Index: as `_details_asked`."""
    details = _details_asked(ask, [incident.id for incident in incidents])
    return lambda: details(incidents)


def _details_asked(ask: QueryBatch, incident_ids: Sequence[int]) -> Callable[[Sequence[Incident]], list[Detail]]:
    """The changes of incidents, with whatever names them.

    Index: pk_incident, ix_change_incident_id, ix_verdict_incident_id, pk_project, pk_commit, pk_case, pk_machine, pk_series,
    uq_series_case_id_variant_metric_machine_id, pk_step, pk_series_state.
    """
    ids = statements.array_of(incident_ids)
    ask.give(changed=Query(_CHANGED, {"incidents": ids}, list))
    changed = ask(Query(_NAMED, {}, list, width=len(Change._fields) + 8))
    stored = Query(_COMMITS, {"incidents": ids}, _commits, width=len(NamedCommit._fields))
    commits_named = ask(stored.where(ids=_ENDS))
    projects = ask(Query(_PROJECTS, {"incidents": ids}, _names, width=2))
    given = ask(Query(_VERDICTS, {"incidents": ids}, _verdicts, width=len(_VERDICT)))
    likely_times = ask(Query(_LIKELY_TIMES, {}, _likely_times, width=2))

    def read(incidents: Sequence[Incident]) -> list[Detail]:
        commits = commits_named.value
        changes: dict[int, list[NamedChange]] = defaultdict(list)
        for incident_id, *row in changed.value:
            change = Change._make(row[: len(Change._fields)])
            ended = None if change.ended_id is None else commits[change.ended_id]
            names = *row[len(Change._fields) :], commits[change.reference_id], commits[change.commit_id], ended
            changes[incident_id].append(NamedChange(change, *names))
        return [
            Detail(
                incident,
                projects.value[incident.project_id],
                commits[incident.reference_id],
                commits[incident.commit_id],
                None if incident.ended_id is None else commits[incident.ended_id],
                changes.get(incident.id, ()),
                given.value.get(incident.id),
                likely_times.value.get(incident.id),
            )
            for incident in incidents
        ]

    return read


def _incidents(rows: Rows) -> Sequence[Incident]:
    return [_made(Incident, _INCIDENT, row) for row in rows]


def _names(rows: Rows) -> Mapping[int, str]:
    return dict(rows)


def _commits(rows: Rows) -> Mapping[int, NamedCommit]:
    return {row[0]: NamedCommit._make(row) for row in rows}


def _likely_times(rows: Rows) -> Mapping[int, float]:
    return dict(rows)


def _verdicts(rows: Rows) -> Mapping[int, Verdict]:
    return {verdict.incident_id: verdict for verdict in (_made(Verdict, _VERDICT, row) for row in rows)}


def _made(kind: type[T], fields: Sequence[str], row: Sequence[Any]) -> T:
    return kind(**dict(zip(fields, row, strict=True)))


def events_of(incident_id: int) -> Query[Sequence[IncidentEvent]]:
    """The events of an incident, oldest first. Index: ix_incident_event_incident_id."""

    def read(rows: Rows) -> Sequence[IncidentEvent]:
        return [_made(IncidentEvent, _EVENT, row) for row in rows]

    return Query(_EVENTS, {"incident": incident_id}, read, width=len(_EVENT))


def bisection_of(incident_id: int) -> Query[NamedBisection | None]:
    """The bisection of an incident. Index: pk_bisection, ix_incident_job_incident_id."""

    def read(rows: Rows) -> NamedBisection | None:
        return next(map(NamedBisection._make, rows), None)

    return Query(_BISECTION, {"incident": incident_id}, read, width=len(NamedBisection._fields))


async def every_verdict(session: AsyncSession, incident_id: int) -> Sequence[Verdict]:
    """All verdicts on an incident, revoked ones too, oldest first. Index: ix_verdict_incident_id."""
    statement = select(Verdict).where(Verdict.incident_id == incident_id).order_by(Verdict.id)
    return (await session.scalars(statement)).all()


async def changes_of_incidents(session: AsyncSession, ids: Collection[int]) -> Mapping[int, list[Change]]:
    """The changes of each of some incidents. Index: ix_change_incident_id."""
    columns = [getattr(StoredChange, field) for field in Change._fields]
    results: dict[int, list[Change]] = defaultdict(list)
    rows = await session.execute(
        select(StoredChange.incident_id, *columns).where(StoredChange.incident_id.in_(ids)).order_by(StoredChange.id)
    )
    for incident_id, *change in rows:
        results[incident_id].append(Change._make(change))
    return results


async def verdicts_of(session: AsyncSession, ids: Collection[int]) -> Mapping[int, Verdict]:
    """The valid verdict of each incident. Index: ix_verdict_incident_id."""
    given = select(Verdict).where(Verdict.incident_id.in_(ids), Verdict.revoked_at.is_(None)).order_by(Verdict.id)
    return {verdict.incident_id: verdict for verdict in await session.scalars(given)}

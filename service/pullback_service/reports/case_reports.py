"""The reports that hold a case at a commit, and at the commits measured before and after it."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, LiteralString, NamedTuple
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.commits.predecessors import FARTHEST
from pullback_service.errors import MissingObject, NotFoundError
from pullback_service.ids import MachineId, ProjectId
from pullback_service.models.commits import Commit
from pullback_service.models.reports import WRONG_GRADIENT
from pullback_service.reports.case_frames import TAIL_BYTES, FrameIndex, index_of
from pullback_service.series.queries import COMMIT_COLUMNS, CommitFacts
from pullback_service.statements import Query, Rows


class StoredCase(NamedTuple):
    """A case by its names; `identity` finds it in the files of reports."""

    id: int
    label: str
    identity: bytes


@dataclass(frozen=True, slots=True)
class CaseReport:
    """The newest clean upload that measured a case at a commit on a machine; a busy one where none is clean.

    One in which it failed speaks where none measured it, and before all others one that found its gradient wrong. `index`
    says where its file has which case, if it does.
    """

    report_id: UUID
    machine_id: MachineId
    machine: str
    index: FrameIndex | None
    commit: CommitFacts


@dataclass(frozen=True, slots=True)
class CasePlace:
    """A case at a commit, with its neighbours in history on the same machine; a commit at which it failed is none."""

    case: StoredCase
    here: CaseReport
    before: CaseReport | None
    after: CaseReport | None


_CASE: Final[LiteralString] = """
SELECT id, label, identity FROM "case" WHERE project_id = %(project)s AND label = %(label)s LIMIT 1
"""
# What a report says of a case, the first of which counts: 0 that its gradient is wrong, whatever others measured, 1 numbers,
# 2 another failure. A newer report of one variant hides nothing of a fuller one.
_SPEAKING: Final[LiteralString] = """
SELECT report.id AS report_id, report.machine_id, machine.name AS machine, report.commit_id
  FROM (SELECT report_id, min(says) AS says, count(*) AS parts
          FROM (SELECT point.report_id, 1 AS says
                  FROM series_of_case, LATERAL (
                       SELECT report_id FROM point WHERE series_id = series_of_case.id AND commit_id = {commit} OFFSET 0) point
                 UNION ALL
                SELECT report_id, CASE WHEN kind = %(wrong)s THEN 0 ELSE 2 END
                  FROM failure
                 WHERE case_id = %(case)s AND (ordered_at, commit_id) = ({ordered_at}, {commit})) told
         GROUP BY report_id) speaking
  JOIN report ON report.id = speaking.report_id
  JOIN machine ON machine.id = report.machine_id
 WHERE {which}
WINDOW of_machine AS (PARTITION BY report.machine_id)
 ORDER BY max(report.started_at) OVER of_machine DESC, machine.name, machine.id, says <> 0, says,
          parts DESC, report.quality <> 'clean', report.started_at DESC, report.id DESC
 LIMIT 1
"""
_HERE: Final[LiteralString] = (
    _SPEAKING.replace("{commit}", "%(commit)s")
    .replace("{ordered_at}", "%(ordered_at)s")
    .replace(
        "{which}",
        "(%(machine)s::text IS NULL OR machine.name = %(machine)s) AND report.id <> ALL (%(without)s::uuid[])",
    )
)
_THERE: Final[LiteralString] = (
    _SPEAKING.replace("{commit}", "(SELECT id FROM {there})")
    .replace("{ordered_at}", "(SELECT ordered_at FROM {there})")
    .replace("{which}", "machine.name = (SELECT machine FROM here)")
)
_COUNTS: Final[LiteralString] = """
EXISTS (SELECT FROM reading WHERE commit_id = parent.id AND series_id = ANY (ARRAY (SELECT id FROM series_here))) AS counts
"""
# Along first parents, to the nearest at which the machine measured the case, else the oldest that is known.
_WALK: Final[LiteralString] = f"""
       SELECT parent.id, parent.ordered_at, 1 AS steps, {_COUNTS}
         FROM commit_parent told
         JOIN commit parent ON parent.project_id = %(project)s AND parent.sha = told.parent_sha
        WHERE told.commit_id = {{start}} AND told.position = 0
        UNION ALL
       SELECT parent.id, parent.ordered_at, walked.steps + 1, {_COUNTS}
         FROM {{walk}} walked
         JOIN commit_parent told ON told.commit_id = walked.id AND told.position = 0
         JOIN commit parent ON parent.project_id = %(project)s AND parent.sha = told.parent_sha
        WHERE NOT walked.counts AND walked.steps < %(farthest)s
"""  # noqa: S608 - our own words
_NEIGHBOUR: Final[LiteralString] = """
SELECT nearest.ordered_at, nearest.id
  FROM series_here, LATERAL (
       SELECT ordered_at, commit_id AS id
         FROM reading
        WHERE series_id = series_here.id AND (ordered_at, commit_id) {beyond} ({ordered_at}, {id})
        ORDER BY ordered_at {order}, commit_id {order}
        LIMIT 1) nearest
 WHERE {when}
 ORDER BY nearest.ordered_at {order}, nearest.id {order}
 LIMIT 1
"""
_EARLIER: Final[LiteralString] = (
    _NEIGHBOUR.replace("{beyond}", "<")
    .replace("{order}", "DESC")
    .replace("{ordered_at}", "(SELECT ordered_at FROM known)")
    .replace("{id}", "(SELECT id FROM known)")
    .replace("{when}", "NOT EXISTS (SELECT FROM reached WHERE counts)")
)
_LATER: Final[LiteralString] = (
    _NEIGHBOUR.replace("{beyond}", ">")
    .replace("{order}", "ASC")
    .replace("{ordered_at}", "%(ordered_at)s")
    .replace("{id}", "%(commit)s")
    .replace("{when}", "true")
)
# An ancestor of which nobody told a date stands where it was first heard of, which may be behind its children: `known` is
# the earlier of the two places, and what is made from this commit is not before it.
_PLACE: Final[LiteralString] = f"""
  WITH RECURSIVE series_of_case AS MATERIALIZED (SELECT id, machine_id FROM series WHERE case_id = %(case)s),
       here AS MATERIALIZED ({_HERE}),
       series_here AS MATERIALIZED (
       SELECT id FROM series_of_case WHERE machine_id = (SELECT machine_id FROM here)),
       back AS ({_WALK.replace("{start}", "%(commit)s").replace("{walk}", "back")}),
       reached AS MATERIALIZED (SELECT id, ordered_at, counts FROM back ORDER BY steps DESC LIMIT 1),
       known AS (
       SELECT ordered_at, id
         FROM (SELECT %(ordered_at)s::timestamptz AS ordered_at, %(commit)s::bigint AS id UNION ALL SELECT ordered_at, id FROM reached) both_places
        ORDER BY ordered_at, id
        LIMIT 1),
       earlier AS MATERIALIZED ({_EARLIER}),
       onward AS ({_WALK.replace("{start}", "(SELECT id FROM earlier)").replace("{walk}", "onward")}),
       before AS MATERIALIZED (
       SELECT ordered_at, id FROM reached WHERE counts
        UNION ALL
       SELECT ordered_at, id FROM earlier WHERE NOT EXISTS (SELECT FROM onward WHERE counts AND onward.id = %(commit)s)),
       after AS MATERIALIZED ({_LATER})
SELECT place, report_id, speaking.machine_id, machine,
       substring(report.body FROM greatest(octet_length(report.body) - %(tail)s + 1, 1)), {COMMIT_COLUMNS}
  FROM (SELECT 0 AS place, here.* FROM here
         UNION ALL
        SELECT 1, there.* FROM ({_THERE.replace("{there}", "before")}) there WHERE EXISTS (SELECT FROM before)
         UNION ALL
        SELECT 2, there.* FROM ({_THERE.replace("{there}", "after")}) there WHERE EXISTS (SELECT FROM after)) speaking
  JOIN commit ON commit.id = speaking.commit_id
  JOIN report ON report.id = speaking.report_id
"""  # noqa: S608 - our own words


def case_called(project_id: ProjectId, label: str) -> Query[StoredCase]:
    """A case of a project. Index: ix_case_workload."""

    def read(rows: Rows) -> StoredCase:
        for row in rows:
            return StoredCase._make(row)
        raise NotFoundError(f"No upload of this project has a case {label!r}.", missing=MissingObject("case", label))

    return Query(_CASE, {"project": project_id, "label": label}, read)


def reports_of_case(
    project_id: ProjectId,
    case_id: int,
    commit_id: int,
    ordered_at: datetime | None,
    *,
    machine: str | None = None,
    without: Collection[UUID] = (),
) -> Query[Mapping[int, CaseReport]]:
    """The reports of `place_of_case`: 0 at the commit, 1 before it, 2 after it. Index: as `place_of_case`, pk_commit.

    Without `ordered_at` the place of the commit is looked up.
    """
    values = {
        "project": project_id,
        "case": case_id,
        "commit": commit_id,
        "ordered_at": ordered_at,
        "machine": machine,
        "without": [*without],
        "wrong": WRONG_GRADIENT,
        "farthest": FARTHEST,
        "tail": TAIL_BYTES,
    }
    asked = Query(_PLACE, values, _reports, width=5 + len(CommitFacts._fields))
    return (
        asked
        if ordered_at is not None
        else asked.where(ordered_at="(SELECT ordered_at FROM commit WHERE id = %(commit)s)")
    )


def _reports(rows: Rows) -> Mapping[int, CaseReport]:
    return {
        place: CaseReport(report_id, MachineId(machine_id), name, index_of(tail), CommitFacts._make(facts))
        for place, report_id, machine_id, name, tail, *facts in rows
    }


async def place_of_case(
    session: AsyncSession,
    project_id: ProjectId,
    case: StoredCase,
    commit: Commit,
    *,
    machine: str | None = None,
    without: Collection[UUID] = (),
) -> CasePlace:
    """A case at a commit, on the machine of that name or else on the one whose report came last; `without` some reports.

    The commit before is the nearest ancestor at which the machine measured the case; behind the last that is known, what
    lies before that in history.

    Index: uq_series_case_id_variant_metric_machine_id, then one probe of ix_point_commit_id_series_id and of
    ix_reading_series_history for each series of the case; ix_failure_case_history; for the commit before pk_commit_parent,
    uq_commit_project_id_sha and pk_reading.
    """
    asked = reports_of_case(project_id, case.id, commit.id, commit.ordered_at, machine=machine, without=without)
    results = asked.read(await statements.rows(session, asked.statement, asked.values))
    if 0 not in results:
        on, missing = "", MissingObject("case", case.label)
        if machine is not None:
            on, missing = f" on machine {machine!r}", MissingObject("machine", machine)
        raise NotFoundError(f"No upload measured {case.label!r} at {commit.sha[:9]}{on}.", missing=missing)
    return CasePlace(case, results[0], results.get(1), results.get(2))

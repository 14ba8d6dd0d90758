"""Reading reports back."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, LiteralString
from uuid import UUID

from sqlalchemy import Select, select, true, tuple_
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm.attributes import set_committed_value

from pullback_service import statements
from pullback_service.errors import MissingObject, NotFoundError
from pullback_service.ids import MachineId
from pullback_service.models.commits import Commit
from pullback_service.models.machines import Machine
from pullback_service.models.projects import Project
from pullback_service.models.reports import Report
from pullback_service.projects.queries import id_of
from pullback_service.reports.case_frames import OUTLINE_TAIL_BYTES, OUTLINED
from pullback_service.statements import Query, Rows

_FILES = "SELECT id, body, document FROM report WHERE id = ANY (%(reports)s::uuid[])"
_OUTLINES: Final[LiteralString] = """
SELECT id,
       CASE WHEN substring(body FROM octet_length(body) - 3) = %(outlined)s::bytea AND document IS NULL
            THEN substring(body FROM greatest(octet_length(body) - %(tail)s::int + 1, 1)) ELSE body END,
       document
  FROM report
 WHERE id = ANY (%(reports)s::uuid[])
"""
_PARTS: LiteralString = """
SELECT CASE WHEN wanted.size IS NULL THEN report.body ELSE substring(report.body FROM wanted.at + 1 FOR wanted.size) END, report.document
  FROM unnest(%(reports)s::uuid[], %(at)s::int[], %(sizes)s::int[]) WITH ORDINALITY wanted (id, at, size, place)
  LEFT JOIN report ON report.id = wanted.id
 ORDER BY wanted.place
"""
_FIELDS: Final = tuple(each.key for each in Report.__table__.columns if each.key not in {"body", "document"})
_AT_COMMIT: Final[LiteralString] = f"""
SELECT {", ".join(f"report.{name}" for name in _FIELDS)}, project.name, commit.sha, machine.name
  FROM report
  JOIN project ON project.id = report.project_id
  JOIN commit ON commit.id = report.commit_id
  JOIN machine ON machine.id = report.machine_id
 WHERE report.commit_id = %(commit)s
 ORDER BY report.started_at DESC, report.id DESC
 LIMIT %(limit)s
"""  # noqa: S608 - our own words


@dataclass(frozen=True, slots=True)
class StoredReport:
    """A report with the names of what it belongs to."""

    report: Report
    project: str
    commit: str
    machine: str


async def report_by_id(session: AsyncSession, report_id: UUID, *, with_body: bool = False) -> StoredReport:
    """A report. Index: pk_report."""
    listed = await reports_by_id(session, [report_id])
    if not listed:
        raise NotFoundError(
            f"There is no report {report_id}: GET /api/v1/reports lists them.",
            missing=MissingObject("report", str(report_id)),
        )
    if with_body:
        await read_files(session, [listed[report_id]])
    return listed[report_id]


async def reports_by_id(session: AsyncSession, report_ids: Collection[UUID]) -> Mapping[UUID, StoredReport]:
    """Some reports by their ids. Index: pk_report."""
    rows = await session.execute(_select().where(Report.id.in_(report_ids)))
    return {row[0].id: StoredReport(*row) for row in rows}


async def read_files(session: AsyncSession, stored: Collection[StoredReport]) -> None:
    """The uploaded file, and the document made from it. SQLAlchemy asks for text, which is twice as long and read anew.

    Index: pk_report.
    """
    ids = [each.report.id for each in stored]
    rows = {id_: files for id_, *files in await statements.rows(session, _FILES, {"reports": ids}, binary=True)}
    for each in stored:
        # Of a report that was removed meanwhile there is no file any more.
        body, document = rows.get(each.report.id, (None, None))
        set_committed_value(each.report, "body", body)
        set_committed_value(each.report, "document", document)


def reports_at(commit_id: int, *, limit: int) -> Query[Sequence[StoredReport]]:
    """The reports at a commit of a project that was found, the one measured last first. Index: ix_report_commit_id."""
    return Query(_AT_COMMIT, {"commit": commit_id, "limit": limit}, _stored, width=len(_FIELDS) + 3)


def _stored(rows: Rows) -> Sequence[StoredReport]:
    return [StoredReport(Report(**dict(zip(_FIELDS, row, strict=False))), *row[-3:]) for row in rows]


def outlines_of(report_ids: Collection[UUID]) -> Query[Mapping[UUID, Report]]:
    """Reports by their ids, with as much of their files as `outline_of` needs, and nothing else. Index: pk_report."""
    values = {"reports": [*report_ids], "tail": OUTLINE_TAIL_BYTES, "outlined": OUTLINED}
    return Query(_OUTLINES, values, _files, width=3)


def _files(rows: Rows) -> Mapping[UUID, Report]:
    return {id_: Report(id=id_, body=body, document=document) for id_, body, document in rows}


def file_parts(
    wanted: Sequence[tuple[UUID, tuple[int, int] | None]],
) -> Query[Sequence[tuple[bytes | None, bytes | None]]]:
    """Parts of files of reports, as (place, bytes) or None for all of it, each with the document beside it. Index: pk_report."""
    places = [part or (None, None) for _, part in wanted]
    values = {
        "reports": [report_id for report_id, _ in wanted],
        "at": [at for at, _ in places],
        "sizes": [size for _, size in places],
    }
    return Query(_PARTS, values, lambda rows: [(body, document) for body, document in rows], width=2)


async def list_reports(
    session: AsyncSession,
    *,
    project: str | None,
    commit: str | None,
    before: tuple[datetime, UUID] | None,
    limit: int,
) -> Sequence[StoredReport]:
    """Reports, newest upload first. Index: ix_report_project_received within a project, ix_report_commit_id."""
    statement = _select().order_by(Report.received_at.desc(), Report.id.desc())
    if project is not None:
        # By its id: with the name joined, a planner sorts all reports of the project for the newest of them.
        statement = statement.where(Report.project_id == id_of(project))
    if commit is not None:
        statement = statement.where(Commit.sha == commit)
    if before is not None:
        statement = statement.where(tuple_(Report.received_at, Report.id) < before)
    return [StoredReport(*row) for row in await session.execute(statement.limit(limit))]


async def newest_of_machines(
    session: AsyncSession, machine_ids: Collection[MachineId], *, limit: int
) -> Mapping[MachineId, Sequence[StoredReport]]:
    """The last uploads from each of some machines, newest first. Index: ix_report_machine, once a machine and project."""
    newest = (
        select(Report.id)
        .where(Report.machine_id == Machine.id, Report.project_id == Project.id)
        .order_by(Report.received_at.desc())
        .limit(limit)
        .lateral()
    )
    ids = select(newest.c.id).select_from(Machine).join(Project, true()).join(newest, true())
    rows = await session.execute(
        _select().where(Report.id.in_(ids.where(Machine.id.in_(machine_ids)))).order_by(Report.received_at.desc())
    )
    results: dict[MachineId, list[StoredReport]] = {}
    for row in rows:
        stored = StoredReport(*row)
        of_machine = results.setdefault(MachineId(stored.report.machine_id), [])
        if len(of_machine) < limit:
            of_machine.append(stored)
    return results


def _select() -> Select[Report, str, str, str]:
    return (
        select(Report, Project.name, Commit.sha, Machine.name)
        .select_from(Report)
        .join(Project, Project.id == Report.project_id)
        .join(Commit, Commit.id == Report.commit_id)
        .join(Machine, Machine.id == Report.machine_id)
    )

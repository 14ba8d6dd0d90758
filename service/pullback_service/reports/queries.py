"""Reading reports back."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
from sqlalchemy import Select, select, true, tuple_
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm.attributes import set_committed_value

from pullback_service import statements
from pullback_service.commits.models import Commit
from pullback_service.errors import DamagedError, GoneError, NotFoundError
from pullback_service.ids import MachineId
from pullback_service.logs import logger
from pullback_service.machines.models import Machine
from pullback_service.projects.models import Project
from pullback_service.projects.queries import id_of
from pullback_service.reports.models import Report
from pullback_service.reports.outlining import outline
from pullback_service.reports.packing import unpacked
from pullback_service.reports.reading import unwrap
from pullback_service.reports.splitting import split
from pullback_service.series.cases import identity

_FILES = "SELECT body, document FROM report WHERE id = %(report)s"


@dataclass(frozen=True, slots=True)
class StoredReport:
    """A report with the names of what it belongs to."""

    report: Report
    project: str
    commit: str
    machine: str


def body_of(report: Report) -> bytes:
    """The file as it was uploaded; the report must have been read with its body."""
    if report.body is None:
        raise GoneError(
            f"The file of report {report.id} was dropped after the time for which its project keeps files: "
            "its points and comparisons are still there."
        )
    return _unpacked(report, report.body)


def document_of(report: Report) -> dict[str, Any]:
    """Our document inside the uploaded file, or the one that was made from it."""
    if report.document is not None:
        made: dict[str, Any] = orjson.loads(_unpacked(report, report.document))
        return made
    return unwrap(orjson.loads(body_of(report)))[0]


def outline_of(report: Report) -> dict[str, Any]:
    """Our document as `document_of` gives it, of its slices only how many there were, in half the time."""
    if report.document is not None:
        made: dict[str, Any] = outline(_unpacked(report, report.document))
        return made
    return unwrap(outline(body_of(report)))[0]


def case_of(report: Report, wanted: bytes) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """The entry of the case of this identity, and our document with nothing of its cases but what they are."""
    parts = None if report.document is not None else split(body_of(report))
    if parts is None or unwrap(parts.head)[0] is not parts.head:
        document = document_of(report)
        entry = next((entry for entry in document["cases"] if _identity(entry["case"]) == wanted), None)
        return None if entry is None else (document, entry)
    found = next((each for each in parts.cases if _identity(each.case) == wanted), None)
    document = {**parts.head, "cases": [{"case": each.case} for each in parts.cases]}
    return None if found is None else (document, found.read())


def _unpacked(report: Report, stored: bytes) -> bytes:
    """A stored file; a page goes on without it, so that whoever keeps the database learns of it from the log."""
    try:
        return unpacked(stored)
    except ValueError as error:
        logger.error("stored_file_damaged", report=str(report.id), reason=str(error))
        raise DamagedError(
            f"The stored file of report {report.id} is damaged: its points and comparisons are still there, and a backup of "
            "the database may have the file."
        ) from error


def _identity(case: Mapping[str, Any]) -> bytes:
    return identity(case["workload"], case.get("params", {}), case.get("dtype"), case.get("device"))


async def report_by_id(session: AsyncSession, report_id: UUID, *, with_body: bool = False) -> StoredReport:
    """A report. Index: pk_report."""
    row = (await session.execute(_select().where(Report.id == report_id))).one_or_none()
    if row is None:
        raise NotFoundError(f"There is no report {report_id}: GET /api/v1/reports lists those there are.")
    if with_body:
        await _read_files(session, row[0])
    return StoredReport(*row)


async def _read_files(session: AsyncSession, report: Report) -> None:
    """What was uploaded, and what was made from it. SQLAlchemy asks for text, which is twice as long and read anew."""
    found = await statements.rows(session, _FILES, {"report": report.id}, binary=True)
    # Of a report that was removed meanwhile there is no file any more.
    body, document = found[0] if found else (None, None)
    set_committed_value(report, "body", body)
    set_committed_value(report, "document", document)


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
    found: dict[MachineId, list[StoredReport]] = {}
    for row in rows:
        stored = StoredReport(*row)
        of_machine = found.setdefault(MachineId(stored.report.machine_id), [])
        if len(of_machine) < limit:
            of_machine.append(stored)
    return found


def _select() -> Select[Report, str, str, str]:
    return (
        select(Report, Project.name, Commit.sha, Machine.name)
        .select_from(Report)
        .join(Project, Project.id == Report.project_id)
        .join(Commit, Commit.id == Report.commit_id)
        .join(Machine, Machine.id == Report.machine_id)
    )

"""Reading reports back."""

import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
from sqlalchemy import Select, select, true, tuple_
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import undefer

from pullback_service.commits.models import Commit
from pullback_service.errors import GoneError, NotFoundError
from pullback_service.ids import MachineId
from pullback_service.machines.models import Machine
from pullback_service.projects.models import Project
from pullback_service.reports.models import Report
from pullback_service.reports.reading import unwrap


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
    return zlib.decompress(report.body)


def document_of(report: Report) -> dict[str, Any]:
    """Our document inside the uploaded file, or the one that was made from it."""
    if report.document is not None:
        made: dict[str, Any] = orjson.loads(zlib.decompress(report.document))
        return made
    return unwrap(orjson.loads(body_of(report)))[0]


async def report_by_id(session: AsyncSession, report_id: UUID, *, with_body: bool = False) -> StoredReport:
    """A report. Index: pk_report."""
    statement = _select().where(Report.id == report_id)
    if with_body:
        statement = statement.options(undefer(Report.body), undefer(Report.document))
    row = (await session.execute(statement)).one_or_none()
    if row is None:
        raise NotFoundError(f"There is no report {report_id}: GET /api/v1/reports lists those there are.")
    return StoredReport(*row)


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
        project_id = select(Project.id).where(Project.name == project).scalar_subquery()
        statement = statement.where(Report.project_id == project_id)
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

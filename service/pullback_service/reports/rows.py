"""The row of a report: what its head says, and what reading all of it found, stored at once or one after the other."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.ids import JobId, ProjectId
from pullback_service.reports.models import Report
from pullback_service.reports.placing import Place
from pullback_service.reports.preparing import PreparedReport
from pullback_service.reports.schemas import FORMAT, ReportHead


@dataclass(frozen=True, slots=True)
class ForJob:
    """Whose result a report is, and whether it came too late to be the accepted one."""

    job_id: JobId
    attempt: int
    late: bool


def begin_row(project_id: ProjectId, place: Place, head: ReportHead, key: str, for_job: ForJob | None = None) -> Report:
    """The row of a report of which only the head is known; `fill` says the rest."""
    return Report(
        id=head.id,
        project_id=project_id,
        commit_id=place.commit.id,
        machine_id=place.machine_id,
        job_id=for_job.job_id if for_job else None,
        attempt=for_job.attempt if for_job else None,
        status="late" if for_job and for_job.late else "accepted",
        idempotency_key=key,
        digest=b"",
        body=None,
        body_bytes=0,
        document=None,
        format=FORMAT,
        version=head.version,
        suite=head.harness.suite,
        quality=head.harness.quality,
        dirty=head.commit.dirty,
        cases=0,
        points=0,
        failures=0,
        started_at=head.started_at,
        duration_s=head.duration_s,
    )


def fill(report: Report, prepared: PreparedReport, *, is_on_history: bool) -> None:
    """What reading all of it found."""
    parts = prepared.read.parts
    report.digest = prepared.read.digest
    report.body = prepared.body
    report.body_bytes = prepared.body_bytes
    report.document = prepared.document
    report.format = prepared.read.format
    report.cases = parts.measured_cases
    report.points = len(parts.points) if is_on_history else 0
    report.failures = len(parts.failures) if is_on_history else 0


_STORED = {
    name: column.type.compile(postgresql.dialect())  # type: ignore[no-untyped-call] # SQLAlchemy leaves its dialects untyped
    for name, column in Report.__table__.c.items()
    if name not in {"received_at", "followed_up_at", "rolled_up_at"}
}
# Arrays in binary: as text a body takes twice its bytes.
_INSERT = (
    f"INSERT INTO report ({', '.join(_STORED)}) "  # noqa: S608 - names of columns
    f"SELECT * FROM unnest({', '.join(f'%({name})b::{type_}[]' for name, type_ in _STORED.items())}) "
    "ON CONFLICT DO NOTHING RETURNING id"
)
_FILLED: Final = ("digest", "body", "body_bytes", "document", "format", "cases", "points", "failures")
_FILL = f"UPDATE report SET {', '.join(f'{name} = %({name})b' for name in _FILLED)} WHERE id = %(id)s"  # noqa: S608


async def insert_rows(session: AsyncSession, reports: Iterable[Report]) -> set[UUID]:
    """The ids of those that are stored now; one is not where its id, its key or its job's result is taken.

    Rows go in one order for everybody, so that two who store the same reports never wait for each other in a circle.
    """
    ordered = sorted(reports, key=lambda report: report.id)
    values = {name: [getattr(report, name) for report in ordered] for name in _STORED}
    return {row[0] for row in await statements.rows(session, _INSERT, values)}


async def fill_row(session: AsyncSession, report: Report) -> None:
    """Store what `fill` said of a row that this transaction inserted. Index: pk_report."""
    await statements.run(session, _FILL, {"id": report.id, **{name: getattr(report, name) for name in _FILLED}})

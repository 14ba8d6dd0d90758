"""The row of a report."""

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.ids import JobId, ProjectId
from pullback_service.models.reports import Report
from pullback_service.reports.commits_and_machines import CommitAndMachine
from pullback_service.reports.preparation import PreparedReport


@dataclass(frozen=True, slots=True)
class JobAttempt:
    """Whose result a report is, and whether it came too late to be the accepted one."""

    job_id: JobId
    attempt: int
    late: bool


def row_of(
    project_id: ProjectId,
    place: CommitAndMachine,
    prepared: PreparedReport,
    key: str,
    for_job: JobAttempt | None = None,
    *,
    is_on_history: bool,
) -> Report:
    """The row of a report: what its head says, and what reading it found."""
    head, parts = prepared.read.head, prepared.read.parts
    return Report(
        id=head.id,
        project_id=project_id,
        commit_id=place.commit.id,
        machine_id=place.machine_id,
        job_id=for_job.job_id if for_job else None,
        attempt=for_job.attempt if for_job else None,
        status="late" if for_job and for_job.late else "accepted",
        idempotency_key=key,
        digest=prepared.read.digest,
        body=prepared.body,
        body_bytes=prepared.body_bytes,
        document=prepared.document,
        format=prepared.read.format,
        version=head.version,
        suite=head.harness.suite,
        quality=head.harness.quality,
        dirty=head.commit.dirty,
        partial=head.harness.partial,
        device=parts.device,
        cases=parts.measured_cases,
        points=len(parts.points) if is_on_history else 0,
        failures=len(parts.failures) if is_on_history else 0,
        started_at=head.started_at,
        duration_s=head.duration_s,
    )


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


async def insert_rows(session: AsyncSession, reports: Iterable[Report]) -> set[UUID]:
    """The ids of those that are stored now; one is not where its id, its key or its job's result is taken.

    Rows go in one order for everybody, so that two who store the same reports never wait for each other in a circle.
    """
    ordered = sorted(reports, key=lambda report: report.id)
    values = {name: [getattr(report, name) for report in ordered] for name in _STORED}
    return {row[0] for row in await statements.rows(session, _INSERT, values)}

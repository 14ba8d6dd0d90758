"""Reading the audit log."""

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.models.audit import Audit
from pullback_service.name_characters import in_one_form


async def list_lines(
    session: AsyncSession, *, project: str | None, before_id: int | None, limit: int
) -> Sequence[Audit]:
    """Lines, newest first. Index: pk_audit, ix_audit_project within a project."""
    statement = select(Audit).order_by(Audit.id.desc()).limit(limit)
    if project is not None:
        statement = statement.where(Audit.project.in_({project, in_one_form(project)}))
    if before_id is not None:
        statement = statement.where(Audit.id < before_id)
    return (await session.scalars(statement)).all()

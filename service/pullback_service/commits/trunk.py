"""The trunk of a project: the branch that is watched for changes, and that others are compared with."""

from typing import Final, LiteralString

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements

TRUNK: Final[LiteralString] = """
coalesce(project.trunk, project.file_trunk, project.backfill ->> 'branch', (
  SELECT name FROM branch
   WHERE branch.project_id = project.id
   ORDER BY name <> 'main', name <> 'master', id
   LIMIT 1), 'main')
"""
"""The name of the trunk of a row of `project`: given, else that of `pullback.toml`, else the branch of the backfill, else main, master or the first branch."""
_TRUNK_OF: Final[LiteralString] = f"SELECT {TRUNK} FROM project WHERE id = %(project)s"  # noqa: S608 - our own words


async def trunk_of(session: AsyncSession, project_id: int) -> str:
    """The name of a project's trunk. Index: pk_project, uq_branch_project_id_name."""
    row = await statements.row(session, _TRUNK_OF, {"project": project_id})
    assert row is not None  # noqa: S101 - a project that exists
    return str(row[0])

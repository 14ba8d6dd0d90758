"""Which measured commit another one follows: along first parents, where these were told.

History is one line on pages (`history.py`), on which commits of several branches lie between each other. What changed at a
commit is told against the one that it was made from, for what a neighbour of another branch did is not its doing.
"""

from collections.abc import Collection, Mapping
from typing import Final, LiteralString

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.commits.naming import FARTHEST_ANCESTOR
from pullback_service.ids import MachineId, ProjectId

# The walk from a commit ends at the first ancestor that counts, at a parent nobody told of, or after too many steps.
_WALK: Final[LiteralString] = """
WITH RECURSIVE walk AS (
       SELECT asked.id AS start, asked.id, 0 AS steps, false AS arrived
         FROM unnest(%(commits)s::bigint[]) asked (id)
        UNION ALL
       SELECT walk.start, parent.id, walk.steps + 1, EXISTS ({counts})
         FROM walk
         JOIN commit_parent edge ON edge.commit_id = walk.id AND edge.position = 0
         JOIN commit parent ON parent.project_id = %(project)s AND parent.sha = edge.parent_sha
        WHERE NOT walk.arrived AND walk.steps < %(farthest)s)
SELECT start, id FROM walk WHERE arrived
"""
_BY_MACHINE: Final[LiteralString] = _WALK.replace(
    "{counts}",
    "SELECT FROM report WHERE report.commit_id = parent.id AND report.machine_id = %(machine)s"
    " AND (report.points > 0 OR report.failures > 0)",
)
_OF_SERIES: Final[LiteralString] = _WALK.replace(
    "{counts}",
    "SELECT FROM point WHERE point.commit_id = parent.id AND point.series_id = ANY (%(series)s::bigint[])",
)


async def followed_on(
    session: AsyncSession, project_id: ProjectId, machine_id: MachineId, commit_ids: Collection[int]
) -> Mapping[int, int]:
    """The nearest ancestor of each commit that a machine measured; none where the way there is not known.

    Index: pk_commit_parent, uq_commit_project_id_sha, ix_report_commit_id.
    """
    return await _walked(session, _BY_MACHINE, project_id, commit_ids, {"machine": machine_id})


async def followed_in(
    session: AsyncSession, project_id: ProjectId, series_ids: Collection[int], commit_ids: Collection[int]
) -> Mapping[int, int]:
    """The nearest ancestor of each commit at which any of some series was measured; none where the way is not known.

    Index: pk_commit_parent, uq_commit_project_id_sha, ix_point_commit_id_series_id.
    """
    return await _walked(session, _OF_SERIES, project_id, commit_ids, {"series": statements.array_of(series_ids)})


async def _walked(
    session: AsyncSession,
    statement: LiteralString,
    project_id: ProjectId,
    commit_ids: Collection[int],
    values: Mapping[str, object],
) -> Mapping[int, int]:
    asked = {"commits": statements.array_of(commit_ids), "project": project_id, "farthest": FARTHEST_ANCESTOR}
    rows = await statements.rows(session, statement, {**asked, **values}) if commit_ids else []
    return {start: found for start, found in rows}  # noqa: C416 - rows are longer tuples to a type checker

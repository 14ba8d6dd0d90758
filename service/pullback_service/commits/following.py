"""Which measured commit another one follows: along first parents, as far as these were told.

History is one line on pages (`history.py`), on which commits of several branches lie between each other. What changed at a
commit is told against the one that it was made from, for what a neighbour of another branch did is not its doing. Behind the
oldest ancestor that is known, history is what is left: the commit before that one.
"""

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Final, LiteralString, NamedTuple, TypeAlias

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.commits.naming import FARTHEST_ANCESTOR
from pullback_service.ids import MachineId, ProjectId

Placed: TypeAlias = tuple[datetime, int]
"""Where a commit stands in history."""


class Reached(NamedTuple):
    """Where the way along first parents ends: at the nearest ancestor that `counts`, else at the oldest that is known."""

    ordered_at: datetime
    id: int
    counts: bool


_WALK: Final[LiteralString] = """
WITH RECURSIVE walk AS (
       SELECT asked.id AS start, commit.id, commit.ordered_at, 0 AS steps, false AS counts
         FROM unnest(%(commits)s::bigint[]) asked (id)
         JOIN commit USING (id)
        UNION ALL
       SELECT walk.start, parent.id, parent.ordered_at, walk.steps + 1, EXISTS ({counts})
         FROM walk
         JOIN commit_parent edge ON edge.commit_id = walk.id AND edge.position = 0
         JOIN commit parent ON parent.project_id = %(project)s AND parent.sha = edge.parent_sha
        WHERE NOT walk.counts AND walk.steps < %(farthest)s)
SELECT DISTINCT ON (start) start, ordered_at, id, counts FROM walk ORDER BY start, steps DESC
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
) -> Mapping[int, Reached]:
    """The nearest ancestor of each commit that a machine measured, or how far the way there is known.

    Index: pk_commit, pk_commit_parent, uq_commit_project_id_sha, ix_report_commit_id.
    """
    return await _walked(session, _BY_MACHINE, project_id, commit_ids, {"machine": machine_id})


async def followed_in(
    session: AsyncSession, project_id: ProjectId, series_ids: Collection[int], commit_ids: Collection[int]
) -> Mapping[int, Reached]:
    """The nearest ancestor of each commit at which any of some series was measured, or how far the way there is known.

    Index: pk_commit, pk_commit_parent, uq_commit_project_id_sha, ix_point_commit_id_series_id.
    """
    return await _walked(session, _OF_SERIES, project_id, commit_ids, {"series": statements.array_of(series_ids)})


def places_followed(places: Sequence[Placed], followed: Mapping[int, Reached]) -> Mapping[int, int]:
    """By its place, of each of some commits that does not follow the one before it, the place of the one that it follows.

    That is -1 where it is none of them. Commits come oldest first.
    """
    at = {commit_id: place for place, (_, commit_id) in enumerate(places)}
    found = {}
    for start, reached in followed.items():
        before_known = bisect_left(places, (reached.ordered_at, reached.id)) - 1
        before = at.get(reached.id, -1) if reached.counts else before_known
        if before != at[start] - 1:
            found[at[start]] = before
    return found


async def _walked(
    session: AsyncSession,
    statement: LiteralString,
    project_id: ProjectId,
    commit_ids: Collection[int],
    values: Mapping[str, object],
) -> Mapping[int, Reached]:
    asked = {"commits": statements.array_of(commit_ids), "project": project_id, "farthest": FARTHEST_ANCESTOR}
    rows = await statements.rows(session, statement, {**asked, **values}) if commit_ids else []
    return {start: Reached(*reached) for start, *reached in rows}

"""Placing commits in history, and moving everything measured at them along."""

from collections import Counter
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import LiteralString, NamedTuple

from sqlalchemy import DateTime, Text, bindparam, cast, func, update
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.commits.ancestry import StoredCommit, moved_places
from pullback_service.errors import InvalidInputError
from pullback_service.ids import ProjectId
from pullback_service.models.commits import Commit
from pullback_service.models.readings import StoredReading
from pullback_service.models.reports import Failure
from pullback_service.models.series import Point

MOST_LEVELS = 512


async def lock_graph(session: AsyncSession, project_id: ProjectId) -> None:
    """Let one transaction at a time change the graph of a project; those that find nothing new do not wait for it."""
    await statements.run(session, _LOCK_GRAPH, {"graph": f"graph {project_id}"})


_LOCK_GRAPH: LiteralString = "SELECT pg_advisory_xact_lock(hashtextextended(%(graph)s, 0))"


class PlacingResult(NamedTuple):
    """The hashes of commits that moved, and whether any of the new ones has a child that is not new."""

    moved: set[str]
    has_children: bool


async def settle(
    session: AsyncSession, project_id: ProjectId, shas: Collection[str], *, new: Collection[str] = ()
) -> PlacingResult:
    """Move commits of which something became known to their place, then the descendants that must follow them.

    Those that are `new` may have been unknown as parents so far, and push their children.

    Most push nobody, or a child; in a long line of commits without dates one may push all that follow. So each wave looks
    twice as far ahead as the one before.
    The project's graph must be locked. Index: uq_commit_project_id_sha, ix_commit_parent_parent_sha.
    """
    moved: set[str] = set()
    visits: Counter[str] = Counter()
    known = await _known(session, project_id, shas, parents=new)
    begun_with = len(known)
    has_children = any(one.first_parent in new and sha not in new for sha, one in known.items())
    levels = 1
    while known:
        visits.update(known.keys())
        # First parents are a forest: from each commit we began with, a child is reached once.
        looping = next((sha for sha in known if visits[sha] > begun_with + 1), None)
        if looping is not None:
            raise InvalidInputError(f"Commit {looping} is its own ancestor according to the parents sent: check them.")
        places = moved_places(known)
        if not places:
            break
        await _move(session, project_id, places)
        moved |= places.keys()
        wave = await _descendants(session, project_id, places.keys(), levels=levels) - known.keys()
        known = await _known(session, project_id, wave) if wave else {}
        levels = min(2 * levels, MOST_LEVELS)
    return PlacingResult(moved, has_children)


async def _known(
    session: AsyncSession, project_id: ProjectId, shas: Collection[str], *, parents: Collection[str] = ()
) -> dict[str, StoredCommit]:
    """Some commits, and those whose first parent is one of `parents`."""
    values = {"project": project_id, "shas": list(shas), "parents": list(parents)}
    rows = await statements.rows(session, _KNOWN, values)
    return {row[0]: StoredCommit(*row) for row in rows}


_KNOWN: LiteralString = """
SELECT c.sha, coalesce(least(c.authored_at, c.created_at + interval '1 day'), c.created_at), c.authored_at IS NOT NULL,
       c.ordered_at,
       p.parent_sha, parent.ordered_at, parent.authored_at IS NOT NULL
  FROM (SELECT id FROM commit WHERE project_id = %(project)s AND sha = ANY (%(shas)s::text[])
         UNION
        SELECT commit_id FROM commit_parent WHERE parent_sha = ANY (%(parents)s::text[]) AND position = 0) wanted
  JOIN commit c ON c.id = wanted.id AND c.project_id = %(project)s
  LEFT JOIN commit_parent p ON p.commit_id = c.id AND p.position = 0
  LEFT JOIN commit parent ON parent.project_id = %(project)s AND parent.sha = p.parent_sha
"""


async def _descendants(session: AsyncSession, project_id: ProjectId, shas: Collection[str], *, levels: int) -> set[str]:
    """Commits that reach one of these by so many first parents at most. Index: ix_commit_parent_parent_sha, pk_commit."""
    rows = await statements.rows(session, _DESCENDANTS, {"project": project_id, "shas": list(shas), "levels": levels})
    return {sha for (sha,) in rows}


_DESCENDANTS: LiteralString = """
  WITH RECURSIVE reach (sha, level) AS (
       SELECT unnest(%(shas)s::text[]), 0
        UNION ALL
       SELECT c.sha, reach.level + 1
         FROM reach
         JOIN commit_parent p ON p.parent_sha = reach.sha AND p.position = 0
         JOIN commit c ON c.id = p.commit_id AND c.project_id = %(project)s
        WHERE reach.level < %(levels)s)
SELECT DISTINCT sha FROM reach WHERE level > 0
"""


async def _move(session: AsyncSession, project_id: ProjectId, places: Mapping[str, datetime]) -> None:
    shas = sorted(places)
    to = (
        func.unnest(
            cast(bindparam("shas", shas, unique=True), ARRAY(Text)),
            cast(bindparam("places", [places[sha] for sha in shas], unique=True), ARRAY(DateTime(timezone=True))),
        )
        .table_valued("sha", "place")
        .render_derived("moving")
    )
    moved = (
        await session.execute(
            update(Commit)
            .where(Commit.project_id == project_id, Commit.sha == to.c.sha)
            .values(ordered_at=to.c.place)
            .returning(Commit.id)
            .execution_options(synchronize_session=False)
        )
    ).scalars()
    ids = list(moved)
    for measured in (Point, StoredReading, Failure):
        await session.execute(
            update(measured)
            .where(measured.commit_id == Commit.id, Commit.id.in_(ids))
            .values(ordered_at=Commit.ordered_at)
            .execution_options(synchronize_session=False)
        )

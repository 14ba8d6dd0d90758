"""The steps that an event touches: those of later commits that followed, or now follow, a commit at which something changed.

The graph of commits changes at the beginning of a transaction, and what that touches is known at its end, when no other one judges:
whoever changes it notes that here.
"""

from collections.abc import Sequence
from typing import Final, LiteralString

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.commits.graph_changes import noted_graph_change
from pullback_service.ids import ProjectId
from pullback_service.readings.queries import columns_of
from pullback_service.steps.reference_commits import BEFORE, FARTHEST, Pair, ReferenceCommit

# What is asked of `step`, and of `commit` by what is found there, stands in a LATERAL of its own: joined in one go, a planner that
# expects other numbers of rows reads all of it, for each series if it so happens.
# Rows are updated by their place on disk, which nobody changes meanwhile: whoever writes steps of a project has taken the turn.
_STALE_BELOW: Final[LiteralString] = """
WITH RECURSIVE below AS (
       SELECT id, sha FROM commit WHERE id = ANY (%(commits)s::bigint[])
        UNION
       SELECT child.id, child.sha
         FROM below
         JOIN commit_parent told ON told.parent_sha = below.sha AND told.position = 0
         JOIN commit child ON child.id = told.commit_id AND child.project_id = %(project)s)
UPDATE step SET stale = true
  FROM (
       SELECT found.row
         FROM below,
              LATERAL (
                SELECT ctid AS row FROM step WHERE commit_id = below.id AND via IN ('history', 'none')
                 UNION ALL
                SELECT ctid FROM step WHERE reference_id = below.id AND via = 'history'
                OFFSET 0) found
        GROUP BY found.row) found
 WHERE step.ctid = found.row
"""
_STALE_BEHIND: Final[LiteralString] = f"""
  WITH given AS MATERIALIZED (
       SELECT series_id, ordered_at, commit_id AS before_id FROM reading WHERE commit_id = ANY (%(commits)s::bigint[]))
UPDATE step SET stale = true
  FROM (
       SELECT found.row
         FROM given,
              LATERAL ({BEFORE}) before,
              LATERAL (
                SELECT ctid AS row
                  FROM step
                 WHERE reference_id = before.commit_id AND series_id = given.series_id AND via = 'history'
                OFFSET 0) found
        UNION
       SELECT found.row
         FROM given,
              LATERAL (SELECT ctid AS row FROM step WHERE series_id = given.series_id AND via = 'none' OFFSET 0) found)
       found
 WHERE step.ctid = found.row
"""  # noqa: S608 - our own words
_LATER: Final[LiteralString] = f"""
  WITH RECURSIVE given AS MATERIALIZED (
       SELECT touched.series_id, touched.commit_id, touched.reference_id, commit.ordered_at, commit.id AS before_id
         FROM unnest(%(series)s::bigint[], %(commits)s::bigint[], %(references)s::bigint[])
              touched (series_id, commit_id, reference_id)
         JOIN commit ON commit.id = touched.commit_id),
       below AS (
       SELECT commit.id AS start, commit.id, commit.sha, commit.project_id, 0 AS depth
         FROM commit
        WHERE commit.id = ANY (%(starts)s::bigint[])
        UNION ALL
       SELECT below.start, child.id, child.sha, child.project_id, below.depth + 1
         FROM below,
              LATERAL (SELECT commit_id FROM commit_parent WHERE parent_sha = below.sha AND position = 0 OFFSET 0) told,
              LATERAL (SELECT id, sha, project_id FROM commit WHERE id = told.commit_id OFFSET 0) child
        WHERE child.project_id = below.project_id AND below.depth < %(farthest)s)
SELECT later.series_id, later.commit_id
  FROM given,
       LATERAL (
         SELECT series_id, commit_id
           FROM step
          WHERE series_id = given.series_id AND reference_id IN (given.commit_id, given.reference_id) AND NOT stale
         OFFSET 0) later
 UNION
SELECT later.series_id, later.commit_id
  FROM given,
       LATERAL ({BEFORE}) before,
       LATERAL (
         SELECT series_id, commit_id
           FROM step
          WHERE series_id = given.series_id AND reference_id = before.commit_id AND via = 'history' AND NOT stale
         OFFSET 0) later
 UNION
SELECT later.series_id, later.commit_id
  FROM given,
       LATERAL (
         SELECT series_id, commit_id FROM step WHERE series_id = given.series_id AND via = 'none' AND NOT stale OFFSET 0) later,
       LATERAL (SELECT id, ordered_at FROM commit WHERE id = later.commit_id OFFSET 0) its
 WHERE (its.ordered_at, its.id) > (given.ordered_at, given.commit_id)
 UNION
SELECT later.series_id, later.commit_id
  FROM below,
       LATERAL (
         SELECT series_id, commit_id
           FROM step
          WHERE commit_id = below.id AND via IN ('history', 'none') AND NOT stale
         OFFSET 0) later
  JOIN given ON given.series_id = later.series_id
 WHERE given.commit_id = below.start
"""  # noqa: S608 - our own words


async def mark_graph_changes(session: AsyncSession, project_id: ProjectId) -> None:
    """Mark what the graph decided of, where it changed in this transaction, as stale.

    What was found along parents stays: more of them become known only behind the oldest one.
    Index: ix_commit_parent_parent_sha, ix_step_not_by_parent, ix_step_reference_id_series_id; moved pk_reading, pk_step.
    """
    noted = noted_graph_change(session)
    if noted is None:
        return
    values = {"project": project_id, "commits": statements.array_of(noted.told | noted.moved)}
    await statements.run(session, _STALE_BELOW, values)
    if noted.moved:
        await statements.run(session, _STALE_BEHIND, {"commits": statements.array_of(noted.moved)})


async def later_steps(session: AsyncSession, followed: Sequence[tuple[Pair, ReferenceCommit]]) -> set[Pair]:
    """The (series, commit) pairs that may follow some readings, or what these follow, but for those that wait as stale already.

    Index: ix_step_reference_id_series_id, ix_reading_series_history, ix_step_first, ix_commit_parent_parent_sha,
    ix_step_not_by_parent.
    """
    if not followed:
        return set()
    values = columns_of([pair for pair, _ in followed]) | {
        "references": statements.array_of(to.commit_id for _, to in followed),
        "starts": statements.array_of({commit for (_, commit), _ in followed}),
        "farthest": FARTHEST,
    }
    return set(await statements.rows(session, _LATER, values))

"""The measured commit that another one follows: along first parents, as far as these are known.

History is one line on pages (`timeline.py`), on which commits of several branches lie between each other. A commit is
compared with the one it was made from: changes of a neighbour on another branch are not its own. Behind the
oldest ancestor that is known, history is what is left: the commit before that one.
"""

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Final, LiteralString, NamedTuple, TypeAlias

from pullback_service import statements
from pullback_service.ids import MachineId, ProjectId
from pullback_service.statements import Query, Rows

FARTHEST = 2_000
"""Commits that nobody measured, walked through for all that are asked for. Behind them what is before in history is as good."""
CommitPlace: TypeAlias = tuple[datetime, int]
"""The place of a commit in history."""


class NearestAncestor(NamedTuple):
    """The end of a walk along first parents: the nearest ancestor that `counts`, else the oldest that is known."""

    ordered_at: datetime
    id: int
    counts: bool


# A join to the parents is planned as one of all that the database has, a dozen times over: from each child they are few steps.
_PARENT: Final[LiteralString] = """LATERAL (
       SELECT commit.id, commit.ordered_at
         FROM commit_parent told
         JOIN commit ON commit.project_id = %(project)s AND commit.sha = told.parent_sha
        WHERE told.commit_id = {child} AND told.position = 0
       OFFSET 0) parent"""
# Edges and not ways: what many commits descend from is walked once.
_WALK: Final[LiteralString] = """
WITH RECURSIVE edge AS (
       SELECT asked.id AS child, parent.*, EXISTS ({counts}) AS counts
         FROM unnest(%(commits)s::bigint[]) asked (id), {parent of asked}
        UNION
       SELECT edge.id, parent.*, EXISTS ({counts})
         FROM edge, {parent of edge}
        WHERE NOT edge.counts)
SELECT child, ordered_at, id, counts FROM edge LIMIT %(most)s
""".replace("{parent of asked}", _PARENT.replace("{child}", "asked.id")).replace(
    "{parent of edge}", _PARENT.replace("{child}", "edge.id")
)
_BY_MACHINE: Final[LiteralString] = _WALK.replace(
    "{counts}",
    "SELECT FROM report WHERE report.commit_id = parent.id AND report.machine_id = %(machine)s"
    " AND (report.points > 0 OR report.failures > 0)",
)
_OF_SERIES: Final[LiteralString] = _WALK.replace(
    "{counts}",
    "SELECT FROM reading WHERE reading.commit_id = parent.id AND reading.series_id = ANY (%(series)s::bigint[])",
)


def followed_on(
    project_id: ProjectId, machine_id: MachineId, commit_ids: Collection[int]
) -> Query[Mapping[int, NearestAncestor]]:
    """The nearest ancestor of each commit that a machine measured, or how far the way there is known.

    Index: pk_commit, pk_commit_parent, uq_commit_project_id_sha, ix_report_commit_id.
    """
    return _walked(_BY_MACHINE, project_id, commit_ids, {"machine": machine_id})


def followed_in(
    project_id: ProjectId, series_ids: Collection[int], commit_ids: Collection[int]
) -> Query[Mapping[int, NearestAncestor]]:
    """The nearest ancestor of each commit at which any of some series was measured, or how far the way there is known.

    Index: pk_commit, pk_commit_parent, uq_commit_project_id_sha, pk_reading.
    """
    return _walked(_OF_SERIES, project_id, commit_ids, {"series": statements.array_of(series_ids)})


def places_followed(places: Sequence[CommitPlace], followed: Mapping[int, NearestAncestor]) -> Mapping[int, int]:
    """Places of predecessors, by the place of each commit that does not follow the one before it.

    That is -1 where it is none of them, and none that stands before it. Commits come oldest first.
    """
    at = {commit_id: place for place, (_, commit_id) in enumerate(places)}
    results = {}
    for place, (_, commit_id) in enumerate(places):
        reached = followed.get(commit_id)
        if reached is not None and reached.counts:
            before = at.get(reached.id, -1)
            before = before if before < place else -1
        else:
            before = place - 1
            # An ancestor of which nobody told a date stands where it was first heard of, which may be behind its children.
            if reached is not None:
                before = min(before, bisect_left(places, (reached.ordered_at, reached.id)) - 1)
            while before >= 0 and _is_made_from(followed.get(places[before][1]), commit_id):
                before -= 1
        if before != place - 1:
            results[place] = before
    return results


def _is_made_from(reached: NearestAncestor | None, commit_id: int) -> bool:
    return reached is not None and reached.counts and reached.id == commit_id


def _walked(
    statement: LiteralString, project_id: ProjectId, commit_ids: Collection[int], values: Mapping[str, object]
) -> Query[Mapping[int, NearestAncestor]]:
    """The ends of the walks from each commit with a known parent."""
    parameters = {
        "commits": statements.array_of(commit_ids), "project": project_id, "most": len(commit_ids) + FARTHEST,
    }  # fmt: skip
    return Query(statement, {**parameters, **values}, _ends, width=4)


def _ends(rows: Rows) -> Mapping[int, NearestAncestor]:
    parents = {child: NearestAncestor(*parent) for child, *parent in rows}
    return {start: _end_of(start, parents) for start in parents}


def _end_of(start: int, parents: Mapping[int, NearestAncestor]) -> NearestAncestor:
    reached, walked = parents[start], {start}
    while not reached.counts and reached.id in parents and reached.id not in walked:
        walked.add(reached.id)
        reached = parents[reached.id]
    return reached

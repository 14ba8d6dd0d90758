"""The commit that each reading is judged against: the one it was made from.

That is the nearest ancestor along first parents at which the series has a reading, whatever was measured or not in between.
Behind the oldest ancestor that is known, history is what is left: the reading before that one. A reading whose gradient a report
found wrong is passed over, for what was measured there is of another function.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Final, LiteralString, NamedTuple, TypeAlias

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.readings.queries import columns_of

FARTHEST: Final = 2_000
"""Ancestors that are looked at. Behind them the reading before in history is as good."""
_DEPTHS: Final = (1, 16, 128)
"""Most readings follow one at the parent; so few are looked for farther away that each ancestor is asked for."""

Pair: TypeAlias = tuple[int, int]
"""A series and a commit."""


class ReferenceCommit(NamedTuple):
    """The commit that a reading follows, and how it was found; of a first reading its own commit."""

    commit_id: int
    via: str


class Ancestors(NamedTuple):
    """A commit with its known ancestors, nearest first, and the earliest place in history of it and the last of them."""

    ids: Sequence[int]
    place: tuple[datetime, int]
    is_whole: bool


IS_RIGHT: Final[LiteralString] = """
NOT EXISTS (
  SELECT FROM failure
    JOIN series ON series.case_id = failure.case_id AND series.machine_id = failure.machine_id
   WHERE failure.commit_id = reading.commit_id AND failure.kind = 'gradient' AND series.id = reading.series_id
     AND coalesce(failure.variant, series.variant) = series.variant)
"""
"""The condition of a reading that no report found the gradient of wrong."""

_ANCESTORS: Final[LiteralString] = """
WITH RECURSIVE way AS (
       SELECT id AS start, id, ordered_at, 0 AS depth FROM commit WHERE id = ANY (%(commits)s::bigint[])
        UNION ALL
       SELECT way.start, parent.id, parent.ordered_at, way.depth + 1
         FROM way
         JOIN commit child ON child.id = way.id
         JOIN commit_parent told ON told.commit_id = way.id AND told.position = 0
         JOIN commit parent ON parent.project_id = child.project_id AND parent.sha = told.parent_sha
        WHERE way.depth < %(depth)s)
SELECT start, id, ordered_at FROM way ORDER BY start, depth
"""
# Of what a small upload or a whole commit asks for this is an index scan each; of pairs one by one it takes five times as long.
_THERE: Final[LiteralString] = """
SELECT series_id, commit_id
  FROM reading
 WHERE commit_id = ANY (%(commits)s::bigint[]) AND series_id = ANY (%(series)s::bigint[])
EXCEPT ALL
SELECT DISTINCT series.id, failure.commit_id
  FROM failure
  JOIN series ON series.case_id = failure.case_id AND series.machine_id = failure.machine_id
 WHERE failure.commit_id = ANY (%(commits)s::bigint[]) AND failure.kind = 'gradient'
   AND coalesce(failure.variant, series.variant) = series.variant
"""
_ELSEWHERE: Final[LiteralString] = """
SELECT wanted.series_id, wanted.commit_id
  FROM unnest(%(series)s::bigint[], %(commits)s::bigint[]) wanted (series_id, commit_id),
       LATERAL (
       SELECT FROM reading
        WHERE series_id = wanted.series_id AND commit_id <> wanted.commit_id
        LIMIT 1 -- keeps Postgres from reading the whole table once where many series are asked for
       ) other
"""
_NEAREST: Final[LiteralString] = f"""
SELECT wanted.id, (
       SELECT ancestor.id
         FROM reading
         JOIN unnest(%(ancestors)s::bigint[]) WITH ORDINALITY ancestor (id, depth) ON ancestor.id = reading.commit_id
        WHERE reading.series_id = wanted.id AND {IS_RIGHT}
        ORDER BY depth
        LIMIT 1)
  FROM unnest(%(series)s::bigint[]) wanted (id)
"""  # noqa: S608 - our own words
BEFORE: Final[LiteralString] = f"""
SELECT reading.commit_id
  FROM reading
 WHERE reading.series_id = given.series_id
   AND (reading.ordered_at, reading.commit_id) < (given.ordered_at, given.before_id) AND {IS_RIGHT}
 ORDER BY reading.ordered_at DESC, reading.commit_id DESC
 LIMIT 1
"""  # noqa: S608 - our own words
"""The reading of a `given` series before a place in history."""
_BEFORE: Final[LiteralString] = f"""
SELECT given.series_id, given.commit_id, ({BEFORE})
  FROM unnest(%(series)s::bigint[], %(commits)s::bigint[], %(places)s::timestamptz[], %(before)s::bigint[])
       given (series_id, commit_id, ordered_at, before_id)
"""  # noqa: S608 - our own words


async def followed_by(
    session: AsyncSession, pairs: Collection[Pair], parents: Mapping[int, Ancestors] | None = None
) -> Mapping[Pair, ReferenceCommit]:
    """The pair that each (series, commit) of a project follows; `parents` are those of all its commits, where they are known.

    Index: pk_commit, pk_commit_parent, uq_commit_project_id_sha, pk_reading, ix_reading_series_history, ix_failure_commit_id.
    """
    results: dict[Pair, ReferenceCommit] = {}
    ways: Mapping[int, Ancestors] = {}
    waiting, shallow = set(pairs), 0
    for depth in _DEPTHS:
        if not waiting:
            break
        if parents is None or depth > 1:
            parents = await _ancestors(session, {commit for _, commit in waiting}, depth)
        ways = {**ways, **parents}
        near = {commit: ways[commit].ids[shallow:depth] for _, commit in waiting}
        there = await _there(session, {series for series, _ in waiting}, {*chain(*near.values())})
        for series, commit in list(waiting):
            for ancestor in near[commit]:
                if (series, ancestor) in there:
                    results[series, commit] = ReferenceCommit(ancestor, "parent")
                    waiting.discard((series, commit))
                    break
        if shallow == 0 and waiting:  # a new series has nothing to follow, however far one looks
            elsewhere = set(await statements.rows(session, _ELSEWHERE, columns_of(waiting)))
            results |= {pair: ReferenceCommit(pair[1], "none") for pair in waiting - elsewhere}
            waiting &= elsewhere
        if all(ways[commit].is_whole for _, commit in waiting):
            break
        shallow = depth
    else:
        ways = {**ways, **await _ancestors(session, {commit for _, commit in waiting}, FARTHEST)}
        results |= await _far(session, waiting, ways)
        waiting -= results.keys()
    return {**results, **await _before(session, waiting, ways)}


async def _there(session: AsyncSession, series: Collection[int], commits: Collection[int]) -> set[Pair]:
    """The right readings of some series at some commits."""
    if not commits:
        return set()
    values = {"series": statements.array_of(series), "commits": statements.array_of(commits)}
    return set(await statements.rows(session, _THERE, values, binary=True))


async def _ancestors(session: AsyncSession, commits: Collection[int], depth: int) -> Mapping[int, Ancestors]:
    values = {"commits": statements.array_of(commits), "depth": depth}
    return ancestors_of(await statements.rows(session, _ANCESTORS, values), depth)


def ancestors_of(steps: Iterable[tuple[int, int, datetime]], depth: int) -> Mapping[int, Ancestors]:
    """The ancestors of commits, out of each commit with each of them, itself before all, nearest first, no farther than `depth`."""
    ways: dict[int, list[tuple[datetime, int]]] = defaultdict(list)
    for start, id_, ordered_at in steps:
        ways[start].append((ordered_at, id_))
    return {
        start: Ancestors([id_ for _, id_ in way[1:]], min(way[0], way[-1]), len(way) <= depth)
        for start, way in ways.items()
    }


async def _far(
    session: AsyncSession, pairs: Iterable[Pair], ways: Mapping[int, Ancestors]
) -> Mapping[Pair, ReferenceCommit]:
    """Those that follow an ancestor farther away, found among all readings of their series."""
    by_commit: dict[int, list[int]] = defaultdict(list)
    for series, commit in pairs:
        if not (ways[commit].is_whole and len(ways[commit].ids) <= _DEPTHS[-1]):
            by_commit[commit].append(series)
    results = {}
    for commit, of_commit in by_commit.items():
        values = {"series": statements.array_of(of_commit), "ancestors": statements.array_of(ways[commit].ids)}
        for one, near in await statements.rows(session, _NEAREST, values):
            if near is not None:
                results[one, commit] = ReferenceCommit(near, "parent")
    return results


async def _before(
    session: AsyncSession, pairs: Collection[Pair], ways: Mapping[int, Ancestors]
) -> Mapping[Pair, ReferenceCommit]:
    """The readings left, which follow the one before them in history, unless that was made from them."""
    if not pairs:
        return {}
    ordered = list(pairs)
    values = columns_of(ordered) | {
        "places": [ways[commit].place[0] for _, commit in ordered],
        "before": statements.array_of(ways[commit].place[1] for _, commit in ordered),
    }
    before = {(series, commit): id_ for series, commit, id_ in await statements.rows(session, _BEFORE, values)}
    descent = await _ancestors(session, {id_ for id_ in before.values() if id_ is not None}, FARTHEST)
    return {
        pair: ReferenceCommit(pair[1], "none")
        if id_ is None or pair[1] in descent[id_].ids
        else ReferenceCommit(id_, "history")
        for pair, id_ in before.items()
    }

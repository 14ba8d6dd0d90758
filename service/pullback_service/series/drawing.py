"""The newest points of many series, as charts draw them: few columns, and one statement for all of them."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.ids import SeriesId
from pullback_service.series.thinning import thin
from pullback_service.series.windows import Place, Window, marks_in

_NEWEST = """
SELECT series.id, point.*
  FROM unnest(%(series)s::bigint[]) series(id), LATERAL (
    SELECT commit_id, value, log_ratio, low, high, outcome
      FROM point
     WHERE series_id = series.id
     ORDER BY ordered_at DESC, commit_id DESC, id DESC
     LIMIT %(most)s) point
"""
_COMMITS = "SELECT id, ordered_at, sha FROM commit WHERE id = ANY (%(commits)s)"


class DrawnPoint(NamedTuple):
    """A series at a commit, its reports pooled."""

    place: Place
    commit: str
    value: float
    log_ratio: float | None
    low: float | None
    high: float | None
    outcome: str | None


async def newest_marks(
    session: AsyncSession, series: Sequence[SeriesId], *, last: int, at_most: int
) -> Mapping[SeriesId, Sequence[DrawnPoint]]:
    """Each series at its newest `last` commits, oldest first, thinned to `at_most` marks as `marks_in` does it.

    Whoever has the ids of series has found them where the rule of what callers see is applied. A series with several
    reports at a commit is read by `marks_in`, which pools them. Index: ix_point_series_history, pk_commit.
    """
    rows: dict[SeriesId, list[tuple[Any, ...]]] = defaultdict(list)
    # One more than wanted: it may be another report of the oldest commit.
    for row in await statements.rows(session, _NEWEST, {"series": list(series), "most": last + 1}):
        rows[row[0]].append(row)
    kept = {
        id_: _thinned(newest[last - 1 :: -1], at_most)
        for id_, newest in rows.items()
        if len({row[1] for row in newest}) == len(newest)
    }
    wanted = {row[1] for marks in kept.values() for row in marks}
    commits = {
        id_: ((ordered_at, id_), sha)
        for id_, ordered_at, sha in await statements.rows(session, _COMMITS, {"commits": list(wanted)})
    }
    drawn: dict[SeriesId, Sequence[DrawnPoint]] = {}
    for id_ in series:
        if id_ in rows and id_ not in kept:
            points, _ = await marks_in(session, id_, Window(last=last), at_most=at_most)
            drawn[id_] = [
                DrawnPoint(each.place, each.commit, each.value, each.log_ratio, each.low, each.high, each.outcome)
                for each in points
            ]
        else:
            drawn[id_] = [DrawnPoint(*commits[row[1]], *row[2:]) for row in kept.get(id_, ())]
    return drawn


def _thinned(points: Sequence[tuple[Any, ...]], at_most: int) -> Sequence[tuple[Any, ...]]:
    values, ratios = [point[2] for point in points], [point[3] for point in points]
    traces = [values] if all(ratio is None for ratio in ratios) else [values, ratios]
    return [points[place] for place in thin(traces, at_most)]

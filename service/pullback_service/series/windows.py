"""Readings of one series in a window of history: pages of them, or few enough marks for a plot."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate, groupby
from operator import itemgetter
from typing import Any, LiteralString, NamedTuple
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.errors import refuse
from pullback_service.ids import SeriesId
from pullback_service.measured_code.code_identity import NOT_TOLD, CodeIdentity
from pullback_service.measured_code.queries import read_measured
from pullback_service.quality import quality_of
from pullback_service.ratio import Ratio
from pullback_service.readings.queries import columns_of, reports_behind
from pullback_service.readings.reading import COLUMNS, WIDTH, Place, Reading
from pullback_service.series.thinning import thin_marks

MOST_IN_WINDOW = 50_000
"""Commits of a window that is thinned to marks: all of them are looked at."""


@dataclass(frozen=True, slots=True)
class Window:
    """A window of commits: places of the first and the last one, times, the newest so many, on a branch; None is no limit."""

    since: Place | None = None
    until: Place | None = None
    start: datetime | None = None
    end: datetime | None = None
    last: int | None = None
    branch_id: int | None = None


class RawPoint(NamedTuple):
    """A point as one report measured it."""

    report_id: UUID
    value: float
    process_values: Sequence[float] | None
    quality: str
    dirty: bool
    outcome: str | None
    ratio: Ratio

    @classmethod
    def of(cls, row: Sequence[Any]) -> "RawPoint":
        """The point in a row, its ratio as the last four columns."""
        point = cls._make((*row[:-4], Ratio._make(row[-4:])))
        return point._replace(quality=quality_of(point.quality))


class PooledPoint(NamedTuple):
    """A series at a commit: the reading, the commit's names and the reports behind it, oldest first.

    `position` is the commit's place among the first parents of the branch that was asked for; `after_gap`: what lies
    right before it there is not known.
    """

    reading: Reading
    commit: str
    title: str | None
    position: int | None
    after_gap: bool | None
    reports: tuple[str, ...]
    measured: CodeIdentity = NOT_TOLD
    raw: tuple[RawPoint, ...] = ()


_SELECT: LiteralString = f"SELECT {COLUMNS}, commit.sha, commit.title,"
_RAW: LiteralString = """
SELECT point.series_id, point.commit_id, point.report_id, point.value, point.process_values, point.quality, report.dirty,
       point.outcome, point.log_ratio, point.low, point.high, point.n
  FROM unnest(%(series)s::bigint[], %(commits)s::bigint[]) wanted (series_id, commit_id)
  JOIN point USING (series_id, commit_id)
  JOIN report ON report.id = point.report_id
 ORDER BY point.series_id, point.commit_id, report.started_at, point.report_id, point.id
"""
_COUNTS: LiteralString = "SELECT series.id, (SELECT count(*) FROM (SELECT FROM reading"
_OF_EACH: LiteralString = " FROM unnest(%(series)s::bigint[]) WITH ORDINALITY series (id, place)"
_FOUND: LiteralString = "SELECT found.*" + _OF_EACH + " CROSS JOIN LATERAL ("
_IN_ORDER: LiteralString = " ORDER BY series.place, found.ordered_at, found.commit_id LIMIT %(limit)s"
_PLACES: LiteralString = "SELECT reading.ordered_at, reading.commit_id FROM reading"
_MARKS: LiteralString = "SELECT reading.commit_id, reading.value, reading.log_ratio FROM reading"
_ON_BRANCH: LiteralString = """
  JOIN branch_commit ON branch_commit.branch_id = %(branch)s AND branch_commit.commit_id = reading.commit_id
"""
_OLDEST_FIRST: LiteralString = " ORDER BY reading.ordered_at, reading.commit_id"
_NEWEST_FIRST: LiteralString = " ORDER BY reading.ordered_at DESC, reading.commit_id DESC"


async def points_in(
    session: AsyncSession, series_id: SeriesId, window: Window, *, after: Place | None, limit: int, raw: bool = False
) -> tuple[Sequence[PooledPoint], bool]:
    """Up to `limit` points in a window, oldest commit first, from behind a place on; and whether more follow.

    Index: ix_reading_series_history; uq_branch_commit_branch_id_commit_id for a branch; pk_commit; pk_measured; as `reports_behind`.
    """
    if after is None and window.last is not None:
        after = await _before_last(session, series_id, window)
    statement = _SELECT + _from(window) + _kept_to(window, behind=after) + _OLDEST_FIRST + " LIMIT %(limit)s"
    values = _values(series_id, window, after) | {"limit": limit + 1}
    rows = await statements.rows(session, statement, values, binary=True)
    return await _points(session, rows[:limit], raw=raw), len(rows) > limit


async def first_points(
    session: AsyncSession, series: Sequence[SeriesId], window: Window, *, limit: int, raw: bool = False
) -> Sequence[PooledPoint]:
    """Up to `limit` points of some series in a window, series by series and then oldest commit first.

    How many each has is counted before, so that few more are read than are given. Index: as `points_in`.
    """
    condition = _kept_to(window, series="series.id")
    most = limit if window.last is None else min(limit, window.last)
    counting = _COUNTS + condition + " LIMIT %(limit)s) few)" + _OF_EACH + " ORDER BY series.place"
    counts = await statements.rows(session, counting, _values(statements.array_of(series), window) | {"limit": most})
    before = accumulate((count for _, count in counts), initial=0)
    chosen = [id_ for (id_, count), so_far in zip(counts, before, strict=False) if count and so_far < limit]
    if not chosen:
        return []
    ends = _OLDEST_FIRST + " LIMIT %(limit)s" if window.last is None else _NEWEST_FIRST + " LIMIT %(last)s"
    statement = _FOUND + _SELECT + _from(window) + condition + ends + ") found" + _IN_ORDER
    values = _values(statements.array_of(chosen), window) | {"last": window.last, "limit": limit}
    return await _points(session, await statements.rows(session, statement, values, binary=True), raw=raw)


async def marks_in(
    session: AsyncSession, series_id: SeriesId, window: Window, *, at_most: int, raw: bool = False
) -> tuple[Sequence[PooledPoint], int]:
    """A limited number of points of a window, selected so that their plot looks like that of all, and the number of all.

    Values and ratios keep their extremes (`chart_marks.py`). Index: as `points_in`, read once for values and once for the
    rest of the points that are kept.
    """
    most = MOST_IN_WINDOW + 1 if window.last is None else min(window.last, MOST_IN_WINDOW + 1)
    statement = _MARKS + _kept_to(window) + _NEWEST_FIRST + " LIMIT %(limit)s"
    found = await statements.rows(session, statement, _values(series_id, window) | {"limit": most}, binary=True)
    if len(found) > MOST_IN_WINDOW:
        refuse(
            "marks",
            f"This window has more than {MOST_IN_WINDOW} points: narrow it, for example with last={MOST_IN_WINDOW // 2}.",
        )
    marks = found[::-1]
    remaining = [
        marks[place][0] for place in thin_marks([mark[1] for mark in marks], [mark[2] for mark in marks], at_most)
    ]
    statement = _SELECT + _from(window) + _kept_to(window)
    statement += " AND reading.commit_id = ANY (%(commits)s::bigint[])" + _OLDEST_FIRST
    values = _values(series_id, window) | {"commits": statements.array_of(remaining)}
    rows = await statements.rows(session, statement, values, binary=True) if remaining else []
    return await _points(session, rows, raw=raw), len(found)


async def _points(session: AsyncSession, rows: Sequence[tuple[Any, ...]], *, raw: bool) -> list[PooledPoint]:
    readings = [*map(Reading.of, rows)]
    reports = await reports_behind(session, readings)
    measured = await read_measured(session, (reading.measured_id for reading in readings))
    of_reports = await _raw_points(session, reports) if raw and readings else {}
    return [
        PooledPoint(
            *(reading, sha, title, position, after_gap, reports[reading[:2]]),
            measured.get(reading.measured_id or 0, NOT_TOLD),
            of_reports.get(reading[:2], ()),
        )
        for reading, (sha, title, position, after_gap) in zip(readings, (row[WIDTH:] for row in rows), strict=True)
    ]


async def _raw_points(
    session: AsyncSession, pairs: Collection[tuple[int, int]]
) -> Mapping[tuple[int, int], tuple[RawPoint, ...]]:
    """The points of (series, commit) pairs, oldest report first. Index: ix_point_commit_id_series_id, pk_report."""
    rows = await statements.rows(session, _RAW, columns_of(pairs), binary=True)
    return {pair: tuple(RawPoint.of(row[2:]) for row in group) for pair, group in groupby(rows, key=itemgetter(0, 1))}


async def _before_last(session: AsyncSession, series_id: SeriesId, window: Window) -> Place | None:
    """The place behind which the newest commits of a window begin; None when it has no more of them than wanted."""
    statement = _PLACES + _kept_to(window) + _NEWEST_FIRST + " OFFSET %(last)s LIMIT 1"
    row = await statements.row(session, statement, _values(series_id, window) | {"last": window.last})
    return None if row is None else (row[0], row[1])


def _from(window: Window) -> LiteralString:
    """The columns that only a branch has, and the tables."""
    columns = "NULL, NULL" if window.branch_id is None else "branch_commit.position, branch_commit.after_gap"
    return columns + " FROM reading JOIN commit ON commit.id = reading.commit_id"


def _kept_to(window: Window, behind: Place | None = None, series: LiteralString = "%(series)s") -> LiteralString:
    """The conditions of a window, and behind a place there."""
    conditions: list[LiteralString] = [" WHERE reading.series_id = " + series]
    if window.since is not None:
        conditions.append("(reading.ordered_at, reading.commit_id) >= (%(since_at)s, %(since_id)s)")
    if window.until is not None:
        conditions.append("(reading.ordered_at, reading.commit_id) <= (%(until_at)s, %(until_id)s)")
    if window.start is not None:
        conditions.append("reading.ordered_at >= %(start)s")
    if window.end is not None:
        conditions.append("reading.ordered_at <= %(end)s")
    if behind is not None:
        conditions.append("(reading.ordered_at, reading.commit_id) > (%(behind_at)s, %(behind_id)s)")
    return ("" if window.branch_id is None else _ON_BRANCH) + " AND ".join(conditions)


def _values(series: SeriesId | str, window: Window, behind: Place | None = None) -> dict[str, Any]:
    """The values that the conditions of `_kept_to` name; `series` is one or, as text, an array of them."""
    values: dict[str, Any] = {
        "series": series,
        "branch": window.branch_id,
        "start": window.start,
        "end": window.end,
    }
    for name, place in (("since", window.since), ("until", window.until), ("behind", behind)):
        if place is not None:
            values |= {f"{name}_at": place[0], f"{name}_id": place[1]}
    return values

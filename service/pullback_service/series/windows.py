"""Points of one series in a window of history, pooled by commit: pages of them, or few enough marks for a plot."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any, LiteralString, NamedTuple, TypeAlias
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.errors import refuse
from pullback_service.ids import SeriesId
from pullback_service.readings.pooling import Spread, point_spread, pooled_spread, pooled_value, speaker
from pullback_service.series.thinning import thin

MOST_IN_WINDOW = 50_000
"""Points of a window that is thinned to marks: all of them are looked at."""
SPARE_ROWS = 20
"""Rows read at once beyond one for each commit; where commits have several reports, it is read again."""
MOST_REPORTS_OF_A_PAGE = 5_000
"""More reports than these make a page shorter."""

Place: TypeAlias = tuple[datetime, int]
"""Where a commit stands in history: `ordered_at` and id."""


@dataclass(frozen=True, slots=True)
class Window:
    """Which commits: places of the first and the last one, times, the newest so many, on a branch; None is no limit."""

    since: Place | None = None
    until: Place | None = None
    start: datetime | None = None
    end: datetime | None = None
    last: int | None = None
    branch_id: int | None = None


class RawPoint(NamedTuple):
    """What one report measured."""

    report_id: UUID
    value: float
    process_values: Sequence[float] | None
    quality: str
    dirty: bool
    outcome: str | None
    log_ratio: float | None
    low: float | None
    high: float | None
    n: int | None


class PooledPoint(NamedTuple):
    """A series at a commit, all its reports pooled (`pooling.py`).

    `position` is the commit's place among the first parents of the branch that was asked for; `after_gap`: what lies
    right before it there is not known.
    """

    place: Place
    commit: str
    title: str | None
    position: int | None
    after_gap: bool | None
    value: float
    spread: Spread | None
    baseline: str | None
    log_ratio: float | None
    low: float | None
    high: float | None
    n: int | None
    outcome: str | None
    quality: str
    dirty: bool
    method: str | None
    program_hash: str | None
    reports: tuple[UUID, ...]
    raw: tuple[RawPoint, ...] = ()


class _Stored(NamedTuple):
    """A point as `_COLUMNS` are read."""

    ordered_at: datetime
    commit_id: int
    id: int
    report_id: UUID
    value: float
    process_values: Sequence[float] | None
    process_count: int | None
    process_low: float | None
    process_q25: float | None
    process_q75: float | None
    process_high: float | None
    baseline: str | None
    log_ratio: float | None
    low: float | None
    high: float | None
    n: int | None
    outcome: str | None
    quality: str
    method: str | None
    program_hash: str | None
    sha: str
    title: str | None
    dirty: bool
    position: int | None
    after_gap: bool | None


_COLUMNS: LiteralString = """
SELECT point.ordered_at, point.commit_id, point.id, point.report_id, point.value, point.process_values,
       point.process_count, point.process_low, point.process_q25, point.process_q75, point.process_high,
       point.baseline, point.log_ratio, point.low, point.high, point.n, point.outcome, point.quality, point.method,
       point.program_hash, commit.sha, commit.title, (SELECT dirty FROM report WHERE report.id = point.report_id),
"""
_LIGHT: LiteralString = "SELECT point.ordered_at, point.commit_id, point.value, point.log_ratio FROM point"
_ANY: LiteralString = """
SELECT series.id FROM unnest(%(series)s::bigint[]) AS series(id) WHERE EXISTS (SELECT FROM point"""
_COMMITS: LiteralString = "SELECT DISTINCT point.ordered_at, point.commit_id FROM point"
_ON_BRANCH: LiteralString = """
  JOIN branch_commit ON branch_commit.branch_id = %(branch)s AND branch_commit.commit_id = point.commit_id
"""
_OLDEST_FIRST: LiteralString = " ORDER BY point.ordered_at, point.commit_id, point.id"
_NEWEST_FIRST: LiteralString = " ORDER BY point.ordered_at DESC, point.commit_id DESC, point.id DESC"


async def points_in(
    session: AsyncSession, series_id: SeriesId, window: Window, *, after: Place | None, limit: int, raw: bool = False
) -> tuple[Sequence[PooledPoint], bool]:
    """Up to `limit` points in a window, oldest commit first, from behind a place on; and whether more follow.

    Index: ix_point_series_history; uq_branch_commit_branch_id_commit_id for a branch; pk_commit, pk_report.
    """
    if after is None and window.last is not None:
        after = await _before_last(session, series_id, window)
    behind: tuple[Any, ...] | None = after
    rows: list[_Stored] = []
    while True:
        piece = await _read_behind(session, series_id, window, behind, limit + SPARE_ROWS)
        rows += piece
        commits = len({row[:2] for row in rows})
        more = len(piece) == limit + SPARE_ROWS
        if not more or commits > limit or len(rows) >= MOST_REPORTS_OF_A_PAGE:
            break
        behind = rows[-1][:3]
    groups = [list(group) for _, group in groupby(rows, key=_place)]
    if more and len(groups) > 1:
        groups.pop()  # not all of its reports may have been read
    return [_pooled(group, raw=raw) for group in groups[:limit]], more or len(groups) > limit


async def those_with_points(session: AsyncSession, series: Sequence[SeriesId], window: Window) -> set[SeriesId]:
    """Which of some series have any point in a window. Index: ix_point_series_history."""
    statement = _ANY + _kept_to(window, series="series.id") + ")"
    return {SeriesId(id_) for (id_,) in await statements.rows(session, statement, _values(list(series), window))}


async def marks_in(
    session: AsyncSession, series_id: SeriesId, window: Window, *, at_most: int, raw: bool = False
) -> tuple[Sequence[PooledPoint], int]:
    """At most so many points of a window, chosen so that their plot looks like that of all, and how many all are.

    Values and ratios keep their extremes (`thinning.py`). Index: as `points_in`, read once for values and once for the
    rest of the points that are kept.
    """
    drawn = await _drawn(session, series_id, window)
    if not drawn:
        return [], 0
    values, ratios = [value for _, value, _ in drawn], [ratio for _, _, ratio in drawn]
    traces: list[Sequence[float | None]] = [values]
    if any(ratio is not None for ratio in ratios):
        traces.append(ratios)
    kept = [drawn[place][0] for place in thin(traces, at_most)]
    found = await _read_at(session, series_id, window, kept)
    return [_pooled(list(group), raw=raw) for _, group in groupby(found, key=_place)], len(drawn)


async def _drawn(
    session: AsyncSession, series_id: SeriesId, window: Window
) -> Sequence[tuple[Place, float, float | None]]:
    """The commits of a window, oldest first, each with its value and its ratio, its reports pooled."""
    rows = await _read_light(session, series_id, window)
    found: dict[Place, list[tuple[float, float | None]]] = {}
    for at, commit_id, value, log_ratio in reversed(rows):
        found.setdefault((at, commit_id), []).append((value, log_ratio))
    places = list(found) if window.last is None else list(found)[-window.last :]
    several = [place for place in places if len(found[place]) > 1]
    if several:
        for place, group in groupby(await _read_at(session, series_id, window, several), key=_place):
            points = list(group)
            found[place] = [(pooled_value(points), speaker(points).log_ratio)]
    return [(place, *found[place][0]) for place in places]


async def _read_light(session: AsyncSession, series_id: SeriesId, window: Window) -> Sequence[tuple[Any, ...]]:
    """Place, value and ratio of the points of a window, newest first; perhaps a few more than of its `last` commits."""

    async def read(behind: Place | None, limit: int) -> Sequence[tuple[Any, ...]]:
        statement = _LIGHT + _kept_to(window, behind=behind) + _NEWEST_FIRST + " LIMIT %(limit)s"
        return await statements.rows(session, statement, _values(series_id, window, behind) | {"limit": limit})

    if window.last is not None and window.last + SPARE_ROWS <= MOST_IN_WINDOW:
        rows = await read(None, window.last + SPARE_ROWS)
        # Of the oldest commit that was read there may be more reports.
        if len(rows) < window.last + SPARE_ROWS or len({row[:2] for row in rows}) > window.last:
            return rows
    rows = await read(await _before_last(session, series_id, window), MOST_IN_WINDOW + 1)
    if len(rows) > MOST_IN_WINDOW:
        refuse(
            "marks",
            f"This window has more than {MOST_IN_WINDOW} points: narrow it, for example with last={MOST_IN_WINDOW // 2}.",
        )
    return rows


async def _before_last(session: AsyncSession, series_id: SeriesId, window: Window) -> Place | None:
    """The place behind which the newest commits of a window begin; None when it has no more of them than wanted."""
    if window.last is None:
        return None
    statement = (
        _COMMITS + _kept_to(window) + " ORDER BY point.ordered_at DESC, point.commit_id DESC OFFSET %(last)s LIMIT 1"
    )
    found = await statements.row(session, statement, _values(series_id, window) | {"last": window.last})
    return None if found is None else (found[0], found[1])


async def _read_behind(
    session: AsyncSession, series_id: SeriesId, window: Window, behind: Sequence[Any] | None, limit: int
) -> list[_Stored]:
    """The oldest points of a window behind a place, or behind one point there."""
    statement = _COLUMNS + _of(window) + _kept_to(window, behind=behind) + _OLDEST_FIRST + " LIMIT %(limit)s"
    rows = await statements.rows(session, statement, _values(series_id, window, behind) | {"limit": limit})
    return [*map(_Stored._make, rows)]


async def _read_at(
    session: AsyncSession, series_id: SeriesId, window: Window, places: Sequence[Place]
) -> list[_Stored]:
    """The points at some places, oldest first."""
    statement = (
        _COLUMNS
        + _of(window)
        + """
  JOIN unnest(%(at)s::timestamptz[], %(commits)s::bigint[]) AS kept(ordered_at, commit_id)
    ON kept.ordered_at = point.ordered_at AND kept.commit_id = point.commit_id
"""
        + _kept_to(window)
        + _OLDEST_FIRST
    )
    kept = {"at": [at for at, _ in places], "commits": [commit_id for _, commit_id in places]}
    return [*map(_Stored._make, await statements.rows(session, statement, _values(series_id, window) | kept))]


def _of(window: Window) -> LiteralString:
    """What `_COLUMNS` are read from, and the two that only a branch has."""
    columns = "NULL, NULL" if window.branch_id is None else "branch_commit.position, branch_commit.after_gap"
    return columns + " FROM point JOIN commit ON commit.id = point.commit_id"


def _kept_to(
    window: Window, behind: Sequence[Any] | None = None, series: LiteralString = "%(series)s"
) -> LiteralString:
    """The conditions of a window, and behind a place or behind a point there."""
    conditions: list[LiteralString] = [" WHERE point.series_id = " + series]
    if window.since is not None:
        conditions.append("(point.ordered_at, point.commit_id) >= (%(since_at)s, %(since_id)s)")
    if window.until is not None:
        conditions.append("(point.ordered_at, point.commit_id) <= (%(until_at)s, %(until_id)s)")
    if window.start is not None:
        conditions.append("point.ordered_at >= %(start)s")
    if window.end is not None:
        conditions.append("point.ordered_at <= %(end)s")
    if behind is not None:
        conditions.append(
            "(point.ordered_at, point.commit_id) > (%(behind_at)s, %(behind_id)s)"
            if len(behind) == 2
            else "(point.ordered_at, point.commit_id, point.id) > (%(behind_at)s, %(behind_id)s, %(behind_point)s)"
        )
    return ("" if window.branch_id is None else _ON_BRANCH) + " AND ".join(conditions)


def _values(
    series: SeriesId | Sequence[SeriesId], window: Window, behind: Sequence[Any] | None = None
) -> dict[str, Any]:
    """What the conditions of `_kept_to` name."""
    values: dict[str, Any] = {
        "series": series,
        "branch": window.branch_id,
        "start": window.start,
        "end": window.end,
    }
    for name, place in (("since", window.since), ("until", window.until), ("behind", behind)):
        if place is not None:
            values |= {f"{name}_at": place[0], f"{name}_id": place[1]}
    if behind is not None and len(behind) > 2:
        values["behind_point"] = behind[2]
    return values


_place: Callable[[Sequence[Any]], Place] = itemgetter(0, 1)
"""The place of a row: every statement here selects that first, and by number it is found several times as fast."""


def _pooled(rows: Sequence[_Stored], *, raw: bool) -> PooledPoint:
    first = rows[0]
    alone = len(rows) == 1
    spoken = first if alone else speaker(rows)
    return PooledPoint(
        first[:2],
        first.sha,
        first.title,
        first.position,
        first.after_gap,
        first.value if alone else pooled_value(rows),
        point_spread(first) if alone else pooled_spread(rows),
        spoken.baseline,
        spoken.log_ratio,
        spoken.low,
        spoken.high,
        spoken.n,
        spoken.outcome,
        spoken.quality,
        first.dirty if alone else any(row.dirty for row in rows),
        spoken.method,
        spoken.program_hash,
        (first.report_id,) if alone else tuple(row.report_id for row in rows),
        tuple(map(_raw, rows)) if raw else (),
    )


def _raw(row: _Stored) -> RawPoint:
    return RawPoint(
        report_id=row.report_id,
        value=row.value,
        process_values=row.process_values,
        quality=row.quality,
        dirty=row.dirty,
        outcome=row.outcome,
        log_ratio=row.log_ratio,
        low=row.low,
        high=row.high,
        n=row.n,
    )

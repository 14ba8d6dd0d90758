"""Points of one series in a window of history, pooled by commit: pages of them, or few enough marks for a plot."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeAlias
from uuid import UUID

from sqlalchemy import ColumnElement, Row, Select, and_, case, func, literal, select, tuple_
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.commits import history
from pullback_service.commits.models import BranchCommit, Commit
from pullback_service.errors import refuse
from pullback_service.ids import SeriesId
from pullback_service.reports.models import Report
from pullback_service.series.models import ROLLED_UP, Point
from pullback_service.series.pooling import Spread, pooled_spread, pooled_value, speaker
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


@dataclass(frozen=True, slots=True)
class RawPoint:
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


@dataclass(frozen=True, slots=True)
class PooledPoint:
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
    raw: tuple[RawPoint, ...] = field(default=())


async def points_in(
    session: AsyncSession, series_id: SeriesId, window: Window, *, after: Place | None, limit: int, raw: bool = False
) -> tuple[Sequence[PooledPoint], bool]:
    """Up to `limit` points in a window, oldest commit first, from behind a place on; and whether more follow.

    Index: ix_point_series_history; uq_branch_commit_branch_id_commit_id for a branch; pk_commit, pk_report.
    """
    if after is None and window.last is not None:
        after = await _before_last(session, series_id, window)
    statement = (
        _detailed(window)
        .where(Point.series_id == series_id, *_inside(window))
        .order_by(*history.oldest_first(Point), Point.id)
        .limit(limit + SPARE_ROWS)
    )
    behind = () if after is None else (tuple_(*history.place(Point)) > after,)
    rows: list[Row[*tuple[Any, ...]]] = []
    while True:
        piece = await _rows(session, statement.where(*behind))
        rows += piece
        commits = len({_commit(row) for row in rows})
        more = len(piece) == limit + SPARE_ROWS
        if not more or commits > limit or len(rows) >= MOST_REPORTS_OF_A_PAGE:
            break
        last = rows[-1]
        behind = (tuple_(*history.place(Point), Point.id) > (*_commit(last), last.id),)
    groups = [list(group) for _, group in groupby(rows, key=_commit)]
    if more and len(groups) > 1:
        groups.pop()  # not all of its reports may have been read
    return [_pooled(group, raw=raw) for group in groups[:limit]], more or len(groups) > limit


async def marks_in(
    session: AsyncSession, series_id: SeriesId, window: Window, *, at_most: int, raw: bool = False
) -> tuple[Sequence[PooledPoint], int]:
    """At most so many points of a window, chosen so that their plot looks like that of all, and how many all are.

    Values and ratios keep their extremes (`thinning.py`). Index: as `points_in`, read once for values and once for the
    rest of the points that are kept.
    """
    after = await _before_last(session, series_id, window)
    several = func.count().over(partition_by=history.place(Point)) > 1
    statement = (
        _on_branch(
            select(
                Point.ordered_at,
                Point.commit_id,
                Point.value,
                case((several, Point.process_values)).label("process_values"),
                Point.quality,
                Point.n,
                Point.log_ratio,
                *ROLLED_UP,
            ),
            window,
        )
        .where(Point.series_id == series_id, *_inside(window))
        .order_by(*history.oldest_first(Point), Point.id)
        .limit(MOST_IN_WINDOW + 1)
    )
    if after is not None:
        statement = statement.where(tuple_(*history.place(Point)) > after)
    rows = await _rows(session, statement)
    if len(rows) > MOST_IN_WINDOW:
        refuse(
            "marks",
            f"This window has more than {MOST_IN_WINDOW} points: narrow it, for example with last={MOST_IN_WINDOW // 2}.",
        )
    commits = [(key, list(group)) for key, group in groupby(rows, key=_commit)]
    if not commits:
        return [], 0
    value, log_ratio = itemgetter(2), itemgetter(6)
    values = [value(group[0]) if len(group) == 1 else pooled_value(group) for _, group in commits]
    ratios = [log_ratio(group[0] if len(group) == 1 else speaker(group)) for _, group in commits]
    traces = [values] if all(ratio is None for ratio in ratios) else [values, ratios]
    kept = [commits[place][0] for place in thin(traces, at_most)]
    detailed = (
        _detailed(window)
        .where(
            Point.series_id == series_id,
            tuple_(*history.place(Point)).between(kept[0], kept[-1]),
            Point.commit_id.in_([commit_id for _, commit_id in kept]),
        )
        .order_by(*history.oldest_first(Point), Point.id)
    )
    found = await _rows(session, detailed)
    return [_pooled(list(group), raw=raw) for _, group in groupby(found, key=_commit)], len(commits)


async def _before_last(session: AsyncSession, series_id: SeriesId, window: Window) -> Place | None:
    """The place behind which the newest commits of a window begin; None when it has no more of them than wanted."""
    if window.last is None:
        return None
    places = (
        _on_branch(select(Point.ordered_at, Point.commit_id), window)
        .where(Point.series_id == series_id, *_inside(window))
        .distinct()
        .order_by(*history.newest_first(Point))
        .offset(window.last)
        .limit(1)
    )
    row = (await session.execute(places)).one_or_none()
    return None if row is None else (row.ordered_at, row.commit_id)


def _inside(window: Window) -> Iterable[ColumnElement[bool]]:
    if window.since is not None:
        yield tuple_(*history.place(Point)) >= window.since
    if window.until is not None:
        yield tuple_(*history.place(Point)) <= window.until
    if window.start is not None:
        yield Point.ordered_at >= window.start
    if window.end is not None:
        yield Point.ordered_at <= window.end


def _on_branch(statement: Select[*tuple[Any, ...]], window: Window) -> Select[*tuple[Any, ...]]:
    if window.branch_id is None:
        return statement
    return statement.join(
        BranchCommit, and_(BranchCommit.branch_id == window.branch_id, BranchCommit.commit_id == Point.commit_id)
    )


def _detailed(window: Window) -> Select[*tuple[Any, ...]]:
    on_branch = window.branch_id is not None
    return _on_branch(
        select(
            Point.ordered_at,
            Point.commit_id,
            Point.id,
            Point.report_id,
            Point.value,
            Point.process_values,
            *ROLLED_UP,
            Point.baseline,
            Point.log_ratio,
            Point.low,
            Point.high,
            Point.n,
            Point.outcome,
            Point.quality,
            Point.method,
            Point.program_hash,
            Commit.sha,
            Commit.title,
            Report.dirty,
            (BranchCommit.position if on_branch else literal(None)).label("position"),
            (BranchCommit.after_gap if on_branch else literal(None)).label("after_gap"),
        )
        .select_from(Point)
        .join(Commit, Commit.id == Point.commit_id)
        .join(Report, Report.id == Point.report_id),
        window,
    )


_commit: Callable[[Sequence[Any]], Place] = itemgetter(0, 1)
"""The place of a row: every statement here selects that first, and by number it is found several times as fast."""


async def _rows(session: AsyncSession, statement: Select[*tuple[Any, ...]]) -> Sequence[Row[*tuple[Any, ...]]]:
    """Rows without the session's loading of objects, a third of the time of large pages.

    Its rule of what callers see is not applied here: who has the id of a series has found it where the rule is.
    """
    return (await (await session.connection()).execute(statement)).all()


def _pooled(rows: Sequence[Row[*tuple[Any, ...]]], *, raw: bool) -> PooledPoint:
    first = rows[0]
    spoken = first if len(rows) == 1 else speaker(rows)
    return PooledPoint(
        place=_commit(first),
        commit=first.sha,
        title=first.title,
        position=first.position,
        after_gap=first.after_gap,
        value=pooled_value(rows),
        spread=pooled_spread(rows),
        baseline=spoken.baseline,
        log_ratio=spoken.log_ratio,
        low=spoken.low,
        high=spoken.high,
        n=spoken.n,
        outcome=spoken.outcome,
        quality=spoken.quality,
        dirty=any(row.dirty for row in rows),
        method=spoken.method,
        program_hash=spoken.program_hash,
        reports=tuple(row.report_id for row in rows),
        raw=tuple(_raw(row) for row in rows) if raw else (),
    )


def _raw(row: Row[*tuple[Any, ...]]) -> RawPoint:
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

"""The projection of points to readings: kept with every upload, made again from the points where something else changed.

Each reading is a function of the points of one series at one commit (`pooling.pool`), in the order in which they were measured:
a report that an agent kept while the service was away is no newer for arriving last. Whoever adds or changes points
computes those that it touches again, in the same transaction. Commits that were stored before there were readings are not
`projected`: a background task works them off, newest first, a few in a transaction, while uploads go on.
"""

from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any, LiteralString
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.database import Database
from pullback_service.ids import CommitId, SeriesId
from pullback_service.readings.queries import columns_of
from pullback_service.readings.reading import COLUMNS, Reading, reading_of
from pullback_service.readings.reading_rows import INSERT_READINGS, ReadingEnding, beginning_of, ending_of
from pullback_service.readings.report_pooling import LEVEL, MeasuredPoint, PooledPoints, counting, of_one_level, pool
from pullback_service.row_arrays import insert_rows

POINTS_AT_ONCE = 20_000
KEPT_AT_ONCE = 10_000
"""Points of uploads whose readings are stored by one statement."""
COMMITS_AT_ONCE = 50
"""Commits in one transaction of the background task, unless they have more points than are read at once."""

POINT_COLUMNS: LiteralString = f"""
point.series_id, point.commit_id, point.ordered_at, point.report_id, point.value, point.process_values, point.process_count,
point.process_low, point.process_q25, point.process_q75, point.process_high, point.baseline, point.log_ratio, point.low,
point.high, point.n, point.outcome, point.quality, report.dirty, point.method, point.program_hash,
point.measured_id, {LEVEL}
"""
_LOCK: LiteralString = """
SELECT pg_advisory_xact_lock(hashtextextended('readings ' || id, 0)) FROM unnest(%(commits)s::bigint[]) id ORDER BY id
"""
_KNOWN: LiteralString = """
SELECT commit.id, commit.projected,
       ARRAY (SELECT series_id FROM reading WHERE commit_id = commit.id AND series_id = ANY (%(series)s::bigint[]))
  FROM commit
 WHERE commit.id = ANY (%(commits)s::bigint[])
"""
_OF_PAIRS: LiteralString = f"""
SELECT {POINT_COLUMNS}
  FROM unnest(%(series)s::bigint[], %(commits)s::bigint[]) touched (series_id, commit_id)
  JOIN point USING (series_id, commit_id)
  JOIN report ON report.id = point.report_id
  LEFT JOIN measured ON measured.id = point.measured_id
 ORDER BY point.series_id, point.commit_id, report.started_at, point.report_id, point.id
"""  # noqa: S608 - our own words
# Commit by commit, as uploads store them: whoever compares two commits reads a tenth of the pages that it would by series.
_OF_COMMITS: LiteralString = f"""
SELECT {POINT_COLUMNS}
  FROM point
  JOIN report ON report.id = point.report_id
  LEFT JOIN measured ON measured.id = point.measured_id
 WHERE point.commit_id = ANY (%(commits)s::bigint[])
 ORDER BY point.commit_id, point.series_id, report.started_at, point.report_id, point.id
"""  # noqa: S608 - our own words
_REMOVE_PAIRS: LiteralString = """
DELETE FROM reading
 USING unnest(%(series)s::bigint[], %(commits)s::bigint[]) touched (series_id, commit_id)
 WHERE reading.series_id = touched.series_id AND reading.commit_id = touched.commit_id
"""
_SEVERAL: LiteralString = """
SELECT series_id, commit_id
  FROM unnest(%(series)s::bigint[], %(commits)s::bigint[]) touched (series_id, commit_id)
  JOIN reading USING (series_id, commit_id)
 WHERE reading.reports > 1
"""
_UNPROJECTED: LiteralString = """
SELECT id FROM commit WHERE NOT projected ORDER BY id DESC LIMIT %(most)s FOR NO KEY UPDATE SKIP LOCKED
"""
_UNPROJECTED_AMONG: LiteralString = """
SELECT id FROM commit WHERE NOT projected AND id = ANY (%(commits)s::bigint[])
"""
_POINTS_AT: LiteralString = "SELECT count(*) FROM point WHERE commit_id = %(commit)s"
_REMOVE_COMMITS: LiteralString = "DELETE FROM reading WHERE commit_id = ANY (%(commits)s::bigint[])"
# Where a project has been judged already, an earlier release stored these beside us: steps that follow them are to be judged again.
_PROJECTED: LiteralString = """
  WITH judged AS MATERIALIZED (
       SELECT project_id
         FROM (SELECT DISTINCT project_id FROM commit WHERE id = ANY (%(commits)s::bigint[])) its
        WHERE EXISTS (SELECT FROM commit WHERE project_id = its.project_id AND judged_by > 0))
UPDATE commit
   SET projected = true, judged_by = CASE WHEN project_id IN (SELECT project_id FROM judged) THEN -1 ELSE 0 END
 WHERE id = ANY (%(commits)s::bigint[])
"""
_WAITING: LiteralString = "SELECT count(*) FROM commit WHERE NOT projected"
_STORED: LiteralString = f"SELECT {COLUMNS} FROM reading WHERE commit_id = ANY (%(commits)s::bigint[])"  # noqa: S608 - our own words


@dataclass(frozen=True, slots=True)
class NewPoints:
    """The points an upload added at a commit: their series, and of each the reading it makes alone."""

    commit_id: CommitId
    ordered_at: datetime
    report_id: UUID
    quality: str
    dirty: bool
    series_ids: Sequence[SeriesId]
    measured_ids: Sequence[int | None]
    endings: Sequence[ReadingEnding]


async def keep_readings(session: AsyncSession, uploads: Sequence[NewPoints]) -> None:
    """Readings of everything that uploads touch, whose points are stored already in this transaction.

    A series that nobody else measured at its commit has the reading that was computed beforehand; others are computed from
    all points. Uploads for one commit take turns from here on, so that each sees the points of the one before.
    Index: pk_commit, pk_reading; for others ix_point_commit_id_series_id, pk_report.
    """
    await lock_commits(session, {upload.commit_id for upload in uploads})
    for some in _in_pieces(uploads):
        await _keep(session, some)


def _in_pieces(uploads: Sequence[NewPoints]) -> Iterator[Sequence[NewPoints]]:
    """The points of all uploads, or some at a time where there are many: what is made of them at once keeps every other thread waiting."""
    if sum(len(upload.series_ids) for upload in uploads) <= KEPT_AT_ONCE:
        yield uploads
        return
    for upload in uploads:
        for begin in range(0, len(upload.series_ids), KEPT_AT_ONCE):
            some = slice(begin, begin + KEPT_AT_ONCE)
            yield [
                replace(
                    upload,
                    series_ids=upload.series_ids[some],
                    measured_ids=upload.measured_ids[some],
                    endings=upload.endings[some],
                )
            ]


async def _keep(session: AsyncSession, uploads: Sequence[NewPoints]) -> None:
    commits = {"commits": statements.array_of({upload.commit_id for upload in uploads})}
    touched = Counter((series, upload.commit_id) for upload in uploads for series in upload.series_ids)
    of_series = {"series": statements.array_of({series for series, _ in touched})}
    known = await statements.rows(session, _KNOWN, commits | of_series)
    shared = {(series, commit) for commit, _, there in known for series in there}
    unprojected = {commit for commit, is_projected, _ in known if not is_projected}
    again = [pair for pair, times in touched.items() if times > 1 or pair in shared or pair[1] in unprojected]
    if len(again) < len(touched):
        await insert_rows(session, INSERT_READINGS, _alone(uploads, frozenset(again)))
    if again:
        await compute_again(session, again)


def _alone(uploads: Sequence[NewPoints], again: frozenset[tuple[int, int]]) -> Iterator[tuple[Any, ...]]:
    for upload in uploads:
        beginning = beginning_of(
            upload.commit_id,
            upload.ordered_at,
            upload.report_id,
            1,
            quality=upload.quality,
            dirty=upload.dirty,
        )
        columns = zip(upload.series_ids, upload.measured_ids, upload.endings, strict=True)
        for series_id, measured_id, ending in columns:
            if (series_id, upload.commit_id) not in again:
                yield (series_id, measured_id, *beginning, *ending)


async def lock_commits(session: AsyncSession, commits: Collection[int]) -> None:
    """Let uploads for some commits wait until this transaction ends."""
    await statements.run(session, _LOCK, {"commits": statements.array_of(commits)})


async def compute_again(session: AsyncSession, pairs: Collection[tuple[int, int]]) -> None:
    """Readings of (series, commit) pairs from their points. Index: pk_reading, ix_point_commit_id_series_id, pk_report."""
    values = columns_of(pairs)
    await statements.run(session, _REMOVE_PAIRS, values)
    await insert_rows(session, INSERT_READINGS, _rows(await statements.rows(session, _OF_PAIRS, values, binary=True)))


async def compute_pooled_again(session: AsyncSession, pairs: Collection[tuple[int, int]]) -> Sequence[tuple[int, int]]:
    """Readings of those pairs that several reports are behind; which these are.

    Of one report alone, the five numbers are what they were.

    Index: pk_reading; as `compute_again`.
    """
    pairs = set(pairs)
    values = columns_of(pairs)
    await statements.run(session, _LOCK, {"commits": statements.array_of({commit for _, commit in pairs})})
    several = [(series, commit) for series, commit in await statements.rows(session, _SEVERAL, values)]
    if several:
        await compute_again(session, several)
    return several


async def project_next(session: AsyncSession) -> int:
    """Project some commits that are not, newest first; how many there were.

    Index: ix_commit_unprojected, ix_point_commit_id_series_id, pk_report.
    """
    chosen: list[int] = []
    points = 0
    for (commit_id,) in await statements.rows(session, _UNPROJECTED, {"most": COMMITS_AT_ONCE}):
        counted = await statements.row(session, _POINTS_AT, {"commit": commit_id})
        points += counted[0] if counted else 0
        if chosen and points > POINTS_AT_ONCE:
            break
        chosen.append(commit_id)
    if chosen:
        await _project(session, chosen)
    return len(chosen)


async def _project(session: AsyncSession, commit_ids: Sequence[int]) -> None:
    commits = {"commits": statements.array_of(commit_ids)}
    await statements.run(session, _LOCK, commits)
    await statements.run(session, _REMOVE_COMMITS, commits)
    await insert_rows(
        session, INSERT_READINGS, _rows(await statements.rows(session, _OF_COMMITS, commits, binary=True))
    )
    await statements.run(session, _PROJECTED, commits)


async def project_everything(database: Database) -> AsyncIterator[int]:
    """Project all commits that are not, each batch a transaction; how many were projected so far."""
    done = 0
    while True:
        async with database.writing.begin() as session:
            projected = await project_next(session)
        if not projected:
            return
        done += projected
        yield done


async def unprojected(session: AsyncSession) -> int:
    """The number of commits that are not projected. Index: ix_commit_unprojected."""
    row = await statements.row(session, _WAITING, {})
    return row[0] if row else 0


async def wrong_readings(session: AsyncSession, commit_ids: Sequence[int]) -> set[tuple[int, int]]:
    """The (series, commit) pairs of commits whose reading is missing, left over or not what their points say.

    Uploads for these commits wait meanwhile. Index: pk_reading, ix_point_commit_id_series_id, pk_report.
    """
    commits = {"commits": statements.array_of(commit_ids)}
    await statements.run(session, _LOCK, commits)
    computed = set(readings_of(await statements.rows(session, _OF_COMMITS, commits, binary=True)))
    stored = {Reading.of(row) for row in await statements.rows(session, _STORED, commits, binary=True)}
    return {each[:2] for each in computed ^ stored}


async def renew(session: AsyncSession, commit_ids: Sequence[int], wrong: Collection[tuple[int, int]]) -> None:
    """Compute wrong readings again, and project those of some commits that are not. Index: as `compute_again`, pk_commit."""
    if wrong:
        await compute_again(session, wrong)
    commits = {"commits": statements.array_of(commit_ids)}
    missing = [commit_id for (commit_id,) in await statements.rows(session, _UNPROJECTED_AMONG, commits)]
    if missing:
        await _project(session, missing)


def readings_of(rows: Iterable[Sequence[Any]]) -> Iterator[Reading]:
    """The readings of points as `POINT_COLUMNS`, those of a series at a commit together, oldest first."""
    return (reading_of(*each) for each in _pooled(rows))


def _pooled(rows: Iterable[Sequence[Any]]) -> Iterator[tuple[int, int, datetime, UUID, int, PooledPoints]]:
    for (series_id, commit_id), group in groupby(rows, key=itemgetter(0, 1)):
        points = of_one_level(list(group))
        measured = [MeasuredPoint.of(point[4:-2]) for point in points]
        pooled = pool(measured)
        yield series_id, commit_id, points[0][2], _report_of(points, measured), len(points), pooled


def _report_of(points: Sequence[Sequence[Any]], measured: Sequence[MeasuredPoint]) -> UUID:
    result: UUID
    if len(points) == 1:
        result = points[0][3]
        return result
    counted = counting(measured)
    result = next(point[3] for point, one in zip(points, measured, strict=True) if one is counted)
    return result


def _rows(rows: Iterable[Sequence[Any]]) -> Iterator[tuple[Any, ...]]:
    for series_id, commit_id, ordered_at, report_id, reports, pooled in _pooled(rows):
        beginning = beginning_of(commit_id, ordered_at, report_id, reports, quality=pooled.quality, dirty=pooled.dirty)
        yield (series_id, pooled.measured_id, *beginning, *ending_of(pooled))

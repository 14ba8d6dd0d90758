"""Reading readings."""

from collections.abc import Collection, Mapping
from itertools import groupby
from operator import itemgetter
from typing import LiteralString

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.readings.reading import COLUMNS, MARK_COLUMNS, MARK_WIDTH, WIDTH, Mark, Place, Reading
from pullback_service.readings.report_pooling import LEVEL, of_one_level
from pullback_service.statements import Query, Rows

_AT_PAIRS: LiteralString = f"""
SELECT {COLUMNS}
  FROM unnest(%(series)s::bigint[], %(commits)s::bigint[]) wanted (series_id, commit_id)
  JOIN reading USING (series_id, commit_id)
"""  # noqa: S608 - our own words
_NEWEST: LiteralString = """
SELECT newest.*
  FROM unnest(%(series)s::bigint[]) wanted (id), LATERAL (
       SELECT {columns}
         FROM reading
        WHERE reading.series_id = wanted.id
        ORDER BY reading.ordered_at DESC, reading.commit_id DESC
        LIMIT %(last)s) newest
 ORDER BY series_id, ordered_at, commit_id
"""
_NEWEST_READINGS: LiteralString = _NEWEST.replace("{columns}", COLUMNS)
_NEWEST_MARKS: LiteralString = _NEWEST.replace("{columns}", MARK_COLUMNS)
_MARKS_SINCE: LiteralString = f"""
SELECT {MARK_COLUMNS}
  FROM reading
 WHERE series_id = ANY (%(series)s::bigint[]) AND (ordered_at, commit_id) >= (%(ordered_at)s, %(commit)s)
 LIMIT %(most)s
"""  # noqa: S608 - our own words
_REPORTS: LiteralString = f"""
SELECT point.series_id, point.commit_id, point.report_id::text, {LEVEL}
  FROM unnest(%(series)s::bigint[], %(commits)s::bigint[]) wanted (series_id, commit_id)
  JOIN reading ON reading.series_id = wanted.series_id AND reading.commit_id = wanted.commit_id AND reading.reports > 1
  JOIN point ON point.series_id = reading.series_id AND point.commit_id = reading.commit_id
  JOIN report ON report.id = point.report_id
  LEFT JOIN measured ON measured.id = point.measured_id
 ORDER BY point.series_id, point.commit_id, report.started_at, point.report_id, point.id
"""  # noqa: S608 - our own words
_PROCESSES: LiteralString = f"""
SELECT point.process_values, {LEVEL}
  FROM point
  JOIN report ON report.id = point.report_id
  LEFT JOIN measured ON measured.id = point.measured_id
 WHERE point.series_id = %(series)s AND point.commit_id = %(commit)s
 ORDER BY report.started_at, point.report_id, point.id
"""  # noqa: S608 - our own words


async def readings_at(session: AsyncSession, pairs: Collection[tuple[int, int]]) -> Mapping[tuple[int, int], Reading]:
    """Readings by (series, commit), of projects that were found. Index: pk_reading."""
    return await statements.answer(session, readings_of_pairs(pairs)) if pairs else {}


def readings_of_pairs(pairs: Collection[tuple[int, int]]) -> Query[Mapping[tuple[int, int], Reading]]:
    """Readings by (series, commit). Index: pk_reading."""
    return Query(_AT_PAIRS, columns_of(pairs), lambda rows: {row[:2]: Reading.of(row) for row in rows}, width=WIDTH)


def newest_readings(series_ids: Collection[int], *, last: int) -> Query[list[Reading]]:
    """Series at their newest `last` commits, series by series, oldest first. Index: ix_reading_series_history."""
    values = {"series": statements.array_of(series_ids), "last": last}
    return Query(_NEWEST_READINGS, values, lambda rows: [*map(Reading.of, rows)], width=WIDTH)


def newest_marks(series_ids: Collection[int], *, last: int) -> Query[list[Mark]]:
    """Like `newest_readings`, with the columns that charts draw, which are all in the index."""
    values = {"series": statements.array_of(series_ids), "last": last}
    return Query(_NEWEST_MARKS, values, Mark.of, width=MARK_WIDTH)


def marks_since(series_ids: Collection[int], place: Place, *, most: int) -> Query[list[Mark]]:
    """Series from a commit on, in no order. Index: ix_reading_series_history, and nothing else is read."""
    values = {
        "series": statements.array_of(series_ids), "ordered_at": place[0], "commit": place[1], "most": most,
    }  # fmt: skip
    return Query(_MARKS_SINCE, values, Mark.of, width=MARK_WIDTH)


async def reports_behind(
    session: AsyncSession, readings: Collection[Reading]
) -> Mapping[tuple[int, int], tuple[str, ...]]:
    """The reports behind each of some readings, oldest first. Index: where there are several, ix_point_commit_id_series_id."""
    several = [reading[:2] for reading in readings if reading.reports > 1]
    known = await statements.answer(session, several_reports(several)) if several else {}
    return {reading[:2]: known.get(reading[:2], (reading.report_id,)) for reading in readings}


def several_reports(pairs: Collection[tuple[int, int]]) -> Query[Mapping[tuple[int, int], tuple[str, ...]]]:
    """The reports behind readings of several, by (series, commit), oldest first.

    Index: pk_reading, ix_point_commit_id_series_id, pk_report, pk_measured.
    """
    return Query(_REPORTS, columns_of(pairs), _reports, width=5)


def _reports(rows: Rows) -> dict[tuple[int, int], tuple[str, ...]]:
    groups = groupby(rows, key=itemgetter(0, 1))
    return {pair: tuple(row[2] for row in of_one_level(list(group))) for pair, group in groups}


async def processes_behind(session: AsyncSession, reading: Reading) -> tuple[float, ...]:
    """The values of every process, as far as they are still kept. Index: ix_point_commit_id_series_id, pk_report, pk_measured."""
    rows = await statements.rows(session, _PROCESSES, {"series": reading.series_id, "commit": reading.commit_id})
    return tuple(value for process_values, *_ in of_one_level(rows) for value in process_values or ())


def columns_of(pairs: Collection[tuple[int, int]]) -> dict[str, str]:
    """Pairs of series and commit as two arrays, for `unnest`."""
    return {
        "series": statements.array_of(series for series, _ in pairs),
        "commits": statements.array_of(commit for _, commit in pairs),
    }

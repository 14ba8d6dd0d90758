"""Reading readings."""

from collections.abc import Collection, Mapping
from typing import LiteralString

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.readings.reading import COLUMNS, MARK_COLUMNS, MARK_WIDTH, WIDTH, Mark, Place, Reading
from pullback_service.statements import Query

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
_OF_ONE_LEVEL: LiteralString = """
(here.id IS NULL OR there.id IS NULL
 OR ((here.workload = there.workload OR '' IN (here.workload, there.workload))
     AND (here.harness = there.harness OR '' IN (here.harness, there.harness))))
"""
"""`code_identity.other_level` in SQL, of what a reading was measured of and what a point was."""
_REPORTS: LiteralString = f"""
SELECT reading.series_id, reading.commit_id, array_agg(point.report_id::text ORDER BY report.started_at, point.id)
  FROM unnest(%(series)s::bigint[], %(commits)s::bigint[]) wanted (series_id, commit_id)
  JOIN reading ON reading.series_id = wanted.series_id AND reading.commit_id = wanted.commit_id AND reading.reports > 1
  JOIN point ON point.series_id = reading.series_id AND point.commit_id = reading.commit_id
  JOIN report ON report.id = point.report_id
  LEFT JOIN measured here ON here.id = reading.measured_id
  LEFT JOIN measured there ON there.id = point.measured_id
 WHERE {_OF_ONE_LEVEL}
 GROUP BY reading.series_id, reading.commit_id
"""  # noqa: S608 - our own words
_PROCESSES: LiteralString = f"""
SELECT process_values
  FROM point
  JOIN report ON report.id = point.report_id
  LEFT JOIN measured here ON here.id = %(measured)s::int
  LEFT JOIN measured there ON there.id = point.measured_id
 WHERE point.series_id = %(series)s AND point.commit_id = %(commit)s AND {_OF_ONE_LEVEL}
 ORDER BY report.started_at, point.id
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
    """As `newest_readings`, with the columns that charts draw, which are all in the index."""
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
    """The reports behind readings of several, by (series, commit). Index: pk_reading, ix_point_commit_id_series_id."""
    return Query(_REPORTS, columns_of(pairs), lambda rows: {row[:2]: tuple(row[2]) for row in rows})


async def processes_behind(session: AsyncSession, reading: Reading) -> tuple[float, ...]:
    """The values of every process, as far as they are still kept. Index: ix_point_commit_id_series_id."""
    values = {"series": reading.series_id, "commit": reading.commit_id, "measured": reading.measured_id}
    rows = await statements.rows(session, _PROCESSES, values)
    return tuple(value for (process_values,) in rows for value in process_values or ())


def columns_of(pairs: Collection[tuple[int, int]]) -> dict[str, str]:
    """Pairs of series and commit as two arrays, for `unnest`."""
    return {
        "series": statements.array_of(series for series, _ in pairs),
        "commits": statements.array_of(commit for _, commit in pairs),
    }

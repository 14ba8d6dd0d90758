"""Columns that judging needs of every series of two commits: a few numbers each, sent by Postgres as one array a column.

Of 4,000 readings in rows, with the names of their series, Postgres makes 22 ms and the driver 12; as arrays of numbers that
are joined to nothing, and with the names of the series told once for all that share them, it is 5 and 2.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, LiteralString, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, Text, cast, func, select
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.comparisons.at_once import Flags, Ids, ReadingColumns
from pullback_service.comparisons.grounds import Key
from pullback_service.comparisons.outcomes import Shape
from pullback_service.errors import InvalidInputError
from pullback_service.measured.measured import Measured
from pullback_service.measured.queries import read_measured
from pullback_service.models.machines import Machine
from pullback_service.models.series import Case, Series

MOST_COMPARED_READINGS = 100_000

# Texts are compared only with each other: their hashes of 64 bits stand for them, 0 for none.
_OF_COMMITS: Final[LiteralString] = """
SELECT commit_id, array_agg(series_id), array_agg(value), array_agg(coalesce(log_ratio, 'NaN')),
       array_agg(coalesce(high - low, 'NaN')), array_agg(coalesce(process_count, 0)),
       array_agg(coalesce(process_q25, 'NaN')), array_agg(coalesce(process_q75, 'NaN')),
       array_agg(coalesce(hashtextextended(baseline, 0), 0)), array_agg(coalesce(hashtextextended(method, 0), 0)),
       array_agg(coalesce(hashtextextended(program_hash, 0), 0)), array_agg(coalesce(measured_id, 0)),
       array_agg(dirty), array_agg(consistent)
  FROM (
    SELECT *
      FROM reading
     WHERE commit_id = ANY (%(commits)s::bigint[])
       AND (%(series)s::bigint[] IS NULL OR series_id = ANY (%(series)s::bigint[]))
     LIMIT %(most)s) few
 GROUP BY commit_id
"""
_NUMBERS: Final[LiteralString] = f"""
SELECT EXISTS (SELECT FROM failure WHERE commit_id = ANY (%(commits)s::bigint[])),
       EXISTS (SELECT FROM comparison WHERE (candidate_id, reference_id) IN (
         (%(candidate)s, %(reference)s), (%(reference)s, %(candidate)s))),
       found.*
  FROM (SELECT) AS once
  LEFT JOIN ({_OF_COMMITS}) found ON true
"""  # noqa: S608 - our own words
_SHAPES: Final[LiteralString] = """
SELECT variant, variant_kind, metric, unit, direction, exact, array_agg(id), array_agg(case_id), array_agg(machine_id)
  FROM series
 WHERE id = ANY (%(series)s::bigint[])
 GROUP BY variant, variant_kind, metric, unit, direction, exact
"""


class CommitReadings(NamedTuple):
    """The readings of one commit, by series."""

    series_id: Ids
    columns: ReadingColumns

    @classmethod
    def of(cls, series: Sequence[int], *columns: Sequence[object]) -> Self:
        """Those that Postgres sent as arrays."""
        return cls(np.array(series, np.int64), ReadingColumns.of(*columns))

    def of_series(self, chosen: Ids) -> Self:
        """Those of some series."""
        here = np.isin(self.series_id, chosen)
        columns: Iterator[Any] = (column[here] for column in self.columns)
        return type(self)(self.series_id[here], ReadingColumns(*columns))


@dataclass(frozen=True, slots=True)
class MeasuredNumbers:
    """The readings of both commits, by commit, of what they were measured, and whether there is anything else to know."""

    of: Mapping[int, CommitReadings]
    measured: Mapping[int, Measured]
    has_failures: bool
    has_statements: bool


NOTHING: Final = CommitReadings.of((), *((),) * len(ReadingColumns._fields))


async def read_numbers(
    session: AsyncSession, reference_id: int, candidate_id: int, where: Collection[ColumnElement[bool]]
) -> MeasuredNumbers:
    """The readings of both commits.

    The rule of what callers see is not applied here: the commits were found where it is. `where` are conditions on
    `series`, `case` and `machine`; what they choose is found first, for joining it to the readings takes as long again.

    Index: pk_reading, pk_measured, ix_failure_commit_id, ix_comparison_candidate.
    """
    chosen = await _chosen_series(session, where) if where else None
    found = await statements.rows(
        session,
        _NUMBERS,
        {
            "commits": [reference_id, candidate_id],
            "reference": reference_id,
            "candidate": candidate_id,
            "series": chosen,
            "most": MOST_COMPARED_READINGS + 1,
        },
        binary=True,
    )
    has_failures, has_statements = found[0][:2]
    if sum(len(row[3] or ()) for row in found) > MOST_COMPARED_READINGS:
        raise InvalidInputError(
            f"These commits have more than {MOST_COMPARED_READINGS} results: narrow the comparison with machine=, metric= or "
            "workload=."
        )
    readings = {row[2]: CommitReadings.of(*row[3:]) for row in found if row[2] is not None}
    ids = {each for of_commit in readings.values() for each in np.unique(of_commit.columns.measured).tolist()}
    return MeasuredNumbers(
        readings,
        await read_measured(session, ids - {0}),
        has_failures,
        has_statements,
    )


async def readings_of_commits(
    session: AsyncSession, commits: Collection[int], series: Collection[int]
) -> Mapping[int, CommitReadings]:
    """Some series at some commits, by commit. Index: pk_reading."""
    values = {"commits": statements.array_of(commits), "series": statements.array_of(series), "most": None}
    rows = await statements.rows(session, _OF_COMMITS, values, binary=True)
    return {row[0]: CommitReadings.of(*row[1:]) for row in rows}


class DescribedSeries(NamedTuple):
    """Series in the order of their ids, each with the place of its shape among `shapes`."""

    shapes: Sequence[Shape]
    id: Ids
    shape: NDArray[np.intp]
    case_id: Ids
    machine_id: Ids

    def of_shapes(self, flags: Sequence[bool]) -> Flags:
        """For every series the flag of its shape."""
        return np.array(flags, bool)[self.shape]

    def keys(self, places: NDArray[np.intp]) -> Iterator[Key]:
        """The keys of the series at some places."""
        named = [(shape.variant, shape.metric) for shape in self.shapes]
        columns = (column[places].tolist() for column in (self.case_id, self.machine_id, self.shape))
        for case_id, machine_id, shape in zip(*columns, strict=True):
            yield case_id, machine_id, *named[shape]


async def describe_series(session: AsyncSession, series_ids: Ids) -> DescribedSeries:
    """Descriptions of series, those that share all but case and machine together. Index: pk_series."""
    rows = await statements.rows(session, _SHAPES, {"series": statements.array_of(series_ids.tolist())}, binary=True)
    ids, cases, machines = (np.array([each for row in rows for each in row[column]], np.int64) for column in (6, 7, 8))
    shape = np.repeat(np.arange(len(rows)), [len(row[6]) for row in rows])
    order = ids.argsort()
    shapes = [Shape(*row[:6]) for row in rows]
    return DescribedSeries(shapes, ids[order], shape[order], cases[order], machines[order])


async def _chosen_series(session: AsyncSession, where: Collection[ColumnElement[bool]]) -> str:
    """Ids of the series that conditions choose, as Postgres writes an array of them. Index: ix_series_project_id."""
    found: str = (
        await session.execute(
            select(func.coalesce(cast(func.array_agg(Series.id), Text), "{}"))
            .join(Case, Case.id == Series.case_id)
            .join(Machine, Machine.id == Series.machine_id)
            .where(*where)
        )
    ).scalar_one()
    return found

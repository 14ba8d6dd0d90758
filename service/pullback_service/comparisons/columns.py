"""Columns that judging needs of every series of two commits: a few numbers each, sent by Postgres as one array a column.

Of 4,000 readings in rows, with the names of their series, Postgres makes 22 ms and the driver 12; as arrays of numbers that
are joined to nothing, with the names of the series told once for all that share them, it is 9, and nothing where NumPy reads
the bytes that were sent.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, LiteralString, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, and_, true
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.comparisons.at_once import COLUMN_TYPES, Flags, Ids, ReadingColumns
from pullback_service.comparisons.grounds import Key
from pullback_service.comparisons.outcomes import Shape
from pullback_service.errors import InvalidInputError
from pullback_service.measured.measured import Measured
from pullback_service.measured.queries import measured_by_id
from pullback_service.statements import Query, Rows

MOST_COMPARED_READINGS = 100_000

# Texts are compared only with each other: their hashes of 64 bits stand for them, 0 for none.
_COLUMNS: Final[Mapping[str, LiteralString]] = {
    "value": "value",
    "log_ratio": "coalesce(log_ratio, 'NaN')",
    "extent": "coalesce(high - low, 'NaN')",
    "processes": "coalesce(process_count, 0)::bigint",
    "q25": "coalesce(process_q25, 'NaN')",
    "q75": "coalesce(process_q75, 'NaN')",
    "baseline": "coalesce(hashtextextended(baseline, 0), 0)",
    "method": "coalesce(hashtextextended(method, 0), 0)",
    "program": "coalesce(hashtextextended(program_hash, 0), 0)",
    "measured": "coalesce(measured_id, 0)::bigint",
    "dirty": "dirty",
    "consistent": "consistent",
}
_OF_COMMITS: Final[LiteralString] = """
SELECT commit_id, array_agg(series_id) AS series_id, {columns}
  FROM (SELECT * FROM reading WHERE commit_id = ANY (%(commits)s::bigint[]) AND {which} LIMIT %(most)s) found
 GROUP BY commit_id
""".replace("{columns}", ", ".join(f"array_agg({column}) AS {name}" for name, column in _COLUMNS.items()))
_SENT: Final[LiteralString] = f"""
SELECT commit_id, array_send(series_id), {", ".join(f"array_send({name})" for name in _COLUMNS)} FROM few
"""  # noqa: S608 - our own words
_OF_SERIES: Final[LiteralString] = (
    f"WITH few AS ({_OF_COMMITS.replace('{which}', 'series_id = ANY (%(series)s::bigint[])')}) {_SENT}"
)
_ARRAY_HEADER_BYTES: Final = 20
_CHOSEN: Final[LiteralString] = """
series_id = ANY (ARRAY (
  SELECT series.id
    FROM series JOIN "case" ON "case".id = series.case_id JOIN machine ON machine.id = series.machine_id
   WHERE {where}))
"""
_MEASURED: Final[LiteralString] = "ARRAY (SELECT DISTINCT unnest(measured) FROM few)"
_SERIES: Final[LiteralString] = "ARRAY (SELECT unnest(series_id) FROM few)"
_SHAPES: Final[LiteralString] = """
SELECT variant, variant_kind, metric, unit, direction, exact, count(*),
       array_send(array_agg(id)), array_send(array_agg(case_id)), array_send(array_agg(machine_id))
  FROM series
 WHERE id = ANY (%(series)s::bigint[])
 GROUP BY variant, variant_kind, metric, unit, direction, exact
"""


class CommitReadings(NamedTuple):
    """The readings of one commit, by series."""

    series_id: Ids
    columns: ReadingColumns

    @classmethod
    def sent(cls, series_id: bytes, *columns: bytes) -> Self:
        """Those that Postgres sent."""
        return cls(_array(series_id, np.int64), ReadingColumns(*map(_array, columns, COLUMN_TYPES)))

    def of_series(self, chosen: Ids) -> Self:
        """Those of some series."""
        which = np.isin(self.series_id, chosen)
        columns: Iterator[Any] = (column[which] for column in self.columns)
        return type(self)(self.series_id[which], ReadingColumns(*columns))


def _array(sent: bytes, kind: type[np.generic]) -> NDArray[Any]:
    """The array in a binary answer: a header, then the length and the bytes of each element; none of them is NULL."""
    element = np.dtype([("length", ">i4"), ("value", np.dtype(kind).newbyteorder(">"))])
    return np.frombuffer(sent, element, offset=_ARRAY_HEADER_BYTES)["value"].astype(kind)


NOTHING: Final = CommitReadings(np.array((), np.int64), ReadingColumns.of(*((),) * len(ReadingColumns._fields)))


def readings_at_two(
    reference_id: int, candidate_id: int, where: Collection[ColumnElement[bool]]
) -> Query[Mapping[int, CommitReadings]]:
    """The readings of two commits, to be given to others as `few`; by commit.

    The rule of what callers see is not applied here: the commits were found where it is. `where` are conditions on
    `series`, `case` and `machine`; what they choose is found first, for joining it to the readings takes as long again.

    Index: pk_reading; ix_series_project_id.
    """
    condition, values = statements.text_of(and_(true(), *where))
    which = _CHOSEN.replace("{where}", condition) if where else "true"
    most = {"commits": [reference_id, candidate_id], "most": MOST_COMPARED_READINGS + 1}
    return Query(_OF_COMMITS.replace("{which}", which), {**values, **most}, _by_commit)


def refuse_too_many(found: Mapping[int, CommitReadings]) -> None:
    """Refuse a comparison of more readings than are judged at once."""
    if sum(len(of_commit.series_id) for of_commit in found.values()) > MOST_COMPARED_READINGS:
        raise InvalidInputError(
            f"These commits have more than {MOST_COMPARED_READINGS} results: narrow the comparison with machine=, metric= or "
            "workload=."
        )


def numbers_given(given: Query[Mapping[int, CommitReadings]]) -> Query[Mapping[int, CommitReadings]]:
    """The given readings, sent."""
    return replace(given, statement=_SENT, values={})


def measured_given() -> Query[Mapping[int, Measured]]:
    """The measured code of the given readings. Index: pk_measured."""
    return measured_by_id(()).where(ids=_MEASURED)


def series_given() -> Query["DescribedSeries"]:
    """The series of the given readings. Index: pk_series."""
    return described_series(()).where(series=_SERIES)


def _by_commit(rows: Rows) -> Mapping[int, CommitReadings]:
    return {row[0]: CommitReadings.sent(*row[1:]) for row in rows}


async def readings_of_commits(
    session: AsyncSession, commits: Collection[int], series: Collection[int]
) -> Mapping[int, CommitReadings]:
    """Some series at some commits, by commit. Index: pk_reading."""
    values = {"commits": statements.array_of(commits), "series": statements.array_of(series), "most": None}
    return await statements.answer(session, Query(_OF_SERIES, values, _by_commit))


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
    """Descriptions of series. Index: pk_series."""
    return await statements.answer(session, described_series(series_ids.tolist()))


def described_series(series_ids: Collection[int]) -> Query[DescribedSeries]:
    """Descriptions of series, those that share all but case and machine together. Index: pk_series."""
    return Query(_SHAPES, {"series": statements.array_of(series_ids)}, _described)


def _described(found: Rows) -> DescribedSeries:
    rows = [*found]
    shapes = [Shape(*row[:6]) for row in rows]
    shape = np.repeat(np.arange(len(rows)), [row[6] for row in rows])
    ids, cases, machines = (
        np.concatenate([NOTHING.series_id, *(_array(row[column], np.int64) for row in rows)]) for column in (7, 8, 9)
    )
    order = ids.argsort()
    return DescribedSeries(shapes, ids[order], shape[order], cases[order], machines[order])

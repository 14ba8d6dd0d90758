"""Columns that judging needs of every series of two commits: a few numbers each, sent by Postgres as bytes that NumPy reads.

Of 4,000 readings in rows, with the names of their series, Postgres makes 22 ms and the driver 12; as bytes that are joined
to nothing, with the names of the series told once for all that share them, it is 7 and 0.2.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, LiteralString, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, and_
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.comparisons.judgement_inputs import Key
from pullback_service.comparisons.judgements import NaturalOrder, Shape
from pullback_service.comparisons.vectorized_judging import Flags, Ids, ReadingColumns
from pullback_service.errors import InvalidInputError
from pullback_service.measured_code.code_identity import CodeIdentity
from pullback_service.measured_code.queries import measured_by_id
from pullback_service.statements import Query, Rows

MOST_COMPARED_READINGS = 100_000

# Rows are sent as bytes, one behind the other. Texts are compared only with each other: their hashes of 64 bits stand for
# them, 0 for none.
_NUMBER, _WHOLE, _FLAG = ("float8send", ">f8"), ("int8send", ">i8"), ("boolsend", "?")
_COLUMNS: Final[Sequence[tuple[str, tuple[LiteralString, str], LiteralString]]] = (
    ("series_id", _WHOLE, "series_id"),
    ("value", _NUMBER, "value"),
    ("log_ratio", _NUMBER, "coalesce(log_ratio, 'NaN')"),
    ("extent", _NUMBER, "coalesce(high - low, 'NaN')"),
    ("processes", _WHOLE, "coalesce(process_count, 0)"),
    ("q25", _NUMBER, "coalesce(process_q25, 'NaN')"),
    ("q75", _NUMBER, "coalesce(process_q75, 'NaN')"),
    ("baseline", _WHOLE, "coalesce(hashtextextended(baseline, 0), 0)"),
    ("method", _WHOLE, "coalesce(hashtextextended(method, 0), 0)"),
    ("program", _WHOLE, "coalesce(hashtextextended(program_hash, 0), 0)"),
    ("measured", _WHOLE, "coalesce(measured_id, 0)"),
    ("dirty", _FLAG, "dirty"),
    ("consistent", _FLAG, "consistent AND (process_low IS NULL OR process_count IS NOT NULL)"),
)
_READING: Final = np.dtype([(name, kind) for name, (_, kind), _ in _COLUMNS])
# Commit by commit: grouped by it, thousands of readings would be sorted first, which takes Postgres half as long as the rest.
_OF_COMMITS: Final[LiteralString] = """
SELECT wanted.commit_id, found.*
  FROM unnest(%(commits)s::bigint[]) wanted (commit_id), LATERAL (
       SELECT array_agg(series_id) AS series, array_agg(measured_id) AS measured, string_agg({row}, '') AS readings
         FROM reading
        WHERE commit_id = wanted.commit_id AND {which}
       HAVING count(*) > 0) found
""".replace("{row}", " || ".join(f"{send}({column})" for _, (send, _), column in _COLUMNS))
# Reports tell of how many points they are; readings are counted where these are too many, and then none is sent.
_NUMBER_OF_BOTH: Final[LiteralString] = """
SELECT CASE WHEN (SELECT sum(points) FROM report WHERE commit_id IN (%(reference)s, %(candidate)s)) <= %(most)s THEN 0
            ELSE (SELECT count(*)
                    FROM (SELECT FROM reading WHERE commit_id IN (%(reference)s, %(candidate)s) AND {which} LIMIT %(most)s + 1) counted)
       END AS number
"""
_CHOSEN: Final[LiteralString] = """
series_id = ANY (ARRAY (
  SELECT series.id
    FROM series JOIN "case" ON "case".id = series.case_id JOIN machine ON machine.id = series.machine_id
   WHERE {where}))
"""
_MEASURED: Final[LiteralString] = "ARRAY (SELECT DISTINCT unnest(measured) FROM few)"
_SERIES: Final[LiteralString] = "ARRAY (SELECT unnest(series) FROM few)"
_SHAPES: Final[LiteralString] = """
SELECT variant, variant_kind, metric, unit, direction, exact,
       string_agg(int8send(id) || int8send(case_id) || int8send(machine_id), '')
  FROM series
 WHERE id = ANY (%(series)s::bigint[])
 GROUP BY variant, variant_kind, metric, unit, direction, exact
"""
_SERIES_OF_SHAPE: Final = np.dtype([("id", ">i8"), ("case_id", ">i8"), ("machine_id", ">i8")])
# All cases of the project, which an index has in order: sorting thousands of labels takes longer than everything else.
_IN_ORDER: Final[LiteralString] = """
SELECT (SELECT string_agg(int8send(id), '' ORDER BY workload, natural_label) FROM "case" WHERE project_id = %(project)s),
       (SELECT string_agg(int8send(id), '' ORDER BY name, fingerprint, host) FROM machine)
"""


class CommitReadings(NamedTuple):
    """The readings of one commit, by series."""

    series_id: Ids
    columns: ReadingColumns

    @classmethod
    def sent(cls, readings: bytes) -> Self:
        """Those that Postgres sent."""
        series_id, *columns = _columns(readings, _READING)
        return cls(series_id, ReadingColumns(*columns))

    def of_series(self, chosen: Ids) -> Self:
        """Those of some series."""
        which = np.isin(self.series_id, chosen)
        columns: Iterator[Any] = (column[which] for column in self.columns)
        return type(self)(self.series_id[which], ReadingColumns(*columns))


def _columns(sent: bytes, row: np.dtype[np.void]) -> list[NDArray[Any]]:
    """Rows that were sent, column by column."""
    rows = np.frombuffer(sent, row)
    return [rows[name].astype(rows[name].dtype.newbyteorder("=")) for name in row.names or ()]


NOTHING: Final = CommitReadings.sent(b"")


def readings_at_two(
    reference_id: int, candidate_id: int, where: Collection[ColumnElement[bool]]
) -> Mapping[str, Query[Any]]:
    """The readings of two commits by commit, `few`, and their `number`, of which more than are judged leave nothing: to be given to others.

    The rule of what callers see is not applied here: the commits were found where it is. `where` are conditions on
    `series`, `case` and `machine`; what they choose is found first, for joining it to the readings takes as long again.

    Index: pk_reading, ix_report_commit_id; ix_series_project_id.
    """
    values: dict[str, object] = {
        "reference": reference_id, "candidate": candidate_id, "commits": [*{reference_id, candidate_id}], "most": MOST_COMPARED_READINGS,
    }  # fmt: skip
    which: LiteralString = "true"
    if where:
        condition, chosen = statements.text_of(and_(*where))
        which, values = _CHOSEN.replace("{where}", condition), {**values, **chosen}
    number = _NUMBER_OF_BOTH.replace("{which}", which)
    few = _OF_COMMITS.replace("{which}", which + " AND (SELECT number FROM number) <= %(most)s")  # noqa: S608 - as above
    return {"number": Query(number, values, _refuse_too_many, width=1), "few": Query(few, values, _by_commit)}


def _refuse_too_many(rows: Rows) -> None:
    """Refuse a comparison of more readings than are judged at once."""
    for (number,) in rows:
        if number > MOST_COMPARED_READINGS:
            raise InvalidInputError(
                f"These commits have more than {MOST_COMPARED_READINGS} results: narrow the comparison with machine=, metric= or "
                "workload=."
            )


def numbers_given(given: Query[Mapping[int, CommitReadings]]) -> Query[Mapping[int, CommitReadings]]:
    """The given readings, sent."""
    return replace(given, statement="SELECT commit_id, readings FROM few", values={})


def measured_given() -> Query[Mapping[int, CodeIdentity]]:
    """The measured code of the given readings. Index: pk_measured."""
    return measured_by_id(()).where(ids=_MEASURED)


def series_given() -> Query["DescribedSeries"]:
    """The series of the given readings. Index: pk_series."""
    return described_series(()).where(series=_SERIES)


def natural_order(project_id: int) -> Query[NaturalOrder]:
    """Cases of a project, and all machines, in the order of their names. Index: ix_case_workload; few machines."""
    return Query(_IN_ORDER, {"project": project_id}, _in_order, width=2)


def _in_order(rows: Rows) -> NaturalOrder:
    return NaturalOrder(*(np.frombuffer(ids or b"", ">i8").astype(np.int64) for row in rows for ids in row))


def _by_commit(rows: Rows) -> Mapping[int, CommitReadings]:
    return {commit_id: CommitReadings.sent(readings) for commit_id, *_, readings in rows}


async def readings_of_commits(
    session: AsyncSession, commits: Collection[int], series: Collection[int]
) -> Mapping[int, CommitReadings]:
    """Some series at some commits, by commit. Index: pk_reading."""
    values = {"commits": statements.array_of(commits), "series": statements.array_of(series)}
    of_series = _OF_COMMITS.replace("{which}", "series_id = ANY (%(series)s::bigint[])")
    return await statements.answer(session, Query(of_series, values, _by_commit))


class DescribedSeries(NamedTuple):
    """Series in the order of their ids, each with the place of its shape among `shapes`."""

    shapes: Sequence[Shape]
    id: Ids
    shape: NDArray[np.intp]
    case_id: Ids
    machine_id: Ids

    def of_shapes(self, flags: Sequence[bool]) -> Flags:
        """The flag of its shape for every series."""
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
    of_shapes = [len(row[6]) // _SERIES_OF_SHAPE.itemsize for row in rows]
    shape = np.repeat(np.arange(len(rows)), of_shapes)
    ids, cases, machines = _columns(b"".join(row[6] for row in rows), _SERIES_OF_SHAPE)
    order = ids.argsort()
    return DescribedSeries(shapes, ids[order], shape[order], cases[order], machines[order])

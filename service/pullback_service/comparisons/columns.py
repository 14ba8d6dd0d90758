"""What judging needs of every series of two commits: a few numbers each, which Postgres sends as one array a column.

Of 4,000 points in rows, with the names of their series, Postgres makes 22 ms and the driver 12; as arrays of numbers that
are joined to nothing, and with the names of the series told once for all that share them, it is 5 and 2.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, LiteralString, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, Text, cast, func, select
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.comparisons.at_once import Flags, Ids, Numbers
from pullback_service.comparisons.outcomes import Shape
from pullback_service.errors import InvalidInputError
from pullback_service.machines.models import Machine
from pullback_service.series.models import Case, Series

MOST_COMPARED_POINTS = 100_000

_NUMBERS: Final[LiteralString] = """
SELECT EXISTS (SELECT FROM failure WHERE commit_id = ANY (%(commits)s::bigint[])),
       EXISTS (SELECT FROM comparison WHERE (candidate_id, reference_id) IN (
         (%(candidate)s, %(reference)s), (%(reference)s, %(candidate)s))),
       found.*
  FROM (SELECT) AS once
  LEFT JOIN (
    SELECT commit_id, array_agg(series_id), array_agg(value), array_agg(method), array_agg(doubted)
      FROM (
        SELECT commit_id, series_id, value, method,
               value = ALL (process_values) IS FALSE OR report_id = ANY (ARRAY (
                 SELECT id FROM report WHERE commit_id = ANY (%(commits)s::bigint[]) AND dirty)) AS doubted
          FROM point
         WHERE commit_id = ANY (%(commits)s::bigint[])
           AND (%(series)s::bigint[] IS NULL OR series_id = ANY (%(series)s::bigint[]))
         LIMIT %(most)s) few
     GROUP BY commit_id) found ON true
"""
_SHAPES: Final[LiteralString] = """
SELECT variant, variant_kind, metric, unit, direction, exact, array_agg(id), array_agg(case_id), array_agg(machine_id)
  FROM series
 WHERE id = ANY (%(series)s::bigint[])
 GROUP BY variant, variant_kind, metric, unit, direction, exact
"""


class CommitNumbers(NamedTuple):
    """The points of one commit. Equal methods have equal codes, also those of the other commit.

    Doubted as a count is what processes did not count alike, or what was counted with uncommitted changes.
    """

    series_id: Ids
    value: Numbers
    method: NDArray[np.intp]
    doubted: Flags


@dataclass(frozen=True, slots=True)
class MeasuredNumbers:
    """The points of both commits, by commit, and whether there is anything else to know."""

    of: Mapping[int, CommitNumbers]
    has_failures: bool
    has_statements: bool


NOTHING: Final = CommitNumbers(np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.intp), np.zeros(0, bool))


async def read_numbers(
    session: AsyncSession, reference_id: int, candidate_id: int, where: Collection[ColumnElement[bool]]
) -> MeasuredNumbers:
    """The points of both commits.

    The rule of what callers see is not applied here: the commits were found where it is. `where` are conditions on
    `series`, `case` and `machine`; what they choose is found first, for joining it to the points takes as long again.

    Index: ix_point_commit_id_series_id, ix_report_commit_id, ix_failure_commit_id, ix_comparison_candidate.
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
            "most": MOST_COMPARED_POINTS + 1,
        },
        binary=True,
    )
    has_failures, has_statements = found[0][:2]
    if sum(len(row[3] or ()) for row in found) > MOST_COMPARED_POINTS:
        raise InvalidInputError(
            f"These commits have more than {MOST_COMPARED_POINTS} points: narrow the comparison with machine=, metric= or "
            "workload=."
        )
    codes: dict[str | None, int] = {}
    return MeasuredNumbers(
        {
            commit_id: CommitNumbers(
                np.array(series, np.int64),
                np.array(values, np.float64),
                np.array([codes.setdefault(method, len(codes)) for method in methods], np.intp),
                np.array(doubted, bool),
            )
            for _, _, commit_id, series, values, methods, doubted in found
            if commit_id is not None
        },
        has_failures,
        has_statements,
    )


class DescribedSeries(NamedTuple):
    """Series in the order of their ids, each with the place of its shape among `shapes`."""

    shapes: Sequence[Shape]
    id: Ids
    shape: NDArray[np.intp]
    case_id: Ids
    machine_id: Ids


async def describe_series(session: AsyncSession, series_ids: Ids) -> DescribedSeries:
    """What series are, those that share all but case and machine together. Index: pk_series."""
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

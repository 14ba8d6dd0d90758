"""The newest readings of many series, as charts draw them."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, LiteralString, TypeAlias, TypeVar

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.ids import SeriesId
from pullback_service.readings.queries import newest_marks
from pullback_service.readings.reading import MARK_WIDTH, Mark
from pullback_service.series.thinning import thin
from pullback_service.statements import Query, Rows

T = TypeVar("T")
_COMMITS: LiteralString = "SELECT id, sha FROM commit WHERE id = ANY (ARRAY (SELECT DISTINCT commit_id FROM marks))"
_VALUE: Final = Mark._fields.index("value")
_LOG_RATIO: Final = Mark._fields.index("ratio")  # the ratio's columns begin with it


DrawnPoint: TypeAlias = tuple[Mark, str]
"""A reading that is drawn, and the hash of its commit."""


async def drawn_points(
    session: AsyncSession, series: Sequence[SeriesId], *, last: int, at_most: int, beside: Query[T]
) -> tuple[Mapping[SeriesId, Sequence[DrawnPoint]], T]:
    """Each series at its newest `last` commits, oldest first, thinned to `at_most` marks as `marks_in` does it.

    The second is the answer of the query `beside`, which goes with these in one statement.
    Whoever has the ids of series has found them where the rule of what callers see is applied.
    Index: ix_reading_series_history, pk_commit.
    """

    def read(rows: Rows) -> Mapping[int, Sequence[Mark]]:
        return {series_id: thinned([*group], at_most) for series_id, group in groupby(rows, key=itemgetter(0))}

    async with statements.together(session, marks=newest_marks(series, last=last)) as ask:
        marks = ask(Query("SELECT * FROM marks", {}, read, width=MARK_WIDTH))
        shas, other = ask(Query(_COMMITS, {}, dict[int, str], width=2)), ask(beside)
    kept = marks.value
    points = {id_: [(mark, shas.value[mark.commit_id]) for mark in kept.get(id_, ())] for id_ in series}
    return points, other.value


def thinned(rows: Sequence[Sequence[Any]], at_most: int) -> Sequence[Mark]:
    """At most so many marks of a series, out of its rows of `MARK_COLUMNS`, chosen so that their plot looks like that of all."""
    values: list[float | None] = [row[_VALUE] for row in rows]
    ratios: list[float | None] = [row[_LOG_RATIO] for row in rows]
    traces = [values] if all(ratio is None for ratio in ratios) else [values, ratios]
    return Mark.of(rows[place] for place in thin(traces, at_most)) if rows else []

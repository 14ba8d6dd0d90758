"""The newest readings of many series, as charts draw them."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import LiteralString, NamedTuple, TypeVar

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.ids import SeriesId
from pullback_service.readings.queries import newest_marks
from pullback_service.readings.reading import Mark
from pullback_service.series.thinning import thin
from pullback_service.statements import Query

T = TypeVar("T")
_COMMITS: LiteralString = "SELECT id, sha FROM commit WHERE id = ANY (ARRAY (SELECT DISTINCT commit_id FROM marks))"


class DrawnPoint(NamedTuple):
    """A reading that is drawn, and the hash of its commit."""

    reading: Mark
    commit: str


async def drawn_points(
    session: AsyncSession, series: Sequence[SeriesId], *, last: int, at_most: int, beside: Query[T]
) -> tuple[Mapping[SeriesId, Sequence[DrawnPoint]], T]:
    """Each series at its newest `last` commits, oldest first, thinned to `at_most` marks as `marks_in` does it.

    The second is the answer of the query `beside`, which goes with these in one statement.
    Whoever has the ids of series has found them where the rule of what callers see is applied.
    Index: ix_reading_series_history, pk_commit.
    """
    query = newest_marks(series, last=last)
    async with statements.together(session, marks=query) as ask:
        marks, shas = ask(query.given_as("marks")), ask(Query(_COMMITS, {}, dict[int, str], width=2))
        other = ask(beside)
    kept = {
        series_id: thinned([*group], at_most) for series_id, group in groupby(marks.value, key=attrgetter("series_id"))
    }
    points = {id_: [DrawnPoint(mark, shas.value[mark.commit_id]) for mark in kept.get(id_, ())] for id_ in series}
    return points, other.value


def thinned(marks: Sequence[Mark], at_most: int) -> Sequence[Mark]:
    """At most so many marks of a series, chosen so that their plot looks like that of all."""
    values: list[float | None] = [mark.value for mark in marks]
    ratios = [mark.ratio.log_ratio for mark in marks]
    traces = [values] if all(ratio is None for ratio in ratios) else [values, ratios]
    return [marks[place] for place in thin(traces, at_most)] if marks else []

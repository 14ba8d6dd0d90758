"""Points as light rows, one for each report, become one for each commit.

What pooling reads beside them lies in no index. Most commits have one report: it is read only of those that have several.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import LiteralString, NamedTuple, Protocol, Self, TypeVar

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.readings.pooling import pooled_value, speaker

_MEASURED: LiteralString = """
SELECT id, value, quality, n, process_values, process_count, process_low, process_q25, process_q75, process_high
  FROM point
 WHERE id = ANY (%(ids)s::bigint[])
"""


class Light(Protocol):
    """A point as a row, without what its processes gave."""

    @property
    def id(self) -> int:
        """Of the point."""

    @property
    def series_id(self) -> int:
        """Of which series."""

    @property
    def commit_id(self) -> int:
        """At which commit."""

    def _replace(self, *, value: float) -> Self: ...


P = TypeVar("P", bound=Light)
_of_which: Callable[[Light], tuple[int, int]] = attrgetter("series_id", "commit_id")


class Measured(NamedTuple):
    """A point as pooling reads it."""

    id: int
    value: float
    quality: str
    n: int | None
    process_values: Sequence[float] | None
    process_count: int | None
    process_low: float | None
    process_q25: float | None
    process_q75: float | None
    process_high: float | None


async def measured(session: AsyncSession, ids: Iterable[int]) -> Mapping[int, Measured]:
    """What pooling reads of some points. Index: pk_point."""
    rows = await statements.rows(session, _MEASURED, {"ids": statements.array_of(ids)}, binary=True)
    return {row[0]: Measured._make(row) for row in rows}


async def one_of_each_commit(session: AsyncSession, points: Sequence[P]) -> Sequence[P]:
    """One point for each series and commit, of these: the one whose ratio stands for all, with the value of all, pooled.

    The points of a series at a commit come oldest report first. Index: pk_point.
    """
    if len(set(map(_of_which, points))) == len(points):
        return points
    groups: dict[tuple[int, int], list[P]] = {}
    for point in points:
        groups.setdefault(_of_which(point), []).append(point)
    known = await measured(session, (point.id for group in groups.values() if len(group) > 1 for point in group))
    return [group[0] if len(group) == 1 else _pooled(group, known) for group in groups.values()]


def _pooled(group: Sequence[P], known: Mapping[int, Measured]) -> P:
    reports = [known[point.id] for point in group]
    spoken = speaker(reports).id
    return next(point for point in group if point.id == spoken)._replace(value=pooled_value(reports))

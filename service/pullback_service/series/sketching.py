"""A case in one metric on several machines, roughly: what is put side by side to be compared at a glance."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.series.lean_points import lean_points_of

# Commits of several reports are pooled afterwards: what is said of them here is said of no report in particular.
_SKETCHES = """
  WITH newest AS (
       SELECT series.id, series.machine_id, series.variant, of_series.*,
              dense_rank() OVER (ORDER BY of_series.ordered_at, of_series.commit_id) - 1 AS place
         FROM series, LATERAL (
              SELECT ordered_at, commit_id, count(*) > 1 AS several, min(value) AS value, min(log_ratio) AS log_ratio
                FROM point
               WHERE series_id = series.id
               GROUP BY ordered_at, commit_id
               ORDER BY ordered_at DESC, commit_id DESC
               LIMIT %(last)s) of_series
        WHERE series.case_id = %(case)s AND series.metric = %(metric)s AND series.machine_id = ANY (%(machines)s))
SELECT machine_id, variant, array_agg(place ORDER BY place), array_agg(value ORDER BY place),
       array_agg(log_ratio ORDER BY place), id, array_agg(commit_id ORDER BY place) FILTER (WHERE several),
       array_agg(place ORDER BY place) FILTER (WHERE several)
  FROM newest
 GROUP BY id, machine_id, variant
"""


class Sketch(NamedTuple):
    """A variant on a machine, to be put beside the others: at each commit the place among those of all, value and ratio."""

    machine_id: int
    variant: str
    places: Sequence[int]
    values: list[float]
    log_ratios: list[float | None]


async def sketches_of(
    session: AsyncSession, case_id: int, metric: str, machine_ids: Collection[int], *, last: int
) -> Sequence[Sketch]:
    """The newest commits of a case in one metric on several machines.

    Index: ix_point_series_history; for commits of several reports ix_point_commit_id_series_id, pk_point.
    """
    values = {"case": case_id, "metric": metric, "machines": list(machine_ids), "last": last}
    found = []
    several: dict[tuple[int, int], tuple[Sketch, int]] = {}
    for *told, series_id, commits, places in await statements.rows(session, _SKETCHES, values, binary=True):
        sketch = Sketch(*told)
        found.append(sketch)
        for commit_id, place in zip(commits or (), places or (), strict=True):
            several[series_id, commit_id] = sketch, sketch.places.index(place)
    if several:
        for point in await lean_points_of(session, several):
            sketch, at = several[point.series_id, point.commit_id]
            sketch.values[at], sketch.log_ratios[at] = point.value, point.log_ratio
    return found

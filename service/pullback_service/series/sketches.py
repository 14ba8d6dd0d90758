"""Sketches of a case in one metric on several machines, for small charts side by side."""

from collections.abc import Collection, Sequence
from typing import LiteralString, NamedTuple

from pullback_service.statements import Query

_SKETCHES: LiteralString = """
  WITH newest AS (
       SELECT series.id, series.machine_id, series.variant, of_series.*,
              dense_rank() OVER (ORDER BY of_series.ordered_at, of_series.commit_id) - 1 AS place
         FROM series, LATERAL (
              SELECT ordered_at, commit_id, value, log_ratio
                FROM reading
               WHERE series_id = series.id
               ORDER BY ordered_at DESC, commit_id DESC
               LIMIT %(last)s) of_series
        WHERE series.case_id = %(case)s AND series.metric = %(metric)s AND series.machine_id = ANY (%(machines)s))
SELECT machine_id, variant, array_agg(place ORDER BY place), array_agg(value ORDER BY place),
       array_agg(log_ratio ORDER BY place)
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


def sketches_of(case_id: int, metric: str, machine_ids: Collection[int], *, last: int) -> Query[Sequence[Sketch]]:
    """The newest commits of a case in one metric on several machines. Index: ix_reading_series_history."""
    values = {"case": case_id, "metric": metric, "machines": list(machine_ids), "last": last}
    return Query(_SKETCHES, values, lambda rows: [*map(Sketch._make, rows)])

"""Sketches of a case in one metric on several machines, for small charts side by side."""

from collections.abc import Collection, Sequence
from itertools import starmap
from typing import Final, LiteralString, NamedTuple

import numpy as np

from pullback_service.statements import Query, numbers_sent

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
SELECT machine_id, variant, string_agg(int8send(place) || float8send(value) || float8send(coalesce(log_ratio, 'NaN')), '' ORDER BY place)
  FROM newest
 GROUP BY id, machine_id, variant
"""
_SENT: Final = np.dtype([("place", ">i8"), ("value", ">f8"), ("log_ratio", ">f8")])


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
    return Query(_SKETCHES, values, lambda rows: [*starmap(_sketch, rows)], width=3)


def _sketch(machine_id: int, variant: str, marks: bytes) -> Sketch:
    sent = np.frombuffer(marks, _SENT)
    return Sketch(machine_id, variant, sent["place"].tolist(), sent["value"].tolist(), numbers_sent(sent["log_ratio"]))

"""Sketches of a case in one metric on several machines, for small charts side by side."""

from collections.abc import Collection, Sequence
from typing import Final, LiteralString, NamedTuple

import numpy as np

from pullback_service.statements import Query, Rows, numbers_sent

_SKETCHES: LiteralString = """
SELECT series.machine_id, series.variant, drawn.marks
  FROM series, LATERAL (
       SELECT string_agg(timestamptz_send(ordered_at) || int8send(commit_id) || float8send(value)
                         || float8send(coalesce(log_ratio, 'NaN')), ''
                         ORDER BY ordered_at, commit_id) AS marks
         FROM (SELECT ordered_at, commit_id, value, log_ratio
                 FROM reading
                WHERE series_id = series.id
                ORDER BY ordered_at DESC, commit_id DESC
                LIMIT %(last)s) newest) drawn
 WHERE series.case_id = %(case)s AND series.metric = %(metric)s AND series.machine_id = ANY (%(machines)s)
       AND drawn.marks IS NOT NULL
"""
_SENT: Final = np.dtype([("ordered_at", ">i8"), ("commit", ">i8"), ("value", ">f8"), ("log_ratio", ">f8")])


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
    return Query(_SKETCHES, values, _sketches, width=3)


def _sketches(rows: Rows) -> list[Sketch]:
    """Commits are numbered here: Postgres takes 2 ms to do that to 2,000 readings."""
    found = [*rows]
    sent = np.frombuffer(b"".join(marks for *_, marks in found), _SENT)
    commits, first, which = np.unique(sent["commit"], return_index=True, return_inverse=True)
    places = np.lexsort((commits, sent["ordered_at"][first])).argsort()[which]
    starts = np.cumsum([len(marks) // _SENT.itemsize for *_, marks in found[:-1]], dtype=np.intp)
    return [
        Sketch(machine_id, variant, place.tolist(), marks["value"].tolist(), numbers_sent(marks["log_ratio"]))
        for (machine_id, variant, _), place, marks in zip(
            found, np.split(places, starts), np.split(sent, starts), strict=False
        )
    ]

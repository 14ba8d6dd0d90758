"""The readings of a commit on a machine, with the names of their series."""

from collections.abc import Mapping
from typing import Any, Final, LiteralString, NamedTuple

from pullback_service import statements
from pullback_service.ids import MachineId
from pullback_service.readings.reading import COLUMNS, Reading
from pullback_service.statements import Query

MOST: Final = 20_000
"""Readings of a page that shows two hundred cases."""


class SeriesReading(NamedTuple):
    """A reading and what names its series within a case."""

    variant: str
    kind: str | None
    metric: str
    unit: str | None
    direction: str
    exact: bool
    reading: Reading


class CaseReadings(NamedTuple):
    """A case as reports name it, with its readings."""

    case: Mapping[str, Any]
    readings: list[SeriesReading]


_AT: Final[LiteralString] = f"""
SELECT "case".label, "case".workload, "case".params, "case".dtype, "case".device, series.variant, series.variant_kind, series.metric,
       series.unit, series.direction, series.exact, {COLUMNS}
  FROM reading
  JOIN series ON series.id = reading.series_id
  JOIN "case" ON "case".id = series.case_id
 WHERE reading.commit_id = %(commit)s AND series.machine_id = %(machine)s
 ORDER BY "case".workload, "case".natural_label, series.variant, series.metric
 LIMIT %(most)s
"""  # noqa: S608 - our own words


def readings_of_commit(commit_id: int, machine_id: MachineId) -> Query[Mapping[str, CaseReadings]]:
    """The readings at a commit on a machine, by case. Index: pk_reading, pk_series, pk_case."""

    def read(rows: statements.Rows) -> Mapping[str, CaseReadings]:
        found: dict[str, CaseReadings] = {}
        for label, workload, params, dtype, device, *of_series in rows:
            case = {"workload": workload, "params": params, "dtype": dtype, "device": device}
            its = found.setdefault(label, CaseReadings(case, []))
            its.readings.append(SeriesReading._make([*of_series[:6], Reading.of(of_series[6:])]))
        return found

    return Query(_AT, {"commit": commit_id, "machine": machine_id, "most": MOST}, read)

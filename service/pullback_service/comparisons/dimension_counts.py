"""Counts of compared series by the values of each dimension of their cases, made by Postgres: pages show a dozen of thousands."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, LiteralString

import numpy as np

from pullback_service import statements
from pullback_service.comparisons.judgements import NaturalOrder
from pullback_service.comparisons.vectorized_judging import Ids
from pullback_service.series.filters import PARAM
from pullback_service.statements import Query, Rows

MOST_VALUES: Final = 200
"""The most values of a dimension, those with most series, then those of the first cases by name: a parameter may have a different value in each of 20,000 cases."""

# Sorted by numbers: comparing names and values takes Postgres as long again as everything else, 80 ms for 20,000 cases.
_COUNTS: Final[LiteralString] = """
  WITH compared AS MATERIALIZED (
       SELECT number, workload, device, dtype, params, series
         FROM unnest(%(cases)s::bigint[], %(series)s::bigint[]) WITH ORDINALITY counted (id, series, number) JOIN "case" USING (id)),
       every (name, value, series, first, place) AS (
       SELECT 'workload', to_jsonb(workload), sum(series), min(number), -1 FROM compared GROUP BY workload
        UNION ALL
       SELECT 'device', to_jsonb(device), sum(series), min(number), -1 FROM compared WHERE device IS NOT NULL GROUP BY device
        UNION ALL
       SELECT 'dtype', to_jsonb(dtype), sum(series), min(number), -1 FROM compared WHERE dtype IS NOT NULL GROUP BY dtype
        UNION ALL
       SELECT %(param)s || key, value, sum(series), min(number), min(place)
         FROM compared, jsonb_each(params) WITH ORDINALITY each (key, value, place)
        GROUP BY key, value),
       ranked AS (
       SELECT *, count(*) OVER of_name AS values, min(first) OVER of_name AS seen,
              row_number() OVER (PARTITION BY name COLLATE "C" ORDER BY series DESC, first) AS rank
         FROM every
       WINDOW of_name AS (PARTITION BY name COLLATE "C"))
SELECT name, value, series::bigint, values FROM ranked WHERE rank <= %(most)s ORDER BY seen, place, name COLLATE "C", rank
"""


@dataclass(slots=True)
class DimensionCounts:
    """The values of a dimension that most series have, as JSON has them, each with their number; and how many values there are."""

    values: int = 0
    listed: list[tuple[Any, int]] = field(default_factory=list)


def case_dimensions(case_id: Ids, names: NaturalOrder) -> Query[Mapping[str, DimensionCounts]]:
    """The dimensions of the cases of so many series, by the names that addresses use. Index: pk_case."""
    ids, series = np.unique(case_id, return_counts=True)
    by_name = names.of_cases(ids).argsort()
    values = {
        "cases": statements.array_of(ids[by_name].tolist()),
        "series": statements.array_of(series[by_name].tolist()),
        "param": PARAM,
        "most": MOST_VALUES,
    }
    return Query(_COUNTS, values, _dimensions, width=4)


def _dimensions(rows: Rows) -> Mapping[str, DimensionCounts]:
    result: dict[str, DimensionCounts] = {}
    for name, value, series, values in rows:
        of_name = result.setdefault(name, DimensionCounts(values))
        of_name.listed.append((value, series))
    return result

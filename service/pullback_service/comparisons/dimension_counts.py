"""Counts of compared series by the values of each dimension of their cases, made by Postgres: pages show a dozen of thousands."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, LiteralString

import numpy as np

from pullback_service import statements
from pullback_service.comparisons.vectorized_judging import Ids
from pullback_service.series.filters import PARAM
from pullback_service.statements import Query, Rows

MOST_VALUES: Final = 200
"""Of a dimension, those of most series: a parameter may have another value in each of 20,000 cases."""

# 1 and 1.0 are equal to Postgres, and two values to whoever reads them in an address.
_COUNTS: Final[LiteralString] = """
SELECT name, value, series, values
  FROM (SELECT name, value, series, first, place,
               count(*) OVER of_name AS values,
               min(first) OVER of_name AS name_first,
               row_number() OVER (PARTITION BY name ORDER BY series DESC, value, written) AS rank
          FROM (SELECT told.name, told.value, told.value::text AS written, sum(counted.series) AS series,
                       min(counted.id) AS first, min(told.place) AS place
                  FROM unnest(%(cases)s::bigint[], %(series)s::bigint[]) counted (id, series)
                  JOIN "case" USING (id),
                       LATERAL (VALUES ('workload', to_jsonb(workload), -3), ('device', to_jsonb(device), -2), ('dtype', to_jsonb(dtype), -1)
                                UNION ALL
                                SELECT %(param)s || key, each.value, place
                                  FROM jsonb_each(params) WITH ORDINALITY each (key, value, place)) told (name, value, place)
                 WHERE told.value IS NOT NULL
                 GROUP BY told.name, told.value, written) grouped
        WINDOW of_name AS (PARTITION BY name)) ranked
 WHERE rank <= %(most)s
 ORDER BY name_first, place, rank
"""


@dataclass(slots=True)
class DimensionCounts:
    """The values of a dimension that most series have, as JSON has them, each with their number; and how many values there are."""

    values: int = 0
    listed: list[tuple[Any, int]] = field(default_factory=list)


def case_dimensions(case_id: Ids) -> Query[Mapping[str, DimensionCounts]]:
    """The dimensions of the cases of so many series, by the names that addresses use. Index: pk_case."""
    ids, series = np.unique(case_id, return_counts=True)
    values = {
        "cases": statements.array_of(ids.tolist()),
        "series": statements.array_of(series.tolist()),
        "param": PARAM,
        "most": MOST_VALUES,
    }
    return Query(_COUNTS, values, _dimensions, width=4)


def _dimensions(rows: Rows) -> Mapping[str, DimensionCounts]:
    result: dict[str, DimensionCounts] = {}
    for name, value, series, values in rows:
        of_name = result.setdefault(name, DimensionCounts(values))
        of_name.listed.append((value, int(series)))
    return result

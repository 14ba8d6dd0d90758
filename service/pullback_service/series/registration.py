"""Making cases and series that are missing, many at a time and safe against others who do the same.

What exists is read first: in the steady state an upload makes nothing, and reading takes no locks and burns no ids.
Rows are inserted in one order for everybody, so that two uploads never wait for each other in a circle.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import orjson
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.ids import CaseId, MachineId, ProjectId, SeriesId
from pullback_service.series.case_identity import CasePart, SeriesPart

_CASES_AND_SERIES = """
SELECT c.identity, c.id, s.machine_id, s.variant, s.metric, s.id, s.unit, s.direction, s.exact
  FROM unnest(%(identities)b::bytea[], %(machines)b::bigint[]) AS given (identity, machine_id)
  JOIN "case" c ON c.project_id = %(project)s AND c.identity = given.identity
  LEFT JOIN series s ON s.case_id = c.id AND s.machine_id = given.machine_id
"""

# An array for each column: 10,000 rows take a fifth of the time that they take as so many tuples of parameters. What is
# made is answered, so that nothing is read again but what somebody else made meanwhile. JSON goes as text, for arrays of
# it have no NULL.
_MAKE_CASES = """
INSERT INTO "case" (project_id, identity, workload, params, dtype, device, label)
SELECT %(project)s, identity, workload, params::jsonb, dtype, device, label
  FROM unnest(%(identities)b::bytea[], %(workloads)s::text[], %(params)s::text[], %(dtypes)s::text[],
              %(devices)s::text[], %(labels)s::text[])
       AS given (identity, workload, params, dtype, device, label)
ON CONFLICT DO NOTHING RETURNING identity, id
"""
_MAKE_SERIES = """
INSERT INTO series (project_id, case_id, machine_id, variant, variant_kind, metric, unit, direction, exact)
SELECT %(project)s, case_id, machine_id, variant, variant_kind, metric, unit, direction, exact <> 0
  FROM unnest(%(cases)s::bigint[], %(machines)s::bigint[], %(variants)s::text[], %(kinds)s::text[], %(metrics)s::text[],
              %(units)s::text[], %(directions)s::text[], %(exact)s::int[])
       AS given (case_id, machine_id, variant, variant_kind, metric, unit, direction, exact)
ON CONFLICT DO NOTHING RETURNING case_id, variant, metric, machine_id, id
"""

SeriesKey: TypeAlias = tuple[MachineId, bytes, str, str]
"""The identity of a series in its project: machine, identity of the case, variant and metric."""


@dataclass(frozen=True, slots=True)
class KnownSeries:
    """A stored series: what cannot change about it any more."""

    id: SeriesId
    unit: str
    direction: str
    exact: bool


async def ensure_cases_and_series(
    session: AsyncSession,
    project_id: ProjectId,
    cases: Mapping[bytes, CasePart],
    series: Mapping[SeriesKey, SeriesPart],
) -> tuple[dict[bytes, CaseId], dict[SeriesKey, KnownSeries]]:
    """Ids of cases and series, made where they are missing: usual uploads miss none and ask once.

    Index: uq_case_project_id_identity, uq_series_case_id_variant_metric_machine_id.
    """
    case_ids, known = await _find(session, project_id, cases.keys(), series.keys())
    missing_cases = cases.keys() - case_ids.keys()
    if missing_cases:
        case_ids |= await _make_cases(session, project_id, [cases[identity] for identity in missing_cases])
        if case_ids.keys() != cases.keys():  # somebody else made them between our looking and our writing
            case_ids, known = await _find(session, project_id, cases.keys(), series.keys())
    missing_series = series.keys() - known.keys()
    if missing_series:
        known |= await _make_series(session, project_id, case_ids, {key: series[key] for key in missing_series})
        if not series.keys() <= known.keys():
            _, known = await _find(session, project_id, cases.keys(), series.keys())
    return case_ids, known


async def _find(
    session: AsyncSession, project_id: ProjectId, cases: Collection[bytes], series: Collection[SeriesKey]
) -> tuple[dict[bytes, CaseId], dict[SeriesKey, KnownSeries]]:
    measured: dict[tuple[bytes, MachineId | None], None] = {(case, machine): None for machine, case, _, _ in series}
    unmeasured = set(cases) - {case for case, _ in measured}
    pairs = [*measured, *((case, None) for case in unmeasured)]
    rows = await statements.rows(
        session,
        _CASES_AND_SERIES,
        {
            "project": project_id,
            "identities": [case for case, _ in pairs],
            "machines": [machine for _, machine in pairs],
        },
    )
    case_ids: dict[bytes, CaseId] = {}
    known: dict[SeriesKey, KnownSeries] = {}
    for identity, case_id, machine_id, variant, metric, series_id, unit, direction, exact in rows:
        case_ids[identity] = CaseId(case_id)
        if series_id is not None:
            known[machine_id, identity, variant, metric] = KnownSeries(SeriesId(series_id), unit, direction, exact)
    return case_ids, known


async def _make_cases(
    session: AsyncSession, project_id: ProjectId, missing: Collection[CasePart]
) -> dict[bytes, CaseId]:
    """Those that nobody else has made meanwhile."""
    parts = sorted(missing, key=lambda part: part.identity)
    made = await statements.rows(
        session,
        _MAKE_CASES,
        {
            "project": project_id,
            "identities": [part.identity for part in parts],
            "workloads": statements.array_of_texts(part.workload for part in parts),
            "params": statements.array_of_texts(orjson.dumps(part.params).decode() for part in parts),
            "dtypes": statements.array_of_texts(part.dtype for part in parts),
            "devices": statements.array_of_texts(part.device for part in parts),
            "labels": statements.array_of_texts(part.label for part in parts),
        },
    )
    return {identity: CaseId(case_id) for identity, case_id in made}


async def _make_series(
    session: AsyncSession,
    project_id: ProjectId,
    case_ids: Mapping[bytes, CaseId],
    missing: Mapping[SeriesKey, SeriesPart],
) -> dict[SeriesKey, KnownSeries]:
    """Those that nobody else has made meanwhile."""
    keys = {(case_ids[key[1]], *key[2:], key[0]): key for key in missing}
    places = sorted(keys)
    parts = [missing[keys[place]] for place in places]
    made = await statements.rows(
        session,
        _MAKE_SERIES,
        {
            "project": project_id,
            "cases": statements.array_of(case_id for case_id, _, _, _ in places),
            "variants": statements.array_of_texts(variant for _, variant, _, _ in places),
            "metrics": statements.array_of_texts(metric for _, _, metric, _ in places),
            "machines": statements.array_of(machine_id for _, _, _, machine_id in places),
            "kinds": statements.array_of_texts(part.variant_kind for part in parts),
            "units": statements.array_of_texts(part.unit for part in parts),
            "directions": statements.array_of_texts(part.direction for part in parts),
            "exact": statements.array_of(int(part.exact) for part in parts),
        },
    )
    results: dict[SeriesKey, KnownSeries] = {}
    for case_id, variant, metric, machine_id, series_id in made:
        key = keys[case_id, variant, metric, machine_id]
        part = missing[key]
        results[key] = KnownSeries(SeriesId(series_id), part.unit, part.direction, part.exact)
    return results

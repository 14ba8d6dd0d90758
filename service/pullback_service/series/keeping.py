"""Making cases and series that are missing, many at a time and safe against others who do the same.

What exists is read first: in the steady state an upload makes nothing, and reading takes no locks and burns no ids.
Rows are inserted in one order for everybody, so that two uploads never wait for each other in a circle.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.ids import CaseId, MachineId, ProjectId, SeriesId
from pullback_service.reports.parts import CasePart, SeriesPart
from pullback_service.series.models import Case, Series


@dataclass(frozen=True, slots=True)
class KnownSeries:
    """A stored series: what cannot change about it any more."""

    id: SeriesId
    unit: str
    direction: str


async def ensure_cases(
    session: AsyncSession, project_id: ProjectId, parts: Collection[CasePart]
) -> dict[bytes, CaseId]:
    """Ids of cases by identity. Index: uq_case_project_id_identity."""
    known = await _cases(session, project_id, [part.identity for part in parts])
    missing = sorted((part for part in parts if part.identity not in known), key=lambda part: part.identity)
    if missing:
        await session.execute(
            insert(Case).on_conflict_do_nothing(),
            [
                {
                    "project_id": project_id,
                    "identity": part.identity,
                    "workload": part.document.workload,
                    "params": part.document.params,
                    "dtype": part.document.dtype,
                    "device": part.document.device,
                    "label": part.label,
                }
                for part in missing
            ],
        )
        known |= await _cases(session, project_id, [part.identity for part in missing])
    return known


async def _cases(session: AsyncSession, project_id: ProjectId, identities: Sequence[bytes]) -> dict[bytes, CaseId]:
    rows = await session.execute(
        select(Case.identity, Case.id).where(Case.project_id == project_id, Case.identity == func.any(identities))
    )
    return {row.identity: CaseId(row.id) for row in rows}


async def ensure_series(
    session: AsyncSession,
    project_id: ProjectId,
    machine_id: MachineId,
    case_ids: dict[bytes, CaseId],
    parts: Collection[SeriesPart],
) -> dict[tuple[bytes, str, str], KnownSeries]:
    """Series by their key. Index: uq_series_case_id_variant_metric_machine_id."""
    wanted = {(case_ids[part.case], part.variant, part.metric): part for part in parts}
    known = await _series(session, machine_id, {case_ids[part.case] for part in parts})
    missing = sorted(key for key in wanted if key not in known)
    if missing:
        await session.execute(
            insert(Series).on_conflict_do_nothing(),
            [
                {
                    "project_id": project_id,
                    "case_id": case_id,
                    "machine_id": machine_id,
                    "variant": variant,
                    "variant_kind": wanted[case_id, variant, metric].variant_kind,
                    "metric": metric,
                    "unit": wanted[case_id, variant, metric].unit,
                    "direction": wanted[case_id, variant, metric].direction,
                    "exact": wanted[case_id, variant, metric].exact,
                }
                for case_id, variant, metric in missing
            ],
        )
        known |= await _series(session, machine_id, {case_id for case_id, _, _ in missing})
    return {part.key: known[key] for key, part in wanted.items()}


async def _series(
    session: AsyncSession, machine_id: MachineId, case_ids: Collection[CaseId]
) -> dict[tuple[CaseId, str, str], KnownSeries]:
    rows = await session.execute(
        select(Series.case_id, Series.variant, Series.metric, Series.id, Series.unit, Series.direction).where(
            Series.case_id == func.any(list(case_ids)), Series.machine_id == machine_id
        )
    )
    return {
        (CaseId(row.case_id), row.variant, row.metric): KnownSeries(SeriesId(row.id), row.unit, row.direction)
        for row in rows
    }

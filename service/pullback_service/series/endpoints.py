"""Finding series and reading their points."""

from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import TypeAdapter

from pullback_service.addresses import API
from pullback_service.database import ReadSession
from pullback_service.errors import InvalidInputError, NotFoundError
from pullback_service.fields import KnownId, Name, Time
from pullback_service.ids import SeriesId
from pullback_service.paging import Cursor, Limit, Page, page_of, read_cursor
from pullback_service.problems import documented
from pullback_service.series import queries
from pullback_service.series.pooling import point_spread
from pullback_service.series.queries import PlacedPoint, SeriesChoice, StoredSeries
from pullback_service.series.schemas import CaseSummary, PointSummary, SeriesSummary

router = APIRouter(prefix=f"{API}/series", tags=["series"])

SeriesPlace = TypeAdapter(tuple[KnownId])
PointPlace = TypeAdapter(tuple[datetime, KnownId, KnownId])


@router.get("", responses=documented(InvalidInputError))
async def list_series(
    session: ReadSession,
    project: Name | None = None,
    workload: Name | None = None,
    case: Annotated[Name | None, Query(description="Label of the case.")] = None,
    dtype: Name | None = None,
    device: Name | None = None,
    variant: Name | None = None,
    kind: Literal["tier", "peer", "external"] | None = None,
    metric: Name | None = None,
    machine: Annotated[Name | None, Query(description="Name or fingerprint.")] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Page[SeriesSummary]:
    """Series by any of their dimensions."""
    place = read_cursor(cursor, SeriesPlace)
    choice = SeriesChoice(project, workload, case, dtype, device, variant, kind, metric, machine)
    rows = await queries.list_series(session, choice, after_id=place[0] if place else None, limit=limit + 1)
    return page_of(rows, limit, item=_series_summary, key=lambda row: (row.series.id,))


@router.get("/{series_id}/points", responses=documented(NotFoundError, InvalidInputError))
async def list_points(
    session: ReadSession,
    series_id: KnownId,
    start: Annotated[Time | None, Query(description="Earliest commit, by its place in history.")] = None,
    end: Annotated[Time | None, Query(description="Latest commit, by its place in history.")] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Page[PointSummary]:
    """Measurements of one series, oldest commit first; several reports at one commit are several points."""
    series = await queries.series_by_id(session, SeriesId(series_id))
    rows = await queries.points(
        session, SeriesId(series.id), start=start, end=end, after=read_cursor(cursor, PointPlace), limit=limit + 1
    )
    return page_of(
        rows,
        limit,
        item=_point_summary,
        key=lambda row: (row.point.ordered_at, row.point.commit_id, row.point.id),
    )


def _series_summary(stored: StoredSeries) -> SeriesSummary:
    series = stored.series
    return SeriesSummary(
        id=series.id,
        project=stored.project,
        case=CaseSummary.model_validate(stored.case),
        variant=series.variant,
        kind=series.variant_kind,
        metric=series.metric,
        unit=series.unit,
        direction="smaller" if series.direction == "smaller" else "bigger",
        exact=series.exact,
        machine=stored.machine.name,
        machine_fingerprint=stored.machine.fingerprint,
    )


def _point_summary(placed: PlacedPoint) -> PointSummary:
    point = placed.point
    return PointSummary(
        commit=placed.commit,
        ordered_at=point.ordered_at,
        report_id=point.report_id,
        value=point.value,
        spread=point_spread(point),
        process_values=point.process_values,
        baseline=point.baseline,
        log_ratio=point.log_ratio,
        low=point.low,
        high=point.high,
        n=point.n,
        outcome=point.outcome,
        quality=point.quality,
        method=point.method,
        program_hash=point.program_hash,
    )

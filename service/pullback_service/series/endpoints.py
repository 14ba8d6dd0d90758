"""Finding series and reading their points."""

from dataclasses import replace
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import TypeAdapter
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.addresses import API
from pullback_service.answers import UNCHANGED, KnownAnswering
from pullback_service.commits.naming import branch_by_name, named_commit
from pullback_service.database import ReadSession
from pullback_service.errors import InvalidInputError, NotFoundError, refuse
from pullback_service.fields import KnownId, Name, Time
from pullback_service.ids import ProjectId, SeriesId
from pullback_service.paging import Cursor, Limit, Page, page_of, read_cursor, write_cursor
from pullback_service.problems import documented
from pullback_service.series import finding
from pullback_service.series.asking import ChosenSeries
from pullback_service.series.queries import series_by_id
from pullback_service.series.schemas import FacetsSummary, PointPage, PointSummary, SeriesSummary
from pullback_service.series.thinning import FEWEST_MARKS
from pullback_service.series.windows import Place, Window, marks_in, points_in

router = APIRouter(prefix=f"{API}/series", tags=["series"])

SeriesPlace = TypeAdapter(tuple[KnownId])
PointPlace = TypeAdapter(tuple[datetime, KnownId])
MOST_MARKS = 5_000
MOST_LAST = 100_000

Branch = Annotated[
    Name | None,
    Query(description="Measured at one of the 20 newest commits with results of this branch of `project`."),
]
NAMED = "Hash of a commit, 7 digits of it or more, or a branch for its newest one."


@router.get(
    "",
    operation_id="list_series",
    summary="Find series",
    response_model=Page[SeriesSummary],
    responses={**UNCHANGED, **documented(InvalidInputError, NotFoundError)},
)
async def list_series(
    session: ReadSession,
    answer: KnownAnswering,
    choice: ChosenSeries,
    branch: Branch = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """Series by any composition of their dimensions; a dimension that is repeated takes any of its values.

    `?project=demo&metric=time&variant=native&variant=fused&param.n=1000&q=dens`
    """
    place = read_cursor(cursor, SeriesPlace)
    rows = await finding.list_series(
        session, replace(choice, branch=branch), after_id=place[0] if place else None, limit=limit + 1
    )
    return answer(page_of(rows, limit, item=SeriesSummary.of, key=lambda row: (row.series.id,)))


@router.get(
    "/facets",
    operation_id="count_series",
    summary="Count series by each dimension",
    response_model=FacetsSummary,
    responses={**UNCHANGED, **documented(InvalidInputError, NotFoundError)},
)
async def count_series(
    session: ReadSession, answer: KnownAnswering, choice: ChosenSeries, branch: Branch = None
) -> Response:
    """Which values of each dimension there are under a choice of series, and how many series each of them has."""
    return answer(FacetsSummary.of(await finding.facets(session, replace(choice, branch=branch))))


@router.get(
    "/{series_id}/points",
    operation_id="list_points",
    summary="Points of a series",
    response_model=PointPage,
    responses={**UNCHANGED, **documented(NotFoundError, InvalidInputError)},
)
async def list_points(
    session: ReadSession,
    answer: KnownAnswering,
    series_id: KnownId,
    since: Annotated[Name | None, Query(alias="from", description=f"First commit. {NAMED}")] = None,
    until: Annotated[Name | None, Query(alias="to", description=f"Last commit. {NAMED}")] = None,
    start: Annotated[Time | None, Query(description="Earliest commit, by its place in history.")] = None,
    end: Annotated[Time | None, Query(description="Latest commit, by its place in history.")] = None,
    last: Annotated[int | None, Query(ge=1, le=MOST_LAST, description="The newest so many commits.")] = None,
    branch: Annotated[Name | None, Query(description="Only commits among the first parents of this branch.")] = None,
    marks: Annotated[
        int | None,
        Query(
            ge=FEWEST_MARKS,
            le=MOST_MARKS,
            description="All of the window on one page, thinned to at most so many points: of buckets of equal counts the "
            "first, the last, the lowest and the highest value and ratio, so that a plot looks the same.",
        ),
    ] = None,
    *,
    raw: Annotated[bool, Query(description="Also what each report measured, with one value per process.")] = False,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """Points of one series in a window of history, oldest commit first, one for each commit: its reports are pooled.

    Windows compose: `?from=v1.2&branch=main&last=500` are the newest 500 commits of main from v1.2 on.
    """
    series = await series_by_id(session, SeriesId(series_id))
    project_id = ProjectId(series.project_id)
    window = Window(
        since=await _place(session, project_id, since, "from"),
        until=await _place(session, project_id, until, "to"),
        start=start,
        end=end,
        last=last,
        branch_id=(await branch_by_name(session, project_id, branch)).id if branch is not None else None,
    )
    after = read_cursor(cursor, PointPlace)
    if marks is not None:
        if after is not None:
            refuse("marks", "Marks are all on one page: leave out the cursor, or `marks`.")
        shown, of = await marks_in(session, SeriesId(series.id), window, at_most=marks, raw=raw)
        thinned = of if of > len(shown) else None
        return answer(PointPage(items=[PointSummary.of(point) for point in shown], thinned_from=thinned))
    points, more = await points_in(session, SeriesId(series.id), window, after=after, limit=limit, raw=raw)
    return answer(
        PointPage(
            items=[PointSummary.of(point) for point in points], next=write_cursor(points[-1].place) if more else None
        )
    )


async def _place(session: AsyncSession, project_id: ProjectId, name: str | None, where: str) -> Place | None:
    if name is None:
        return None
    commit = (await named_commit(session, project_id, name, where=where, measured=False)).commit
    return commit.ordered_at, commit.id

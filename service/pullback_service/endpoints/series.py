"""Finding series and reading their points."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated

from fastapi import Depends, Query, Response
from pydantic import TypeAdapter
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.addresses import API
from pullback_service.commits.ref_names import branch_by_name, named_commit
from pullback_service.conditional_requests import UNCHANGED, KnownAnswering
from pullback_service.errors import InvalidInputError, NotAcceptableError, NotFoundError, refuse
from pullback_service.exports.media_types import EXPORTED
from pullback_service.exports.streaming import in_batches, send
from pullback_service.fields import KnownId, Name, Time
from pullback_service.ids import ProjectId, SeriesId
from pullback_service.paging import HIGHEST_LIMIT, Cursor, Limit, Page, read_cursor, write_cursor
from pullback_service.problems import documented
from pullback_service.projects.queries import project_by_name
from pullback_service.readings.reading import Place
from pullback_service.routers import api_router
from pullback_service.series import search
from pullback_service.series.point_stream import WalkPlace, points_of_series
from pullback_service.series.queries import series_by_id
from pullback_service.series.query_parameters import ChosenSeries
from pullback_service.series.schemas import (
    FacetsSummary,
    PointPage,
    SeriesPoint,
    SeriesSummary,
    plain_point,
    plain_series,
)
from pullback_service.series.search import StoredSeries
from pullback_service.series.tables import (
    FACETS,
    POINTS,
    RAW_POINTS,
    SERIES,
    ExportedPoint,
    FacetRow,
    exported,
    facet_rows,
)
from pullback_service.series.thinning import FEWEST_MARKS
from pullback_service.series.windows import Window, marks_in, points_in
from pullback_service.sessions import ExportForm, OpenedFile, ReadSession

router = api_router(prefix=API, tags=["series"])

SeriesPlace = TypeAdapter(tuple[KnownId])
PointPlace = TypeAdapter(tuple[datetime, KnownId])
SeriesPointPlace = TypeAdapter(tuple[KnownId, tuple[datetime, KnownId] | None])
MOST_MARKS = 5_000
MOST_LAST = 100_000
POINTS_AT_ONCE = 200
"""Points of a batch of a file: few enough for the event loop, which serves nothing else while it converts them from rows."""
NAMED = "Hash of a commit, 7 digits of it or more, or a branch for its newest one."
READING = {**EXPORTED, **UNCHANGED, **documented(InvalidInputError, NotFoundError, NotAcceptableError)}

Branch = Annotated[
    Name | None,
    Query(description="Measured at one of the 20 newest commits with results of this branch of `project`."),
]


@dataclass(frozen=True, slots=True)
class RequestedWindow:
    """A window of history as an address says it: commits by their names, a branch by its own."""

    since: str | None
    until: str | None
    branch: str | None
    rest: Window

    async def found(self, session: AsyncSession, project_id: ProjectId) -> Window:
        """The window in the history of a project."""
        return replace(
            self.rest,
            since=await _place(session, project_id, self.since, "from"),
            until=await _place(session, project_id, self.until, "to"),
            branch_id=None if self.branch is None else (await branch_by_name(session, project_id, self.branch)).id,
        )


async def _requested_window(
    since: Annotated[Name | None, Query(alias="from", description=f"First commit. {NAMED}")] = None,
    until: Annotated[Name | None, Query(alias="to", description=f"Last commit. {NAMED}")] = None,
    start: Annotated[Time | None, Query(description="Earliest commit, by its place in history.")] = None,
    end: Annotated[Time | None, Query(description="Latest commit, by its place in history.")] = None,
    last: Annotated[int | None, Query(ge=1, le=MOST_LAST, description="The newest so many commits.")] = None,
    branch: Annotated[Name | None, Query(description="Only commits among the first parents of this branch.")] = None,
) -> RequestedWindow:
    return RequestedWindow(since, until, branch, Window(start=start, end=end, last=last))


KnownWindow = Annotated[RequestedWindow, Depends(_requested_window)]
Raw = Annotated[bool, Query(description="Also what each report measured, with one value per process.")]


@router.get(
    "/series",
    operation_id="list_series",
    summary="Find series",
    response_model=Page[SeriesSummary],
    responses=READING,
)
async def list_series(
    answer: KnownAnswering,
    form: ExportForm,
    session: ReadSession,
    opened: OpenedFile,
    choice: ChosenSeries,
    branch: Branch = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """Series by any composition of their dimensions; a dimension that is repeated takes any of its values.

    `?project=demo&metric=time&variant=native&variant=fused&param.n=1000&q=dens`
    """
    choice = replace(choice, branch=branch)

    async def read(session: AsyncSession, after: int | None) -> tuple[Sequence[StoredSeries], int | None]:
        rows = await search.list_series(session, choice, after=after, limit=HIGHEST_LIMIT)
        return rows, rows[-1].series.id if len(rows) == HIGHEST_LIMIT else None

    if form is not None:
        name = choice.project or "pullback"
        return await send(form, SERIES, in_batches(session, opened, read), name=name, headers=answer.headers)
    place = read_cursor(cursor, SeriesPlace)
    rows = await search.list_series(session, choice, after=place[0] if place else None, limit=limit + 1)
    following = write_cursor((rows[limit - 1].series.id,)) if len(rows) > limit else None
    return answer.plain({"items": [*map(plain_series, rows[:limit])], "next": following})


@router.get(
    "/series/facets",
    operation_id="count_series",
    summary="Count series by each dimension",
    response_model=FacetsSummary,
    responses=READING,
)
async def count_series(
    answer: KnownAnswering,
    form: ExportForm,
    session: ReadSession,
    opened: OpenedFile,
    choice: ChosenSeries,
    branch: Branch = None,
) -> Response:
    """Count series by the values of each dimension, under a choice of series."""
    choice = replace(choice, branch=branch)

    async def read(session: AsyncSession, _: None) -> tuple[Sequence[FacetRow], None]:
        return facet_rows(await search.facets(session, choice)), None

    if form is not None:
        name = choice.project or "pullback"
        return await send(form, FACETS, in_batches(session, opened, read), name=name, headers=answer.headers)
    return answer(FacetsSummary.of(await search.facets(session, choice)))


@router.get(
    "/series/{series_id}/points",
    operation_id="list_points",
    summary="Points of a series",
    response_model=PointPage,
    responses=READING,
)
async def list_points(
    answer: KnownAnswering,
    form: ExportForm,
    session: ReadSession,
    opened: OpenedFile,
    series_id: KnownId,
    requested: KnownWindow,
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
    raw: Raw = False,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """Points of one series in a window of history, oldest commit first, one for each commit: its reports are pooled.

    Windows compose: `?from=c0ffee1&branch=main&last=500` are the newest 500 commits of main from that one on.
    """
    series = await series_by_id(session, SeriesId(series_id))
    window = await requested.found(session, ProjectId(series.project_id))

    async def read(session: AsyncSession, after: Place | None) -> tuple[Sequence[ExportedPoint], Place | None]:
        stored = (await search.series_by_ids(session, [series_id]))[series_id]
        if marks is not None:
            marks_shown, _ = await marks_in(session, SeriesId(series_id), window, at_most=marks, raw=raw)
            return exported(stored, marks_shown, raw=raw), None
        points, more = await points_in(session, SeriesId(series_id), window, after=after, limit=POINTS_AT_ONCE, raw=raw)
        return exported(stored, points, raw=raw), points[-1].reading.place if more else None

    if form is not None:
        table = RAW_POINTS if raw else POINTS
        batches = in_batches(session, opened, read)
        return await send(form, table, batches, name=f"series-{series_id}", headers=answer.headers)
    after = read_cursor(cursor, PointPlace)
    if marks is not None:
        if after is not None:
            refuse("marks", "`marks` and `cursor` cannot be combined: leave one out.")
        marks_shown, of = await marks_in(session, SeriesId(series.id), window, at_most=marks, raw=raw)
        thinned = of if of > len(marks_shown) else None
        return answer.plain({"items": [*map(plain_point, marks_shown)], "next": None, "thinned_from": thinned})
    points, more = await points_in(session, SeriesId(series.id), window, after=after, limit=limit, raw=raw)
    following = write_cursor(points[-1].reading.place) if more else None
    return answer.plain({"items": [*map(plain_point, points)], "next": following, "thinned_from": None})


@router.get(
    "/points",
    operation_id="list_points_of_series",
    summary="Points of many series",
    response_model=Page[SeriesPoint],
    responses=READING,
)
async def list_points_of_series(
    answer: KnownAnswering,
    form: ExportForm,
    session: ReadSession,
    opened: OpenedFile,
    choice: ChosenSeries,
    requested: KnownWindow,
    *,
    raw: Raw = False,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """Points of all chosen series in a window of history, series by series, then oldest commit first.

    A page may be short, or empty, and still have a `next`. `?project=demo&metric=time&last=100&format=csv`
    """
    if choice.project is None:
        refuse("project", "A window is one of the history of a project: give `project`.")
    project_id = ProjectId((await project_by_name(session, choice.project)).id)
    window = await requested.found(session, project_id)

    async def read(
        session: AsyncSession, place: tuple[WalkPlace, int] | None
    ) -> tuple[Sequence[ExportedPoint], tuple[WalkPlace, int] | None]:
        at, series = place or (None, None)
        result, following, series = await points_of_series(
            session, choice, window, at=at, limit=POINTS_AT_ONCE, raw=raw, series=series
        )
        rows = [row for stored, point in result for row in exported(stored, [point], raw=raw)]
        return rows, None if following is None else (following, series)

    if form is not None:
        table = RAW_POINTS if raw else POINTS
        return await send(form, table, in_batches(session, opened, read), name=choice.project, headers=answer.headers)
    at = read_cursor(cursor, SeriesPointPlace)
    result, following, _ = await points_of_series(session, choice, window, at=at, limit=limit, raw=raw)
    series = {stored.series.id: plain_series(stored) for stored, _ in result}
    return answer.plain(
        {
            "items": [{"series": series[stored.series.id], "point": plain_point(point)} for stored, point in result],
            "next": None if following is None else write_cursor(following),
        }
    )


async def _place(session: AsyncSession, project_id: ProjectId, name: str | None, where: str) -> Place | None:
    if name is None:
        return None
    commit = (await named_commit(session, project_id, name, where=where, measured=False)).commit
    return commit.ordered_at, commit.id

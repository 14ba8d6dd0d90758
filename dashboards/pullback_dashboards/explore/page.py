"""`/projects/{project}/explore`: series by what they are, drawn side by side. The address is the whole state."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import Depends, Query, Request, Response
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_dashboards import links
from pullback_dashboards.charts.card import WIDTH as CARD_WIDTH
from pullback_dashboards.charts.card import card
from pullback_dashboards.charts.static_chart import WIDTH, Axes, Curve, standalone
from pullback_dashboards.choices import Question, question, questions
from pullback_dashboards.explore.view import (
    MOST_DRAWN,
    SPLITS,
    ChartSeries,
    ExploreView,
    Menu,
    MenuValue,
    SeriesRow,
    charts_of,
    knows_split,
    rows_of,
)
from pullback_dashboards.history import Metric, better_above, case_order, metric_label
from pullback_dashboards.page_state import Address
from pullback_dashboards.project_redirects import redirect_to_project
from pullback_dashboards.projection_notice import note_unprojected
from pullback_dashboards.rendering import Width, csv_response, page, page_at, png_response, svg_response
from pullback_dashboards.routers import page_router
from pullback_dashboards.routing import RawNamesRoute
from pullback_dashboards.wording import factors
from pullback_service.background_threads import in_background
from pullback_service.errors import refuse
from pullback_service.ids import ProjectId, SeriesId
from pullback_service.incidents.evidence import SeriesIncident, incidents_of_series
from pullback_service.projects.queries import project_by_name
from pullback_service.series.chart_marks import drawn_points
from pullback_service.series.filters import PARAM
from pullback_service.series.query_parameters import ChosenSeries
from pullback_service.series.search import Facet, Facets, StoredSeries, facets, list_series
from pullback_service.sessions import ReadSession

router = page_router(note_unprojected, route_class=RawNamesRoute)

_LISTED = 12  # values of a menu
_WINDOWS = (30, 100, 400)
_MARKS = 200  # a curve
_OWN = ("split", "y", "last")
COLUMNS = (
    "case", "variant", "metric", "machine", "commit", "value", "unit", "factor", "low", "high", "outcome", "marks",
)  # fmt: skip

Split = Annotated[
    str, Query(max_length=210, description="Dimensions that get a chart each; empty lays all over each other.")
]
Values = Literal["relative", "absolute"]
Last = Annotated[int, Query(ge=1, le=2000)]


async def _read(
    request: Request,
    session: ReadSession,
    choice: ChosenSeries,
    project: str,
    split: Split = "metric",
    y: Values = "relative",
    last: Last = _WINDOWS[1],
) -> ExploreView:
    project_id = ProjectId((await project_by_name(session, project)).id)
    _check(split)
    address = Address(links.explore(project), request)
    counted = await facets(session, choice)
    results: list[ChartSeries] = []
    if 0 < counted.series <= MOST_DRAWN:
        stored = await list_series(session, choice, limit=MOST_DRAWN)
        results = await _points_of(session, project_id, stored, last)
    drawn, rows = await in_background.after(
        session, lambda: (charts_of(results, split=split, relative=y == "relative"), rows_of(results, project))
    )
    charts = tuple(
        replace(chart, pin_href=links.pin(address.with_all(dict(chart.alone))) if chart.alone is not None else None)
        for chart in drawn
    )
    return ExploreView(
        project=project,
        series=counted.series,
        menus=tuple(_menus(counted, address)),
        charts=charts,
        rows=rows,
        split=split,
        questions=_questions(address, counted, split, y, last) if results else (),
        clear_href=address.only(_OWN),
        words=choice.text or "",
        kept=address.without("q"),
    )


RequestedView = Annotated[ExploreView, Depends(_read)]
_PATH = "/projects/{project:path}/explore"


@router.get("/explore")
async def explore_somewhere(request: Request, session: ReadSession) -> Response:
    """Redirect to the requested project, or to the one with the latest upload; without projects, an empty page with the reason."""
    nothing = "This page draws any series of a project, chosen by workload, variant, metric and machine."
    return await redirect_to_project(request, session, links.explore, title="Explore", nothing=nothing)


@dataclass(frozen=True)
class FirstChart:
    """The first chart of the page, or why there is none."""

    curves: tuple[Curve, ...]
    axes: Axes


async def _draw(
    session: ReadSession,
    choice: ChosenSeries,
    project: str,
    split: Split = "metric",
    y: Values = "relative",
    last: Last = _WINDOWS[1],
) -> FirstChart:
    """Without the menus and their counts, for boards ask for many."""
    project_id = ProjectId((await project_by_name(session, project)).id)
    _check(split)
    stored = await list_series(session, choice, limit=MOST_DRAWN + 1)
    if not stored or len(stored) > MOST_DRAWN:
        why = "no series match" if not stored else f"more than {MOST_DRAWN} series, too many for one chart"
        return FirstChart((), Axes(f"{project}: {why}", "", 1, "", ""))
    series = await _points_of(session, project_id, stored, last)
    first = (await in_background.after(session, charts_of, series, split=split, relative=y == "relative"))[0]
    return FirstChart(first.curves, first.axes)


RequestedChart = Annotated[FirstChart, Depends(_draw)]


@router.get(_PATH + ".card.png")
async def explore_card(drawn: RequestedChart, project: str) -> Response:
    """The picture that sites show beside a link to the page."""
    axes = replace(drawn.axes, title="") if drawn.curves else drawn.axes
    draw = partial(card, drawn.axes.title, "", lambda width: standalone(drawn.curves, axes, width), of=project)
    return png_response(draw, CARD_WIDTH)


@router.get(_PATH + ".png")
async def explore_png(drawn: RequestedChart, width: Width = WIDTH) -> Response:
    """The same chart as `.svg`, for readers that show none of those."""
    return png_response(partial(standalone, drawn.curves, drawn.axes, width), 2 * width)


@router.get(_PATH + ".svg")
async def explore_svg(drawn: RequestedChart, width: Width = WIDTH) -> Response:
    """The first chart, for a README or a board."""
    return svg_response(partial(standalone, drawn.curves, drawn.axes, width))


@page_at(
    router,
    _PATH,
    RequestedView,
    csv=lambda view: csv_response(f"{view.project}-series", [_columns_of(row) for row in view.rows], COLUMNS),
)
async def explore_page(request: Request, view: RequestedView) -> Response:
    """The page."""
    formats = ("json", "csv", "md", "svg", "png", "card.png") if view.charts else ("json", "md")
    title = f"{view.series} series of {view.project}"
    compared = (row for row in view.rows if row.log_ratio is not None)
    metrics = [Metric(row.metric, row.unit, exact=False, bigger_is_better=row.bigger_is_better) for row in compared]
    return page(
        request,
        "explore.html",
        title=title,
        project=view.project,
        view=view,
        most=MOST_DRAWN,
        formats=formats,
        above_is_better=better_above(metrics, "the baseline"),
        baseline="the baseline",
    )


def _check(split: str) -> None:
    if not knows_split(split):
        refuse("split", f"Charts cannot be split by {split!r}: give one of {', '.join(SPLITS)}, or {PARAM}NAME.")


async def _points_of(
    session: AsyncSession, project_id: ProjectId, series: Sequence[StoredSeries], last: int
) -> list[ChartSeries]:
    ids = [SeriesId(stored.series.id) for stored in series]
    beside = incidents_of_series(project_id, ids)
    marks, result = await drawn_points(session, ids, last=last, at_most=_MARKS, beside=beside)
    incidents: dict[int, list[SeriesIncident]] = defaultdict(list)
    for one in result:
        incidents[one.series_id].append(one)
    return [
        ChartSeries(stored, tuple(marks[id_]), tuple(incidents[id_])) for stored, id_ in zip(series, ids, strict=True)
    ]


def _columns_of(row: SeriesRow) -> Mapping[str, Any]:
    """The row as numbers."""
    return {
        "case": row.case,
        "variant": row.variant,
        "metric": row.metric,
        "machine": row.machine,
        "commit": row.commit,
        "value": row.value,
        "unit": row.unit,
        **factors.columns_of(row),
        "outcome": row.outcome,
        "marks": row.points,
    }


def _menus(counted: Facets, address: Address) -> Iterator[Menu]:
    for facet in counted.facets:
        if facet.dimension == "project" or not facet.values:
            continue
        yield _menu(facet, address)


def _menu(facet: Facet, address: Address) -> Menu:
    name = facet.dimension
    chosen = address.chosen(name)
    values = sorted(facet.values, key=lambda pair: (-pair[1], case_order(pair[0])))
    listed = [pair for place, pair in enumerate(values) if place < _LISTED or pair[0] in chosen]
    offered = tuple(
        MenuValue(
            text=metric_label(value) if name == "metric" else value,
            count=count,
            href=address.dropped(name, value) if value in chosen else address.replaced(name, value),
            chosen=value in chosen,
            also_href=address.added(name, value) if chosen and value not in chosen else None,
        )
        for value, count in listed
    )
    return Menu(name, name.removeprefix(PARAM), offered, facet.values_in_all - len(listed))


def _questions(address: Address, counted: Facets, split: str, y: Values, last: int) -> tuple[Question, ...]:
    parameters = [facet.dimension for facet in counted.facets if facet.dimension.startswith(PARAM)]
    splits = [*SPLITS, *(name for name in parameters if name not in SPLITS)]
    told = [(name.removeprefix(PARAM), address.replaced("split", name), name == split) for name in splits]
    return questions(
        question("one chart per", [*told, ("none: overlay", address.replaced("split", ""), not split)]),
        question(
            "values",
            (
                (text, address.replaced("y", None if value == "relative" else value), value == y)
                for value, text in (("relative", "÷ baseline"), ("absolute", "absolute"))
            ),
        ),
        question(
            "commits",
            ((f"newest {count}", address.replaced("last", str(count)), count == last) for count in _WINDOWS),
        ),
    )

"""`/projects/{project}/workloads/{workload}`: the page of one workload."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any

from fastapi import Depends, Request, Response
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_dashboards import links
from pullback_dashboards.charts.card import WIDTH as CARD_WIDTH
from pullback_dashboards.charts.card import card
from pullback_dashboards.charts.static_chart import WIDTH
from pullback_dashboards.choices import Question, question, questions
from pullback_dashboards.history import better_above
from pullback_dashboards.overview.view import bracket
from pullback_dashboards.projection_notice import note_unprojected
from pullback_dashboards.rendering import Width, csv_response, json_response, page, page_at, png_response, svg_response
from pullback_dashboards.routers import page_router
from pullback_dashboards.routing import RawNamesRoute
from pullback_dashboards.wording import factors
from pullback_dashboards.workload.cells import cell
from pullback_dashboards.workload.figure import heights, workload_figure
from pullback_dashboards.workload.machines import Machines
from pullback_dashboards.workload.sources import WorkloadData, find
from pullback_dashboards.workload.static_charts import chart, spoken_of, stills, workload_badge
from pullback_dashboards.workload.view import CHOICES, State, WorkloadView, beside_time, workload_view
from pullback_service.background_threads import in_background
from pullback_service.errors import MissingObject, NotFoundError
from pullback_service.ids import ProjectId
from pullback_service.projects.queries import project_by_name
from pullback_service.sessions import ReadSession

router = page_router(note_unprojected, route_class=RawNamesRoute)

COLUMNS = (
    "commit", "authored_at", "author", "title", "case", "variant", "metric", "factor", "low", "high", "groups",
    "outcome", "value", "unit", "since", "since_reason", "failure",
)  # fmt: skip
_WORDS = {
    "order": "commits", "date": "dates", "auto": "auto", "absolute": "absolute", "first": "÷ first commit", "parent": "÷ parent",
    "100": "newest 100", "500": "500", "5000": "5,000",
}  # fmt: skip


@dataclass(frozen=True)
class WorkloadPage:
    """The view, and the questions that lead to the page's other states."""

    view: WorkloadView
    machine: str
    questions: tuple[Question, ...]
    machines: Machines | None
    lacking: str | None = None
    earlier: str | None = None
    later: str | None = None


async def _view(
    session: AsyncSession,
    project: str,
    workload: str,
    state: State,
    *,
    curves_alone: bool = False,
) -> tuple[WorkloadView, WorkloadData]:
    project_id = ProjectId((await project_by_name(session, project)).id)
    data = await find(session, project_id, project, workload, state, curves_alone=curves_alone)
    view = await in_background.after(
        session,
        workload_view,
        data.history,
        project=project,
        workload=workload,
        state=data.state,
        counts=data.counts,
        others=data.told,
        thinned=data.thinned,
    )
    if state.page > view.pages:
        raise NotFoundError(
            f"There is no page {state.page}: the table has {view.pages}, choose one of them.",
            missing=MissingObject("page", str(state.page)),
        )
    return view, data


async def _read_curves(
    project: str, workload: str, session: ReadSession, state: Annotated[State, Depends()]
) -> WorkloadView:
    view, _ = await _view(session, project, workload, state, curves_alone=True)
    return view


async def _read(project: str, workload: str, session: ReadSession, state: Annotated[State, Depends()]) -> WorkloadPage:
    return _asked(*await _view(session, project, workload, state), state)


def _asked(view: WorkloadView, data: WorkloadData, state: State) -> WorkloadPage:
    def numbered(number: int) -> str:
        return links.workload(view.project, view.workload, **state.parameters(page=number)) + "#table-title"

    return WorkloadPage(
        view,
        data.machine,
        _questions(state, data, view),
        data.side_by_side,
        lacking=data.lacking,
        earlier=numbered(state.page + 1) if state.page < view.pages else None,
        later=numbered(state.page - 1) if state.page > 1 else None,
    )


RequestedCurves = Annotated[WorkloadView, Depends(_read_curves)]
RequestedPage = Annotated[WorkloadPage, Depends(_read)]
_PATH = "/projects/{project:path}/workloads/{workload:path}"


@router.get(_PATH + ".figure.json")
async def workload_figure_json(requested: RequestedPage) -> Response:
    """The figure that the page's script draws."""
    return json_response(await in_background(workload_figure, requested.view))


@router.get(_PATH + ".badge.svg")
async def workload_badge_svg(curves: RequestedCurves, variant: str | None = None) -> Response:
    """The newest commit's result of a variant, as a badge."""
    return svg_response(partial(workload_badge, curves, variant or spoken_of(curves)))


@router.get(_PATH + ".card.png")
async def workload_card(requested: RequestedPage) -> Response:
    """The picture that sites show beside a link to the page."""
    view = requested.view
    words = "; ".join(f"{each.variant}: {each.words}" for each in view.lede) or "Across commits, as measured."
    draw = partial(card, view.case or view.workload, words, lambda width: chart(view, width=width), of=view.project)
    return png_response(draw, CARD_WIDTH)


@router.get(_PATH + ".png")
async def workload_png(curves: RequestedCurves, plot: str | None = None, width: Width = WIDTH) -> Response:
    """The same chart as `.svg`, for readers that show none of those."""
    return png_response(partial(chart, curves, plot, width), 2 * width)


@router.get(_PATH + ".svg")
async def workload_svg(curves: RequestedCurves, plot: str | None = None, width: Width = WIDTH) -> Response:
    """A metric against the baseline across commits, as a chart for a README or a board: time, unless `plot` names another."""
    return svg_response(partial(chart, curves, plot, width))


@page_at(
    router,
    _PATH,
    RequestedPage,
    csv=lambda view: csv_response(f"{view.view.workload}", _table(view.view), COLUMNS),
    also=(links.PAGE,),
)
async def workload_page(request: Request, requested: RequestedPage) -> Response:
    """The page."""
    return page(
        request,
        "workload.html",
        title=requested.view.workload,
        project=requested.view.project,
        **vars(requested),
        cell=partial(cell, requested.view),
        pins=_pins(requested.view, requested.machine),
        badge_of=spoken_of(requested.view),
        against_baseline=requested.view.compares,
        baseline=requested.view.baseline,
        above_is_better=better_above((plot.metric for plot in requested.view.plots), requested.view.baseline)
        if requested.view.compares
        else "",
        scripts=("copy.js",),
        figure=heights(requested.view) if requested.view.commits else None,
        stills=partial(stills, requested.view) if requested.view.commits else tuple,
        formats=("json", "csv", "md", "svg", "png", "card.png", "badge.svg"),
    )


def _pins(view: WorkloadView, machine: str) -> tuple[tuple[str, str], ...]:
    """Every plot by its label, with the address that pins it: as it is, whatever becomes the first case or machine."""
    return tuple(
        (
            plot.metric.label,
            links.pin(
                links.workload(
                    view.project,
                    view.workload,
                    case=view.case,
                    machine=machine,
                    memory=plot.metric.name if plot.metric.name != "time" else None,
                    plot=plot.metric.name,
                )
            ),
        )
        for plot in view.plots
    )


def _questions(current: State, data: WorkloadData, view: WorkloadView) -> tuple[Question, ...]:
    def ask(label: str, key: str, answers: Sequence[tuple[str, str]], chosen: str | None) -> Question:
        def address(value: str) -> str:
            keeps = key != "machine" or value in data.with_case
            state = replace(current, page=1, case=current.case if keeps else None)
            return links.workload(data.project, data.workload, **state.parameters(**{key: value}))

        return question(label, ((text, address(value), value == chosen) for value, text in answers))

    def among(label: str, key: str) -> Question:
        values = [value for value in CHOICES[key] if value != "relative" or view.compares]
        words = {**_WORDS, "relative": f"÷ {view.baseline}"}
        return ask(label, key, [(value, words.get(value, value)) for value in values], getattr(view.state, key))

    return questions(
        ask("case", "case", [(case, bracket(case, data.workload)) for case in data.cases], data.state.case),
        ask("machine", "machine", [(name, name) for name in data.machines], data.machine),
        ask(
            beside_time(data.memory),
            "memory",
            [(metric.name, metric.label) for metric in data.memory],
            data.state.memory,
        ),
        among("values", "y"),
        among("along", "x"),
        among("scale", "scale"),
        among("commits", "last"),
    )


def _table(view: WorkloadView) -> Iterator[dict[str, Any]]:
    """One row per commit, metric and variant, newest commit first, as the page's table has them."""
    for row in view.rows:
        for plot in view.plots:
            for variant in view.variants:
                mark = row.marks.get(f"{variant} {plot.metric.name}")
                if mark is None:
                    continue
                yield {
                    "commit": row.commit.sha,
                    "authored_at": row.commit.authored_at.isoformat() if row.commit.authored_at else None,
                    "author": row.commit.author,
                    "title": row.commit.title,
                    "case": view.case,
                    "variant": variant,
                    "metric": plot.metric.name,
                    **factors.columns_of(mark.ratio),
                    "groups": mark.groups,
                    "outcome": mark.outcome,
                    "value": mark.value,
                    "unit": plot.metric.unit,
                    "since": mark.since_number,
                    "since_reason": mark.since_reason,
                    "failure": mark.failure,
                }

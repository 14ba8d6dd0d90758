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
from pullback_dashboards.routing import WholeNames
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

router = page_router(note_unprojected, route_class=WholeNames)

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
    found = await find(session, project_id, project, workload, state, curves_alone=curves_alone)
    view = await in_background.after(
        session,
        workload_view,
        found.history,
        project=project,
        workload=workload,
        state=found.state,
        counts=found.counts,
        others=found.told,
        thinned=found.thinned,
    )
    if state.page > view.pages:
        raise NotFoundError(
            f"There is no page {state.page}: the table has {view.pages}, choose one of them.",
            missing=MissingObject("page", str(state.page)),
        )
    return view, found


async def _read_curves(
    project: str, workload: str, session: ReadSession, state: Annotated[State, Depends()]
) -> WorkloadView:
    view, _ = await _view(session, project, workload, state, curves_alone=True)
    return view


async def _read(project: str, workload: str, session: ReadSession, state: Annotated[State, Depends()]) -> WorkloadPage:
    return _asked(*await _view(session, project, workload, state), state)


def _asked(view: WorkloadView, found: WorkloadData, state: State) -> WorkloadPage:
    def numbered(number: int) -> str:
        return links.workload(view.project, view.workload, **state.parameters(page=number)) + "#table-title"

    return WorkloadPage(
        view,
        found.machine,
        _questions(state, found, view),
        found.side_by_side,
        lacking=found.lacking,
        earlier=numbered(state.page + 1) if state.page < view.pages else None,
        later=numbered(state.page - 1) if state.page > 1 else None,
    )


RequestedCurves = Annotated[WorkloadView, Depends(_read_curves)]
RequestedPage = Annotated[WorkloadPage, Depends(_read)]
_PATH = "/projects/{project:path}/workloads/{workload:path}"


@router.get(_PATH + ".figure.json")
async def workload_figure_json(asked: RequestedPage) -> Response:
    """The figure that the page's script draws."""
    return json_response(await in_background(workload_figure, asked.view))


@router.get(_PATH + ".badge.svg")
async def workload_badge_svg(asked: RequestedCurves, variant: str | None = None) -> Response:
    """The newest commit's result of a variant, as a badge."""
    return svg_response(partial(workload_badge, asked, variant or spoken_of(asked)))


@router.get(_PATH + ".card.png")
async def workload_card(asked: RequestedPage) -> Response:
    """The picture that sites show beside a link to the page."""
    view = asked.view
    words = "; ".join(f"{said.variant}: {said.words}" for said in view.lede) or "Across commits, as measured."
    draw = partial(card, view.case or view.workload, words, lambda width: chart(view, width=width), of=view.project)
    return png_response(draw, CARD_WIDTH)


@router.get(_PATH + ".png")
async def workload_png(asked: RequestedCurves, plot: str | None = None, width: Width = WIDTH) -> Response:
    """The same chart as `.svg`, for readers that show none of those."""
    return png_response(partial(chart, asked, plot, width), 2 * width)


@router.get(_PATH + ".svg")
async def workload_svg(asked: RequestedCurves, plot: str | None = None, width: Width = WIDTH) -> Response:
    """A metric against the baseline across commits, as a chart for a README or a board: time, unless `plot` names another."""
    return svg_response(partial(chart, asked, plot, width))


@page_at(
    router,
    _PATH,
    RequestedPage,
    csv=lambda view: csv_response(f"{view.view.workload}", _table(view.view), COLUMNS),
    also=(links.PAGE,),
)
async def workload_page(request: Request, asked: RequestedPage) -> Response:
    """The page."""
    return page(
        request,
        "workload.html",
        title=asked.view.workload,
        project=asked.view.project,
        **vars(asked),
        cell=partial(cell, asked.view),
        pins=_pins(asked.view, asked.machine),
        badge_of=spoken_of(asked.view),
        against_baseline=asked.view.compares,
        baseline=asked.view.baseline,
        above_is_better=better_above((plot.metric for plot in asked.view.plots), asked.view.baseline)
        if asked.view.compares
        else "",
        scripts=("copy.js",),
        figure=heights(asked.view) if asked.view.commits else None,
        stills=partial(stills, asked.view) if asked.view.commits else tuple,
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


def _questions(asked: State, found: WorkloadData, view: WorkloadView) -> tuple[Question, ...]:
    def ask(label: str, key: str, answers: Sequence[tuple[str, str]], chosen: str | None) -> Question:
        def address(value: str) -> str:
            keeps = key != "machine" or value in found.with_case
            state = replace(asked, page=1, case=asked.case if keeps else None)
            return links.workload(found.project, found.workload, **state.parameters(**{key: value}))

        return question(label, ((text, address(value), value == chosen) for value, text in answers))

    def among(label: str, key: str) -> Question:
        values = [value for value in CHOICES[key] if value != "relative" or view.compares]
        words = {**_WORDS, "relative": f"÷ {view.baseline}"}
        return ask(label, key, [(value, words.get(value, value)) for value in values], getattr(view.state, key))

    return questions(
        ask("case", "case", [(case, bracket(case, found.workload)) for case in found.cases], found.state.case),
        ask("machine", "machine", [(name, name) for name in found.machines], found.machine),
        ask(
            beside_time(found.memory),
            "memory",
            [(metric.name, metric.label) for metric in found.memory],
            found.state.memory,
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

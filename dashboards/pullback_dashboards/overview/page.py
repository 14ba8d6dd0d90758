"""`/`: the overview of a project, named by the address or the only one."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any

from fastapi import Depends, Request, Response
from fastapi.responses import RedirectResponse
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_dashboards import links, sources
from pullback_dashboards.choices import FIRST_STEPS, EmptyPage, Question, question, questions
from pullback_dashboards.fleet.sources import fleet_now, fleet_of
from pullback_dashboards.fleet.view import Fleet
from pullback_dashboards.history import Commit, Metric, better_above, in_reading_order
from pullback_dashboards.incidents.view import IncidentLine
from pullback_dashboards.news.view import RECENTLY, News, collect_news, moves
from pullback_dashboards.overview.cache import TimedCache
from pullback_dashboards.overview.cells import cells
from pullback_dashboards.overview.incidents import COUNTED, IncidentLines
from pullback_dashboards.overview.parameters import SORTS, State, asked
from pullback_dashboards.overview.sources import (
    CASES_OF_A_WORKLOAD,
    NewestMeasurements,
    OverviewData,
    WorkloadPages,
    find,
    present_asked,
)
from pullback_dashboards.overview.view import Cell, HeatMap, Row, heat_map
from pullback_dashboards.projection_notice import note_unprojected_of_listed, notice_of
from pullback_dashboards.rendering import add_formats, csv_response, page
from pullback_dashboards.routers import page_router
from pullback_dashboards.routing import RawNamesRoute
from pullback_dashboards.wording import factors
from pullback_dashboards.wording.plurals import counted
from pullback_service import statements
from pullback_service.agents.queries import count_fleet
from pullback_service.background_threads import in_background
from pullback_service.current_settings import base_of
from pullback_service.ids import ProjectId
from pullback_service.incidents.queries import open_incidents
from pullback_service.projects.queries import list_projects, project_by_name
from pullback_service.sessions import ReadSession
from pullback_service.statements import QueryBatch

router = page_router(note_unprojected_of_listed)
named = page_router(route_class=RawNamesRoute)
"""Mounted behind the pages of projects: names may hold slashes."""

COLUMNS = (
    "workload", "case", "variant", "metric", "factor", "low", "high", "outcome", "value", "unit", "words", "doubt", "commit",
    "change", "changed_at",
)  # fmt: skip
MOST_INCIDENTS = 5
_SORTED = {"name": "name", "worst": "worst first", "best": "best first"}


@dataclass(frozen=True)
class Select:
    """A menu of the form above the heat map."""

    name: str
    label: str
    options: tuple[tuple[str, str], ...]
    """Values with what they are called."""
    chosen: str | None
    any: str | None = None


@dataclass(frozen=True)
class Filters:
    """The form above the heat map; `kept` is the rest of the state, which it carries along."""

    text: str
    changed: bool
    menus: tuple[Select, ...]
    kept: tuple[tuple[str, str], ...]
    clear: str | None


@dataclass(frozen=True)
class OverviewView:
    """The content of the overview."""

    fleet: Fleet
    incidents: tuple[IncidentLine, ...] = ()
    incidents_left_out: int = 0
    project: str | None = None
    machine: str | None = None
    commit: Commit | None = None
    commits: int = 0
    heat: HeatMap | None = None
    news: tuple[News, ...] = ()
    news_left_out: int = 0
    questions: tuple[Question, ...] = ()
    filters: Filters | None = None
    empty: EmptyPage | None = None
    paging: WorkloadPages | None = None
    pages: tuple[tuple[int | None, str | None], ...] = ()
    open_all: str | None = None
    is_measured_here: bool = True
    """True if Pullback can measure the project; else only the tool whose files were uploaded can."""


RequestedState = Annotated[State, Depends(asked)]


_SHOWN: TimedCache[OverviewView] = TimedCache(16)
"""A page of a hundred cells with their lines each: half a megabyte. It is asked for again every few seconds where it is open."""


async def _read(request: Request, session: ReadSession, state: RequestedState) -> OverviewView:
    base = base_of(request)
    projects = await list_projects(session)
    names = tuple(project.name for project in projects)
    if state.project is not None:
        listed = next((project for project in projects if project.name == state.project), None)
        project = listed or await project_by_name(session, state.project)
    elif projects:
        project = sources.newest_of(projects)
    else:
        fleet = await fleet_now(session)
        return OverviewView(fleet, empty=_nothing_yet(fleet, base))
    project_id = ProjectId(project.id)
    async with statements.together(session) as ask:
        measuring = present_asked(ask, project_id, state.machine, notice=notice_of(request))
        counts, incidents = ask(count_fleet()), ask(open_incidents(project_id, limit=COUNTED))
    fleet = await fleet_of(session, counts.value)
    if (measured := measuring()) is None:
        which = _which_project(project.name, names)
        return OverviewView(fleet, project=project.name, questions=questions(which), empty=_nothing_yet(fleet, base))
    present, lines = measured.present, IncidentLines(incidents.value[:MOST_INCIDENTS])
    places = _Places(project.name, names, measured.machine.name, tuple(each.name for each in measured.machines))
    view = await _SHOWN.get((present.key, places, state), lambda: _shown(session, present, places, state, lines.asked))
    return replace(
        view,
        fleet=fleet,
        incidents=await lines.read(session),
        incidents_left_out=max(0, len(incidents.value) - MOST_INCIDENTS),
    )


@dataclass(frozen=True)
class _Places:
    """A project and a machine, and which others there are."""

    project: str
    projects: tuple[str, ...]
    machine: str
    machines: tuple[str, ...]


async def _shown(
    session: AsyncSession,
    present: NewestMeasurements,
    places: _Places,
    state: State,
    beside: Callable[[QueryBatch], None],
) -> OverviewView:
    """All of the view but the fleet and incidents, which are asked for `beside` it."""
    data = await find(session, present, state, beside)
    news = collect_news(data.lately, RECENTLY, project=places.project, machine=state.machine)
    return OverviewView(
        Fleet(),
        project=places.project,
        machine=places.machine,
        commit=data.commits[-1],
        commits=len(data.commits),
        heat=await in_background(_heat, data, replace(state, project=places.project)),
        news=news.news,
        news_left_out=news.left_out,
        questions=questions(_which_project(places.project, places.projects)),
        filters=_filters(state, data, places.machine, places.machines),
        paging=data.paging,
        pages=_pages(state, data.paging),
        open_all=_open_all(state, data),
        is_measured_here=data.is_measured_here,
    )


def _heat(data: OverviewData, state: State) -> HeatMap:
    return heat_map(
        data.workloads,
        data.standings,
        data.commits,
        data.curves,
        variants=in_reading_order({variant for _, variant in data.standings}),
        metric=data.metric,
        means=data.means,
        opened=data.opened,
        moves=tuple(moves(data.lately, RECENTLY.commits)),
        state=state,
        most_cases=CASES_OF_A_WORKLOAD,
        toggles=not data.all_open,
    )


RequestedView = Annotated[OverviewView, Depends(_read)]


@router.get("/")
async def start(request: Request, session: ReadSession, state: RequestedState) -> Response:
    """The overview, or the list of projects where there are several and the address names none."""
    if not state.parameters() and len(await list_projects(session, limit=2)) > 1:
        return RedirectResponse(links.projects(), status_code=307)
    return await overview(request, await _read(request, session, state), state)


@router.get("/overview.md")
async def overview(request: Request, view: RequestedView, state: RequestedState) -> Response:
    """The page."""
    return page(
        request,
        "overview.html",
        title=view.project or "Overview",
        view=view,
        state=state,
        formats=("json", "csv", "md"),
        project=view.project,
        machine=state.machine,
        cells=partial(cells, view.heat) if view.heat else None,
        against_baseline=None if view.heat is None else not view.heat.groups or view.heat.compares,
        above_is_better=better_above([view.heat.metric], view.heat.baseline)
        if view.heat and view.heat.compares
        else "",
        baseline=view.heat.baseline if view.heat else None,
        scripts=("live.js", "swap.js", "cells.js", *(["copy.js"] if view.empty else [])),
    )


@named.get("/projects/{project:path}")
async def of_project(project: str, session: ReadSession) -> Response:
    """The overview at the address that one would guess."""
    return RedirectResponse(links.overview((await project_by_name(session, project)).name), status_code=307)


add_formats(
    router,
    "/overview",
    RequestedView,
    csv=lambda view: csv_response(f"{view.project or 'pullback'}-overview", _table(view), COLUMNS),
)


def _table(view: OverviewView) -> Iterator[dict[str, Any]]:
    """One row per cell of the heat map, as the page has them: of a closed workload its worst cases."""
    if view.heat is None:
        return
    for group in view.heat.groups:
        for row in ([group.summary] if group.summary and not group.rows else []) + list(group.rows):
            for cell in row.cells:
                yield _line(view.heat.metric, group.workload, row, cell)


def _line(metric: Metric, workload: str, row: Row, cell: Cell) -> dict[str, Any]:
    return {
        "workload": workload,
        "case": row.case or f"worst of {row.cases}",
        "variant": cell.variant,
        "metric": metric.name,
        **factors.columns_of(cell),
        "outcome": cell.outcome,
        "value": cell.measured,
        "unit": metric.unit,
        "words": cell.words,
        "doubt": cell.doubt,
        "commit": cell.sha,
        "change": cell.move.amount if cell.move else None,
        "changed_at": cell.move.sha if cell.move else None,
    }


def _which_project(current: str, names: Sequence[str]) -> Question:
    return question("project", ((name, links.overview(name), name == current) for name in names))


def _as_they_are(values: Sequence[str]) -> tuple[tuple[str, str], ...]:
    return tuple((value, value) for value in values)


def _metrics(data: OverviewData) -> tuple[tuple[str, str], ...]:
    """The metrics by their names in addresses; the first is what an address without one means."""
    return tuple(("" if m is data.metrics[0] else m.name, m.label) for m in data.metrics)


def _orders(data: OverviewData) -> tuple[tuple[str, str], ...]:
    if data.paging.of < 2 or not any(mean.cases for mean in data.means):  # without ratios nothing is worse
        return ()
    return tuple(("" if sort == SORTS[0] else sort, _SORTED[sort]) for sort in SORTS)


def _filters(state: State, data: OverviewData, machine: str, machines: Sequence[str]) -> Filters | None:
    """The form; None where there is nothing to choose between."""
    menus = tuple(
        menu
        for menu in (
            Select("metric", "metric", _metrics(data), "" if data.metric == data.metrics[0] else data.metric.name)
            if data.metrics
            else Select("metric", "metric", (), None),
            Select("suite", "suite", _as_they_are(data.suites), state.suite, any="all suites"),
            Select("device", "device", _as_they_are(data.devices), state.device, any="all devices"),
            Select("machine", "machine", _as_they_are(machines), machine),
            Select("sort", "order", _orders(data), "" if state.sort == SORTS[0] else state.sort),
        )
        if len(menu.options) > 1 or (menu.any and menu.chosen)
    )
    if not menus and not state.narrows and data.paging.cases < 2:
        return None
    own = {"q", "changed", "page", *(menu.name for menu in menus)}
    kept = tuple(
        (name, str(value))
        for name, told in state.parameters().items()
        if name not in own
        for value in (told if isinstance(told, tuple) else (told,))
    )
    clear = state.address(q=None, suite=None, device=None, changed=False) if state.narrows else None
    return Filters(state.q or "", state.changed, menus, kept, clear)


def _pages(state: State, paging: WorkloadPages) -> tuple[tuple[int | None, str | None], ...]:
    """Numbers with their addresses: the first, the last, and those around the present one; None is a gap."""
    if paging.pages == 1:
        return ()
    near = {1, 2, paging.pages - 1, paging.pages, paging.page - 1, paging.page, paging.page + 1}
    numbers = sorted(number for number in near if 1 <= number <= paging.pages)
    pages: list[tuple[int | None, str | None]] = []
    for before, number in zip([0, *numbers], numbers, strict=False):
        if number - before > 1:
            pages.append((None, None))
        pages.append((number, state.address(page=number)))
    return tuple(pages)


def _open_all(state: State, data: OverviewData) -> str | None:
    """The address with all workloads of the page open, or closed where any is."""
    if data.all_open:
        return None
    several = [one.workload for one in data.workloads if len(one.cases) > 1]
    return state.address(open=() if state.open else tuple(several)) if several else None


def _nothing_yet(fleet: Fleet, base: str) -> EmptyPage:
    """The next steps, in the order of what is already under way."""
    for job in fleet.running:
        how_far = f": {job.progress.done} of {job.progress.total} steps" if job.progress else ""
        return EmptyPage(
            "Waiting for the first results",
            (f"The agent is measuring commit {job.short}{how_far}.", "This page updates when they arrive."),
        )
    if fleet.queued:
        waiting = f"{counted(fleet.queued, 'job')} waiting"
        if fleet.present:
            return EmptyPage("Waiting for the first results", (f"{waiting} for the agent.",))
        return EmptyPage(
            "No results yet",
            (f"{waiting}, but no agent is online. To start one:",),
            f"pullback agent --server {base} --repository .",
        )
    return EmptyPage(
        "No results yet",
        (
            "Upload the output of a benchmark tool that you have, or measure gradients of your repository. In a clone of it:",
        ),
        FIRST_STEPS.format(base=base),
    )

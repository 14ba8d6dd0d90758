"""`/`: the overview of a project."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_dashboards import links, sources
from pullback_dashboards.choices import Empty, Question, question, questions
from pullback_dashboards.fleet.sources import fleet_now
from pullback_dashboards.fleet.view import Fleet
from pullback_dashboards.history import Commit, History, Metric
from pullback_dashboards.overview.view import LATELY, SPARK_COMMITS, HeatMap, News, heat_map, news
from pullback_dashboards.rendering import csv_twin, json_twin, page
from pullback_service.database import ReadSession
from pullback_service.errors import NotFoundError
from pullback_service.ids import MachineId, ProjectId
from pullback_service.projects.queries import list_projects, project_by_name

router = APIRouter(include_in_schema=False)

COLUMNS = (
    "workload", "case", "variant", "metric", "factor", "low", "high", "outcome", "value", "unit", "words", "commit",
)  # fmt: skip
FIRST_METRIC = "time"
_FIRST_STEPS = """pullback run --suite quick -o report.json
curl -X POST {base}/api/v1/reports -H 'content-type: application/json' --data-binary @report.json"""


@dataclass(frozen=True)
class State:
    """Everything that the address of the page decides."""

    project: str | None = None
    machine: str | None = None
    metric: str | None = None
    page: int = 1


async def _asked(
    project: str | None = None,
    machine: str | None = None,
    metric: str | None = None,
    page: Annotated[int, Query(ge=1, le=1_000_000, description="Cases come a hundred on a page.")] = 1,
) -> State:
    return State(project, machine, metric, page)


@dataclass(frozen=True)
class OverviewView:
    """What the overview shows."""

    fleet: Fleet
    project: str | None = None
    machine: str | None = None
    commit: Commit | None = None
    commits: int = 0
    heat: HeatMap | None = None
    news: tuple[News, ...] = ()
    questions: tuple[Question, ...] = ()
    empty: Empty | None = None
    cases: sources.Cases | None = None
    earlier: str | None = None
    later: str | None = None


async def _read(request: Request, session: ReadSession, state: Annotated[State, Depends(_asked)]) -> OverviewView:
    base = str(request.base_url).rstrip("/")
    fleet = await fleet_now(session)
    projects = await list_projects(session)
    if state.project is not None:
        project = await project_by_name(session, state.project)
    elif projects:
        project = sources.newest_of(projects)
    else:
        return OverviewView(fleet, empty=_nothing_yet(fleet, base))
    machines = await sources.machines_of(session, ProjectId(project.id))
    if not machines:
        asked = questions(_which_project(project.name, [p.name for p in projects]))
        return OverviewView(fleet, project=project.name, questions=asked, empty=_nothing_yet(fleet, base))
    machine = sources.chosen(machines, state.machine)
    metric = state.metric or FIRST_METRIC
    history, cases = await _history(session, ProjectId(project.id), machine.id, metric, state.page)
    if state.metric is None and history.metrics and FIRST_METRIC not in {known.name for known in history.metrics}:
        metric = history.metrics[0].name
        history, cases = await _history(session, ProjectId(project.id), machine.id, metric, state.page)
    chosen = _chosen_metric(history, state.metric)
    named = machine.name if state.machine else None  # links keep a machine only where the reader chose it
    return OverviewView(
        fleet,
        project=project.name,
        machine=machine.name,
        commit=history.commits[-1],
        commits=len(history.commits),
        heat=heat_map(history, project=project.name, metric=chosen, machine=named),
        news=news(history, project=project.name, machine=named),
        cases=cases,
        earlier=_page(state, cases.page - 1) if cases.page > 1 else None,
        later=_page(state, cases.page + 1) if cases.page < cases.pages else None,
        questions=questions(
            _which_project(project.name, [p.name for p in projects]),
            _which_machine(state, machine.name, [m.name for m in machines]),
            _which_metric(state, chosen, history.metrics),
        ),
    )


async def _history(
    session: AsyncSession, project_id: ProjectId, machine_id: MachineId, metric: str, page: int
) -> tuple[History, sources.Cases]:
    return await sources.recent_history(
        session, project_id, machine_id, metric=metric, commits=SPARK_COMMITS, lately=LATELY + 1, page=page
    )


def _page(state: State, number: int) -> str:
    page = None if number == 1 else str(number)
    return links.overview(state.project, machine=state.machine, metric=state.metric, page=page)


AskedView = Annotated[OverviewView, Depends(_read)]


@router.get("/")
async def overview(request: Request, view: AskedView) -> Response:
    """The page."""
    return page(
        request,
        "overview.html",
        title=view.project or "Overview",
        view=view,
        twins=("json", "csv"),
        feed=links.feed(view.project, machine=view.machine) if view.project else None,
        live=True,
    )


@router.get("/overview.json")
async def overview_json(view: AskedView) -> Response:
    """The same as JSON."""
    return json_twin(view)


@router.get("/overview.csv")
async def overview_csv(view: AskedView) -> Response:
    """The heat map as CSV."""
    return csv_twin(f"{view.project or 'pullback'}-overview", _table(view), COLUMNS)


def _table(view: OverviewView) -> Iterator[dict[str, Any]]:
    """One row per cell of the heat map."""
    if view.heat is None:
        return
    metric = view.heat.metric
    for group in view.heat.groups:
        for row in group.rows:
            for cell in row.cells:
                yield {
                    "workload": group.workload,
                    "case": row.case,
                    "variant": cell.variant,
                    "metric": metric.name,
                    "factor": sources.as_factor(cell.log_ratio),
                    "low": sources.as_factor(cell.low),
                    "high": sources.as_factor(cell.high),
                    "outcome": cell.outcome,
                    "value": cell.measured,
                    "unit": metric.unit,
                    "words": cell.words,
                    "commit": cell.sha,
                }


def _chosen_metric(history: History, name: str | None) -> Metric:
    known = {metric.name: metric for metric in history.metrics}
    if name is None or not known:
        return history.metrics[0] if history.metrics else Metric("time", "s", exact=False)
    if name not in known:
        raise NotFoundError(f"No metric {name!r} was measured here: there are {', '.join(known)}.")
    return known[name]


def _which_project(current: str, names: Sequence[str]) -> Question:
    return question("project", ((name, links.overview(name), name == current) for name in names))


def _which_machine(state: State, current: str, names: Sequence[str]) -> Question:
    return question(
        "machine",
        ((name, links.overview(state.project, machine=name, metric=state.metric), name == current) for name in names),
    )


def _which_metric(state: State, current: Metric, metrics: Sequence[Metric]) -> Question:
    def address(metric: Metric) -> str:
        name = None if metric is metrics[0] else metric.name
        return links.overview(state.project, machine=state.machine, metric=name)

    return question("metric", ((metric.label, address(metric), metric == current) for metric in metrics))


def _nothing_yet(fleet: Fleet, base: str) -> Empty:
    """What to do next, in the order of what is already under way."""
    for job in fleet.running:
        how_far = f": {job.progress.done} of {job.progress.total} steps" if job.progress else ""
        return Empty(
            "The first results are on their way",
            (f"The agent is measuring commit {job.short}{how_far}.", "This page fills itself when they arrive."),
        )
    if fleet.queued:
        waiting = "1 job waits" if fleet.queued == 1 else f"{fleet.queued} jobs wait"
        if fleet.present:
            return Empty("The first results are on their way", (f"{waiting} for the agent to begin.",))
        return Empty(
            "Nothing is measured yet",
            (f"{waiting}, and no agent is here to take them. This brings one:",),
            f"pullback agent --server {base} --repository .",
        )
    return Empty(
        "Nothing is measured yet",
        ("Measure a checkout and send the report, or let CI send the output of its own benchmark tool.",),
        _FIRST_STEPS.format(base=base),
    )

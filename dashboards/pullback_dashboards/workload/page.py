"""`/projects/{project}/workloads/{workload}`: the page of one workload."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response

from pullback_dashboards import links, sources
from pullback_dashboards.choices import Question, question, questions
from pullback_dashboards.history import History, Metric
from pullback_dashboards.rendering import csv_twin, json_twin, page, svg_twin
from pullback_dashboards.workload.figure import workload_figure
from pullback_dashboards.workload.still import chart, stills, workload_badge
from pullback_dashboards.workload.view import CHOICES, State, WorkloadView, workload_view
from pullback_service.database import ReadSession
from pullback_service.errors import NotFoundError
from pullback_service.ids import ProjectId
from pullback_service.projects.queries import project_by_name

router = APIRouter(include_in_schema=False)

MOST_COMMITS = 200  # of the newest; more marks than this are not told apart on a screen
COLUMNS = (
    "commit", "authored_at", "author", "title", "case", "variant", "metric", "factor", "low", "high", "groups",
    "outcome", "value", "unit", "since", "failure",
)  # fmt: skip
_WORDS = {"order": "commits", "date": "dates", "relative": "÷ unfused", "absolute": "absolute"}


@dataclass(frozen=True)
class WorkloadPage:
    """The view, and the questions that lead to the page's other states."""

    view: WorkloadView
    machine: str
    questions: tuple[Question, ...]


async def _read(project: str, workload: str, session: ReadSession, state: Annotated[State, Depends()]) -> WorkloadPage:
    known = await project_by_name(session, project)
    project_id = ProjectId(known.id)
    machines = await sources.machines_of(session, project_id)
    if not machines:
        raise NotFoundError(f"Nothing of project {project!r} has been measured yet: its first report makes this page.")
    machine = sources.chosen(machines, state.machine)
    history = await sources.workload_history(session, project_id, workload, machine.id, commits=MOST_COMMITS)
    if not history.lines:
        raise NotFoundError(f"Machine {machine.name!r} has not measured {workload!r}: choose another machine.")
    full = _completed(state, history, workload)
    view = workload_view(history, project=project, workload=workload, state=full)
    return WorkloadPage(view, machine.name, _questions(state, full, history, view, [m.name for m in machines]))


AskedPage = Annotated[WorkloadPage, Depends(_read)]
_PATH = "/projects/{project:path}/workloads/{workload:path}"


@router.get(_PATH + ".json")
async def workload_json(asked: AskedPage) -> Response:
    """The same as JSON."""
    return json_twin(asked)


@router.get(_PATH + ".csv")
async def workload_csv(asked: AskedPage) -> Response:
    """The table as CSV."""
    return csv_twin(f"{asked.view.workload}", _table(asked.view), COLUMNS)


@router.get(_PATH + ".badge.svg")
async def workload_badge_svg(asked: AskedPage, variant: str = "native") -> Response:
    """What the newest commit says of a variant, as a badge."""
    return svg_twin(workload_badge(asked.view, variant))


@router.get(_PATH + ".svg")
async def workload_svg(asked: AskedPage, plot: str | None = None) -> Response:
    """A metric against unfused across commits, as a chart for a README or a board: time, unless `plot` names another."""
    return svg_twin(chart(asked.view, plot))


@router.get(_PATH)
async def workload_page(request: Request, asked: AskedPage) -> Response:
    """The page."""
    return page(
        request,
        "workload.html",
        title=asked.view.workload,
        view=asked.view,
        questions=asked.questions,
        project=asked.view.project,
        machine=asked.machine,
        pins=_pins(asked.view, asked.machine),
        badge_of="native" if "native" in asked.view.variants else asked.view.variants[-1],
        copying=True,
        figure=workload_figure(asked.view),
        stills=stills(asked.view),
        twins=("json", "csv", "svg", "badge.svg"),
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


def _completed(state: State, history: History, workload: str) -> State:
    """The state with what the address leaves open; what it names must exist."""
    cases = history.cases(workload)
    if state.case is not None and state.case not in cases:
        raise NotFoundError(f"There is no case {state.case!r}: {workload} has {', '.join(cases)}.")
    memory = _memory_metrics(history)
    names = [metric.name for metric in memory]
    if state.memory is not None and state.memory not in names:
        raise NotFoundError(f"No metric {state.memory!r} was measured here: there are {', '.join(names) or 'none'}.")
    return State(
        case=state.case or cases[0],
        machine=state.machine,
        memory=state.memory or (names[0] if names else None),
        x=state.x,
        y=state.y,
        scale=state.scale,
    )


def _memory_metrics(history: History) -> list[Metric]:
    """Everything but time, which has a plot of its own."""
    return [metric for metric in history.metrics if metric.name != "time"]


def _questions(
    asked: State, full: State, history: History, view: WorkloadView, machines: Sequence[str]
) -> tuple[Question, ...]:
    def ask(label: str, key: str, answers: Sequence[tuple[str, str]]) -> Question:
        def address(value: str) -> str:
            return links.workload(view.project, view.workload, **asked.parameters(**{key: value}))

        chosen = getattr(full, key)
        return question(label, ((text, address(value), value == chosen) for value, text in answers))

    machine = asked.machine or machines[0]
    return questions(
        ask("case", "case", [(case, case) for case in history.cases(view.workload)]),
        question(
            "machine",
            (
                (name, links.workload(view.project, view.workload, **asked.parameters(machine=name)), name == machine)
                for name in machines
            ),
        ),
        ask("memory", "memory", [(metric.name, metric.label) for metric in _memory_metrics(history)]),
        ask("values", "y", [(value, _WORDS[value]) for value in CHOICES["y"]]),
        ask("along", "x", [(value, _WORDS[value]) for value in CHOICES["x"]]),
        ask("scale", "scale", [(value, value) for value in CHOICES["scale"]]),
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
                    "factor": sources.as_factor(mark.log_ratio),
                    "low": sources.as_factor(mark.low),
                    "high": sources.as_factor(mark.high),
                    "groups": mark.groups,
                    "outcome": mark.outcome,
                    "value": mark.value,
                    "unit": plot.metric.unit,
                    "since": mark.since,
                    "failure": mark.failure,
                }

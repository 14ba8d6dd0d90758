"""Queries of the workload page: one case on one machine across commits, and a sketch of it on the others."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from operator import attrgetter

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_dashboards import links, sources
from pullback_dashboards.history import (
    History,
    Line,
    Metric,
    Result,
    baseline_in_words,
    case_order,
    doubt_of_count,
    in_metric_order,
    with_exact_ratios,
)
from pullback_dashboards.workload.annotations import CountChange, EventSentence, incident_marks
from pullback_dashboards.workload.machines import Machines, side_by_side
from pullback_dashboards.workload.view import State
from pullback_service import statements
from pullback_service.errors import MissingObject, NotFoundError
from pullback_service.ids import ProjectId
from pullback_service.incidents.evidence import incidents_of_case
from pullback_service.models.reports import WRONG_GRADIENT
from pullback_service.readings.reading import Reading
from pullback_service.series import case_history as queries
from pullback_service.series.case_history import CaseHistory, CaseSeries
from pullback_service.series.overview_data import KnownCase
from pullback_service.series.queries import MeasuringMachine, machines_of
from pullback_service.series.sketches import Sketch, sketches_of
from pullback_service.statements import Query
from pullback_service.steps.queries import StepWithReadings, news_of

MOST_MACHINES = 12  # drawn side by side; the others are links
SKETCHED_COMMITS = 100


@dataclass(frozen=True)
class WorkloadData:
    """The data of the page. `state` is complete: everything that the address leaves open is chosen."""

    project: str
    workload: str
    state: State
    machine: str
    history: History
    counts: tuple[CountChange, ...]
    told: tuple[EventSentence, ...]
    """Incidents, at the commits at which they begin."""
    thinned: bool
    cases: tuple[str, ...]
    machines: tuple[str, ...]
    with_case: frozenset[str]
    memory: tuple[Metric, ...]
    lacking: str | None
    """The metric that was asked for, where other machines have it and this one does not."""
    side_by_side: Machines | None


async def find(
    session: AsyncSession,
    project_id: ProjectId,
    project: str,
    workload: str,
    state: State,
    *,
    curves_alone: bool = False,
) -> WorkloadData:
    """Everything for one state of the page; for images the curves alone, without what is told and shown beside them."""
    async with statements.together(session) as ask:
        measuring = ask(machines_of(project_id))
        of_workload = ask(queries.cases_of_workload(project_id, workload))
        every = ask(queries.series_of_workload(project_id, workload, case=state.case))
    machines, cases = measuring.value, of_workload.value
    if not machines:
        raise NotFoundError(f"Project {project!r} has no results yet: upload a report first.")
    if not cases:
        raise NotFoundError(
            f"No upload of this project has a workload named {workload!r}.", missing=MissingObject("workload", workload)
        )
    where = {case.id: machines for case, machines in cases.items()}
    here = [machine for machine in machines if any(machine.id in where.get(case.id, ()) for case in cases)]
    machine = machine_for(here, _of_case(cases, where, state.case), project, workload, state)
    known = sorted(
        (case for case in cases if machine.id in where.get(case.id, ())), key=lambda case: case_order(case.label)
    )
    case = _chosen(known, state.case, workload)
    with_case = [one for one in here if one.id in where[case.id]]
    series = every.value.get((case.id, machine.id), ())
    memory = _memory(series)
    chosen = state.memory
    if chosen is not None and chosen not in {metric.name for metric in memory}:
        # A link of another machine brought it along: what one machine counts, another need not.
        elsewhere = (one for other in with_case for one in every.value.get((case.id, other.id), ()))
        chosen = None if any(one.metric == chosen for one in elsewhere) else chosen
    full = replace(state, case=case.label, memory=_chosen_memory(memory, chosen))
    drawn = [one.id for one in series if one.metric in {"time", full.memory}]
    beside = None if curves_alone else _beside(case, with_case, machine, series, full)
    async with statements.together(session) as ask:
        newest = queries.newest_of_case(ask, case.id, machine.id, drawn, last=int(state.last))
        sketches = None if beside is None else ask(beside.query)
        known_incidents = None if curves_alone else ask(incidents_of_case(project_id, case.id, machine.id))
    news_since = partial(news_of, [one.id for one in series])
    data, told = await queries.case_history(session, project_id, series, newest(), None if curves_alone else news_since)
    news = told or ()
    history = _as_history(data, case, series)
    if told is not None:
        history = sources.with_steps(history, news)
    places = {commit.id: place for place, commit in enumerate(data.commits)}
    return WorkloadData(
        project=project,
        workload=workload,
        state=full,
        machine=machine.name,
        history=history,
        counts=tuple(_counted(one, places[one.step.commit_id]) for one in _changes(news, data, places)),
        told=() if known_incidents is None else tuple(incident_marks(known_incidents.value, places)),
        thinned=data.thinned,
        cases=tuple(one.label for one in known),
        machines=tuple(one.name for one in here),
        with_case=frozenset(one.name for one in with_case),
        memory=memory,
        lacking=state.memory if chosen != state.memory else None,
        side_by_side=side_by_side(
            sketches.value,
            {int(one.id): one.name for one in beside.drawn},
            [one.name for one in with_case if one not in beside.drawn],
            metric=beside.metric,
            project=project,
            workload=workload,
            state=full,
            current=machine.name,
            baseline=baseline_in_words(line.baseline for line in history.lines),
        )
        if beside is not None and sketches is not None and sketches.value
        else None,
    )


def _changes(
    news: Iterable[StepWithReadings], data: CaseHistory, places: Mapping[int, int]
) -> Iterator[StepWithReadings]:
    """Counts that differ from those of the commit that was followed, oldest first; what failed counted nothing."""
    failed = {(failure.commit.id, failure.variant) for failure in data.failures if failure.kind == WRONG_GRADIENT}
    for one in sorted(news, key=lambda one: (one.place, one.series.variant, one.series.metric)):
        at = one.step.commit_id
        is_wrong = bool(failed & {(at, None), (at, one.series.variant)})
        if at in places and one.step.via != "compared" and one.series.exact and not is_wrong and _differs(one):
            yield one


def _differs(one: StepWithReadings) -> bool:
    return one.before is not None and one.now is not None and one.before.value != one.now.value


def _counted(one: StepWithReadings, place: int) -> CountChange:
    assert one.before is not None and one.now is not None  # noqa: S101, PT018 - its counts differ
    series = one.series
    metric = Metric(series.metric, series.unit, series.exact, series.direction == "bigger")
    doubt = doubt_of_count(one.judgement)
    return CountChange(place, series.variant, metric, one.before.value, one.now.value, doubt)


def _of_case(cases: Iterable[KnownCase], where: Mapping[int, frozenset[int]], label: str | None) -> frozenset[int]:
    """The machines that have the case that was asked for; none where none was, or nobody has it."""
    return frozenset().union(*(where.get(case.id, frozenset()) for case in cases if case.label == label))


def machine_for(
    here: Sequence[MeasuringMachine], of_case: frozenset[int], project: str, workload: str, state: State
) -> MeasuringMachine:
    """The machine asked for, or the first of those that have the workload, and of these one that has the case."""
    if not here:
        raise NotFoundError(
            f"No machine has results of {workload!r} any more: upload a new report.",
            missing=MissingObject("workload", workload),
        )
    if state.machine is None:
        return next((one for one in here if one.id in of_case), here[0])
    for one in here:
        if one.name == state.machine:
            return one
    instead = [
        {"text": one.name, "address": links.workload(project, workload, **state.parameters(machine=one.name, page=1))}
        for one in [one for one in here if one.id in of_case] or here
    ]
    raise NotFoundError(
        f"Machine {state.machine!r} has not measured {workload!r}: choose another machine.",
        members={"instead": instead[:MOST_MACHINES]},
        missing=MissingObject("machine", state.machine),
    )


def _as_history(data: CaseHistory, case: KnownCase, series: Sequence[CaseSeries]) -> History:
    places = {commit.id: place for place, commit in enumerate(data.commits)}
    readings = {id_: [*group] for id_, group in groupby(data.readings, key=attrgetter("series_id"))}
    lines = [(case.id, _line(data, case, one, readings[one.id], places)) for one in series if one.id in readings]
    told = sources.with_failures(lines, data.failures, places)
    commits = tuple(map(sources.commit_of, data.commits))
    return with_exact_ratios(History(commits, tuple(told), follows=data.follows, measured=data.measured))


def _line(
    data: CaseHistory, case: KnownCase, series: CaseSeries, readings: Iterable[Reading], places: Mapping[int, int]
) -> Line:
    """The line of a series; that of a thinned history knows what its readings followed.

    What a commit of another branch was made from need not be drawn there: it is not known.
    """
    results: list[Result | None] = [None] * len(places)
    previous: dict[int, Reading | None] = {}
    for reading in readings:
        place = places[reading.commit_id]
        results[place] = reading
        if not data.thinned:
            continue
        if reading.commit_id in data.parted:
            previous[place] = None
        elif (pair := (reading.series_id, reading.commit_id)) in data.before:
            previous[place] = data.before[pair]
    return Line(case.workload, case.label, series.variant, _metric(series), tuple(results), previous=previous)


@dataclass(frozen=True)
class _MachineCharts:
    """The machines that are drawn side by side, in which metric, and the query of it."""

    drawn: Sequence[MeasuringMachine]
    metric: Metric
    query: Query[Sequence[Sketch]]


def _beside(
    case: KnownCase,
    machines: Sequence[MeasuringMachine],
    machine: MeasuringMachine,
    series: Sequence[CaseSeries],
    state: State,
) -> _MachineCharts | None:
    """The case on every machine that has it, the present one among them; None where it is the only one."""
    metrics = in_metric_order({_metric(one) for one in series})
    if len(machines) < 2 or not metrics:
        return None
    drawn = list(machines[:MOST_MACHINES])
    if machine not in drawn:
        drawn[-1] = machine
    last = min(int(state.last), SKETCHED_COMMITS)
    return _MachineCharts(
        drawn, metrics[0], sketches_of(case.id, metrics[0].name, [one.id for one in drawn], last=last)
    )


def _chosen(cases: Sequence[KnownCase], label: str | None, workload: str) -> KnownCase:
    for case in cases:
        if label in {None, case.label}:
            return case
    raise NotFoundError(
        f"There is no case {label!r}: {workload} has {', '.join(case.label for case in cases[:20])}"
        f"{' and others' if len(cases) > 20 else ''}.",
        missing=MissingObject("case", label or ""),
    )


def _memory(series: Sequence[CaseSeries]) -> tuple[Metric, ...]:
    """Everything but time, which has a plot of its own."""
    return in_metric_order({_metric(one) for one in series if one.metric != "time"})


def _chosen_memory(memory: Sequence[Metric], name: str | None) -> str | None:
    names = [metric.name for metric in memory]
    if name is not None and name not in names:
        remedy = f"choose one of {', '.join(names)}" if names else "leave it out"
        raise NotFoundError(
            f"No metric {name!r} was measured here: {remedy}.",
            missing=MissingObject("metric", name),
        )
    return name or (names[0] if names else None)


def _metric(series: CaseSeries) -> Metric:
    return Metric(series.metric, series.unit, series.exact, series.direction == "bigger")

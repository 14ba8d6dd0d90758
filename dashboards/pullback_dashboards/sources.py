"""Reads the history that pages draw, by the service's queries. The only file here with effects; views compute."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_dashboards.history import (
    Claim,
    Commit,
    Failure,
    History,
    Line,
    Metric,
    Pair,
    Result,
    variant_of_failures,
)
from pullback_dashboards.rerun_commands import EXTERNAL
from pullback_service import statements
from pullback_service.comparisons.judging import Judgement
from pullback_service.errors import MissingObject, NotFoundError
from pullback_service.ids import ProjectId
from pullback_service.models.projects import Project
from pullback_service.models.reports import WRONG_GRADIENT
from pullback_service.projects.queries import list_projects
from pullback_service.readings.reading import Reading
from pullback_service.series import queries
from pullback_service.series.overview_data import KnownCase, KnownMetric, LineReading
from pullback_service.series.queries import CommitFacts, FailedCase, MeasuringMachine
from pullback_service.steps.queries import StepSeries, StepWithReadings


async def machines_of(session: AsyncSession, project_id: ProjectId) -> Sequence[MeasuringMachine]:
    """The machines with results of a project, the one with the newest commit first."""
    return await statements.answer(session, queries.machines_of(project_id))


def newest_of(projects: Iterable[Project]) -> Project:
    """The project that was uploaded to last."""
    return max(projects, key=lambda p: (p.last_report_at is not None, p.last_report_at or p.created_at))


async def newest_project(session: AsyncSession) -> Project | None:
    """The project of which a page speaks when its address names none."""
    projects = await list_projects(session)
    return newest_of(projects) if projects else None


def commit_of(facts: CommitFacts) -> Commit:
    """A commit as pages name it."""
    return Commit(facts.sha, facts.title, facts.author, facts.authored_at, facts.branch, facts.id)


def with_steps(history: History, steps: Iterable[StepWithReadings]) -> History:
    """The history with what is stored of its steps, and what uploads say of its commits.

    What is timed of an engine's peers moves with the machine alone, and is left out.
    """
    places = {commit.id: place for place, commit in enumerate(history.commits)}
    known = [one for one in steps if one.step.commit_id in places]
    return replace(
        history,
        verdicts=dict(
            _verdict(one)
            for one in known
            if one.now is not None and one.before is not None and (one.series.exact or one.series.is_subject)
        ),
        claims=tuple(claim_of(one, places[one.step.commit_id]) for one in reversed(known) if one.is_claim),
    )


def _verdict(one: StepWithReadings) -> tuple[Pair, Judgement]:
    assert one.before is not None and one.now is not None  # noqa: S101, PT018 - whoever asks has looked
    reports = one.before.report_id, one.now.report_id
    return (one.series.case, one.series.variant, one.series.metric, *reports), one.judgement


def lines_of_news(
    steps: Iterable[StepWithReadings],
    measured: Iterable[LineReading],
    failures: Sequence[FailedCase],
    places: Mapping[int, int],
) -> tuple[Line, ...]:
    """Lines that hold both ends of each step, and what else was measured of some series; each knows what is judged."""
    ends: dict[tuple[int, int], LineReading] = {}
    follows: dict[_Key, dict[int, int]] = {}
    external: set[_Key] = set()
    for one in steps:
        key = one.series.case_id, one.series.variant, one.series.metric
        if one.series.kind == EXTERNAL:
            external.add(key)
        if one.step.via in {"parent", "history"} and one.step.reference_id in places:
            follows.setdefault(key, {})[places[one.step.commit_id]] = places[one.step.reference_id]
        for reading in (one.before, one.now):
            if reading is not None:
                ends[reading[:2]] = _line_reading(one.series, reading)
    ends |= {each.reading[:2]: each for each in measured}
    lines = _lines(list(ends.values()), failures, places)
    named = {(case_id, line.variant, line.metric.name): line for case_id, line in lines}
    return tuple(
        replace(line, follows=follows.get(key, {}), is_external=key in external) for key, line in named.items()
    )


def _line_reading(series: StepSeries, reading: Reading) -> LineReading:
    case = KnownCase(series.case_id, series.workload, series.case)
    return LineReading(case, series.variant, KnownMetric(series.metric, *series[5:8]), reading)


_Key = tuple[int, str, str]
_TIME = Metric("time", "s", exact=False)


def _lines(
    measured: Sequence[LineReading],
    failures: Sequence[FailedCase],
    places: Mapping[int, int],
) -> list[tuple[int, Line]]:
    results: dict[_Key, list[Result | None]] = {}
    about: dict[_Key, tuple[str, str, str, Metric]] = {}
    for case, variant, known, reading in measured:
        if reading.commit_id not in places:  # came while the page was read
            continue
        key = (case.id, variant, known.name)
        if key not in about:
            metric = Metric(known.name, known.unit, known.exact, known.direction == "bigger")
            about[key] = (case.workload, case.label, variant, metric)
            results[key] = [None] * len(places)
        results[key][places[reading.commit_id]] = reading
    lines = [(key[0], Line(*about[key], results=tuple(row))) for key, row in results.items()]
    return _with_failures(lines, failures, places)


def with_failures(
    lines: Iterable[tuple[int, Line]], failures: Iterable[FailedCase], places: Mapping[int, int]
) -> list[Line]:
    """Lines, each with the id of its case, and what failed of that at the `places` of its commits.

    A case that never ran has a line of the variant that failed. Labels do not tell cases apart: n=1 and n="1" read alike.
    """
    return [line for _, line in _with_failures(lines, failures, places)]


def _with_failures(
    lines: Iterable[tuple[int, Line]], failures: Iterable[FailedCase], places: Mapping[int, int]
) -> list[tuple[int, Line]]:
    """The same with the ids."""
    struck = [(case_id, line, [*line.results]) for case_id, line in lines]
    of_cases: dict[int, list[tuple[str, list[Result | None]]]] = {}
    for case_id, line, row in struck:
        of_cases.setdefault(case_id, []).append((line.variant, row))
    unnamed = variant_of_failures({line.variant for _, line, _ in struck})
    for failure in failures:
        place = places.get(failure.commit.id)
        if place is None:
            continue
        of_case = of_cases.setdefault(failure.case.id, [])
        rows = [row for variant, row in of_case if failure.variant in {None, variant}]
        if not rows:
            nothing = (None,) * len(places)
            never = Line(failure.case.workload, failure.case.label, failure.variant or unnamed, _TIME, nothing)
            rows = [[*nothing]]
            struck.append((failure.case.id, never, rows[0]))
            of_case.append((never.variant, rows[0]))
        for row in rows:
            if row[place] is None or failure.kind == WRONG_GRADIENT:  # whatever another report measured of it
                row[place] = Failure(failure.message, str(failure.report_id))
    return [(case_id, replace(line, results=tuple(row))) for case_id, line, row in struck]


def claim_of(known: StepWithReadings, place: int) -> Claim:
    """The claim about the commit at a place and another one, which an upload compared."""
    series, judgement = known.series, known.judgement
    return Claim(
        place=place,
        workload=series.workload,
        case=series.case,
        variant=series.variant,
        metric=series.metric,
        reference=known.reference.sha,
        outcome=judgement.outcome,
        ratio=judgement.ratio,
        provisional=judgement.provisional,
        bigger_is_better=series.direction == "bigger",
        reason=judgement.reason or "",
    )


def chosen(machines: Sequence[MeasuringMachine], name: str | None) -> MeasuringMachine:
    """The machine of that name, or the one with the newest commit."""
    if name is None:
        return machines[0]
    for machine in machines:
        if machine.name == name:
            return machine
    known = ", ".join(machine.name for machine in machines)
    raise NotFoundError(
        f"No machine {name!r} has measured this project: choose one of {known}.", missing=MissingObject("machine", name)
    )

"""From the service's queries to the history that pages draw. Effects at the rim: this file asks, the views compute."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_dashboards.history import (
    Claim,
    Commit,
    History,
    Line,
    Metric,
    Pair,
    Reading,
    counts_differ,
    with_exact_ratios,
)
from pullback_service.claims import BASELINE
from pullback_service.comparisons.queries import Compared
from pullback_service.comparisons.steps import Step
from pullback_service.errors import Missing, NotFoundError
from pullback_service.ids import MachineId, ProjectId
from pullback_service.projects.models import Project
from pullback_service.projects.queries import list_projects
from pullback_service.readings.pooling import CLEAN
from pullback_service.readings.reading import Mark
from pullback_service.readings.reading import Reading as StoredReading
from pullback_service.reports.parts import WRONG_GRADIENT
from pullback_service.series import queries
from pullback_service.series.overviewing import LineReading, StatedComparison
from pullback_service.series.queries import CommitFacts, FailedCase, MeasuringMachine


async def machines_of(session: AsyncSession, project_id: ProjectId) -> Sequence[MeasuringMachine]:
    """The machines with results of a project, the one with the newest commit first."""
    return await queries.measuring_machines(session, project_id)


def newest_of(projects: Iterable[Project]) -> Project:
    """The project that was uploaded to last."""
    return max(projects, key=lambda p: (p.last_report_at is not None, p.last_report_at or p.created_at))


async def newest_project(session: AsyncSession) -> Project | None:
    """The project of which a page speaks when its address names none."""
    projects = await list_projects(session)
    return newest_of(projects) if projects else None


def as_history(
    commits: Sequence[CommitFacts], measured: Sequence[LineReading], failures: Sequence[FailedCase]
) -> History:
    """What was measured and what failed at some commits, oldest first."""
    places = {commit.id: place for place, commit in enumerate(commits)}
    return with_exact_ratios(History(tuple(map(commit_of, commits)), tuple(_lines(measured, failures, places))))


def commit_of(facts: CommitFacts) -> Commit:
    """A commit as pages name it."""
    return Commit(facts.sha, facts.title, facts.author, facts.authored_at, facts.branch, facts.id)


def steps_of_counts(history: History, case_ids: Mapping[str, int], machine_id: MachineId) -> Mapping[Pair, Step]:
    """Every step of a line at which a count is another than before, by what a view knows of it."""
    steps = {}
    for line in history.lines:
        for place, now in enumerate(line.readings) if line.metric.exact else ():
            if now is None:
                continue
            at, before = history.reading_before(line, place, failed=False)
            older, newer = history.commits[at].id, history.commits[place].id
            if before is None or not counts_differ(line.metric, before, now) or older is None or newer is None:
                continue
            pair = line.case, line.variant, line.metric.name, str(before.report), str(now.report)
            steps[pair] = Step((case_ids[line.case], machine_id, line.variant, line.metric.name), older, newer)
    return steps


def steps_of_claims(stated: Iterable[StatedComparison], machine_id: MachineId) -> Mapping[StatedComparison, Step]:
    """The steps of which uploads state how both commits compare."""
    return {
        one: Step((one.case.id, machine_id, one.variant, one.metric), one.reference_id, one.candidate_id)
        for one in stated
    }


def with_judgements(
    history: History,
    counts: Mapping[Pair, Step],
    claims: Mapping[StatedComparison, Step],
    judged: Mapping[Step, Compared],
) -> History:
    """The history with what may be said of its steps."""
    places = {commit.id: place for place, commit in enumerate(history.commits)}
    return replace(
        history,
        verdicts={pair: judged[step].judgement for pair, step in counts.items() if step in judged},
        claims=tuple(
            claim_of(one, judged[step], places[one.candidate_id]) for one, step in claims.items() if step in judged
        ),
    )


_Key = tuple[int, str, str]
_TIME = Metric("time", "s", exact=False)


def _lines(
    measured: Sequence[LineReading], failures: Sequence[FailedCase], places: Mapping[int, int]
) -> Iterable[Line]:
    readings: dict[_Key, list[Reading | None]] = {}
    about: dict[_Key, tuple[str, str, str, Metric]] = {}
    for case, variant, known, reading in measured:
        if reading.commit_id not in places:  # came while the page was read
            continue
        key = (case.id, variant, known.name)
        if key not in about:
            metric = Metric(known.name, known.unit, known.exact, known.direction == "bigger")
            about[key] = (case.workload, case.label, variant, metric)
            readings[key] = [None] * len(places)
        readings[key][places[reading.commit_id]] = shown_reading(reading)
    lines = [(key[0], Line(*about[key], readings=tuple(row))) for key, row in readings.items()]
    return with_failures(lines, failures, places)


def with_failures(
    lines: Iterable[tuple[int, Line]], failures: Iterable[FailedCase], places: Mapping[int, int]
) -> list[Line]:
    """Lines, each with the id of its case, and what failed of that at the `places` of its commits.

    A case that never ran has a line of the variant that failed. Labels do not tell cases apart: n=1 and n="1" read alike.
    """
    struck = [(case_id, line, [*line.readings]) for case_id, line in lines]
    for failure in failures:
        place = places.get(failure.commit.id)
        if place is None:
            continue
        rows = [
            row
            for case_id, line, row in struck
            if case_id == failure.case.id and failure.variant in {None, line.variant}
        ]
        if not rows:
            nothing = (None,) * len(places)
            never = Line(failure.case.workload, failure.case.label, failure.variant or BASELINE, _TIME, nothing)
            rows = [[*nothing]]
            struck.append((failure.case.id, never, rows[0]))
        for row in rows:
            if row[place] is None or failure.kind == WRONG_GRADIENT:  # whatever another report measured of it
                row[place] = Reading(failure=f"{failure.message}", report=str(failure.report_id))
    return [replace(line, readings=tuple(row)) for _, line, row in struck]


def claim_of(stated: StatedComparison, judged: Compared, place: int) -> Claim:
    """What may be said of the commit at a place, of which an upload states something."""
    judgement = judged.judgement
    return Claim(
        place=place,
        workload=stated.case.workload,
        case=stated.case.label,
        variant=stated.variant,
        metric=stated.metric,
        reference=stated.reference,
        outcome=judgement.outcome,
        log_ratio=judgement.log_ratio,
        low=judgement.low,
        high=judgement.high,
        groups=judgement.n,
        provisional=judgement.provisional,
        bigger_is_better=judged.bigger_is_better,
        reason=judgement.reason or "",
    )


def shown_reading(reading: StoredReading, *, previous: Reading | None = None) -> Reading:
    """A reading as views know it."""
    return Reading(
        reading.value,
        reading.log_ratio,
        reading.low,
        reading.high,
        reading.n,
        reading.outcome,
        reading.quality != CLEAN,
        reading.dirty,
        None,
        reading.report_id,
        previous,
        program_hash=reading.program_hash,
    )


def shown_mark(mark: Mark) -> Reading:
    """The same of a mark, which says less."""
    return Reading(mark.value, mark.log_ratio, mark.low, mark.high, None, mark.outcome)


def chosen(machines: Sequence[MeasuringMachine], name: str | None) -> MeasuringMachine:
    """The machine of that name, or the one with the newest commit."""
    if name is None:
        return machines[0]
    for machine in machines:
        if machine.name == name:
            return machine
    known = ", ".join(machine.name for machine in machines)
    raise NotFoundError(
        f"No machine {name!r} has measured this project: choose one of {known}.", missing=Missing("machine", name)
    )

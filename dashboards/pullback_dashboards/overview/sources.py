"""Queries of the overview: the standing of all chosen cases, lines of those that are shown, and recent changes.

All cases of a project may be thousands. Of these only the newest numbers are read, as plain rows; the lines behind the
sparklines are read for the cases on the page, of closed workloads for the worst ones.
"""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, LiteralString, TypeAlias

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_dashboards import sources
from pullback_dashboards.history import (
    Commit,
    Curve,
    Failure,
    History,
    Metric,
    in_metric_order,
    outcome_against,
    variant_of_failures,
)
from pullback_dashboards.news.sources import changes_at
from pullback_dashboards.news.view import RECENTLY, changed_cases
from pullback_dashboards.overview.cache import TimedCache
from pullback_dashboards.overview.parameters import State
from pullback_dashboards.overview.ranking import (
    Mean,
    RankedWorkload,
    VariantResult,
    against_baseline,
    in_order,
    means,
    ranked,
)
from pullback_dashboards.overview.view import SPARK_COMMITS
from pullback_dashboards.wording.plurals import counted
from pullback_service import statements
from pullback_service.background_threads import in_background
from pullback_service.errors import MissingObject, NotFoundError
from pullback_service.ids import MachineId, ProjectId
from pullback_service.incidents.queries import SeriesChange, incident_changes_at
from pullback_service.models.reports import WRONG_GRADIENT
from pullback_service.readings.queries import marks_since, readings_at
from pullback_service.readings.reading import Mark, Place
from pullback_service.series import overview_data
from pullback_service.series.overview_data import CaseChoice, KnownCase, NewestReading
from pullback_service.series.queries import (
    CommitFacts,
    FailedCase,
    MeasuringMachine,
    commits_called,
    is_measured_here,
    machines_of,
)
from pullback_service.statements import Answer, Query, QueryBatch
from pullback_service.uploaded_claims import BASELINE

_Standings: TypeAlias = dict[tuple[str, str], tuple[Place, VariantResult]]
"""Results by case and variant, with the place of the commit."""

CELLS_ON_A_PAGE = 100  # what keeps a page under 150 kB: with five variants twenty workloads
MOST_WORKLOADS = 25
OPEN_BY_THEMSELVES = 30  # cases; so few are all shown, and workloads need not be opened
_FIRST_METRIC = "time"  # where it is measured (`in_metric_order`)
MOST_MARKS = 200_000  # of all sparklines
CASES_OF_A_WORKLOAD = 40  # shown of one that is open; words in the filter find the others


@dataclass(frozen=True)
class WorkloadPages:
    """The part of the chosen workloads that a page shows, by number from 1, and the total with the number of cases."""

    first: int
    last: int
    of: int
    cases: int
    page: int
    size: int

    @property
    def pages(self) -> int:
        """The number of pages."""
        return max(1, -(-self.of // self.size))


@dataclass(frozen=True)
class OverviewData:
    """The data of the overview."""

    commits: tuple[Commit, ...]
    curves: Mapping[tuple[str, str], Curve]
    """Curves by case and variant."""
    lately: History
    metric: Metric
    metrics: tuple[Metric, ...]
    workloads: tuple[RankedWorkload, ...]
    standings: Mapping[tuple[str, str], VariantResult]
    opened: frozenset[str]
    means: tuple[Mean, ...]
    paging: WorkloadPages
    suites: tuple[str, ...]
    devices: tuple[str, ...]
    is_measured_here: bool
    all_open: bool


_RECENT: Final = f"ARRAY (SELECT id FROM newest ORDER BY ordered_at DESC, id DESC LIMIT {RECENTLY.commits + 1})"  # noqa: S608 - a number of ours
_MACHINE: Final = "(SELECT id FROM machine_shown)"
_MACHINE_SHOWN: Final = """
SELECT id FROM machines WHERE name = coalesce(%(name)s, name) ORDER BY newest DESC, name, id LIMIT 1
"""
_LATELY: TimedCache[History] = TimedCache(16)
_STOOD: TimedCache[tuple[tuple[str, VariantResult], ...]] = TimedCache(8)
"""Thousands of standings each: some megabytes."""


@dataclass(frozen=True)
class NewestMeasurements:
    """The newest commits that a machine measured of a project, and what tells its present results from earlier ones.

    That is its newest upload and, while an older database is projected, the notice of how many commits wait.
    """

    project_id: ProjectId
    machine_id: MachineId
    commits: tuple[CommitFacts, ...]
    upload: Hashable
    notice: str = ""
    said: tuple[SeriesChange, ...] = ()
    """The states of incidents at the newest of these, which may change without any upload."""

    @cached_property
    def key(self) -> Hashable:
        """Changes with every upload, and with incidents of the newest commits."""
        ids = tuple(commit.id for commit in self.commits)
        return self.project_id, self.machine_id, self.upload, self.notice, ids, self.said


@dataclass(frozen=True)
class ProjectMeasurements:
    """The machines that measured a project, the one that is shown, and what is newest there."""

    machines: Sequence[MeasuringMachine]
    machine: MeasuringMachine
    present: NewestMeasurements


def present_asked(
    ask: QueryBatch, project_id: ProjectId, machine: str | None, *, notice: str = ""
) -> Callable[[], ProjectMeasurements | None]:
    """The machines of a project, with the newest commits and upload of the one that is named, else of the one with the newest commit.

    The notice is about commits that wait for their readings. None where nothing was measured.
    Index: as `machines_of`, `newest_commits`, `incident_changes_at`.
    """
    known = machines_of(project_id)
    newest = overview_data.newest_commits(project_id, MachineId(0), limit=SPARK_COMMITS).where(machine=_MACHINE)
    ask.give(machines=known, machine_shown=Query(_MACHINE_SHOWN, {"name": machine}, list), newest=newest)
    machines, commits = ask(known.given_as("machines")), ask(newest.given_as("newest"))
    incident_changes = ask(incident_changes_at(project_id, MachineId(0), ()).where(machine=_MACHINE, commits=_RECENT))

    def read() -> ProjectMeasurements | None:
        if not machines.value:
            return None
        shown, found = sources.chosen(machines.value, machine), commits.value
        said = tuple(incident_changes.value)
        present = NewestMeasurements(project_id, shown.id, tuple(found.commits), found.upload, notice, said)
        return ProjectMeasurements(machines.value, shown, present)

    return read


async def find(
    session: AsyncSession, present: NewestMeasurements, state: State, beside: Callable[[QueryBatch], None]
) -> OverviewData:
    """Everything for one state of the page; `beside` asks what else the page shows along with it."""
    project_id, machine_id, commits, now = present.project_id, present.machine_id, present.commits, present.key
    choice, metric_name = CaseChoice(state.q, state.suite, state.device), state.metric or _FIRST_METRIC
    chosen_cases = overview_data.cases_of(project_id, machine_id, choice)
    kept = _LATELY.kept(now)
    recent = commits_called([commit.id for commit in commits[-RECENTLY.commits - 1 :]])
    async with statements.together(session, read_in=in_background, chosen=chosen_cases) as ask:
        beside(ask)
        changes = changes_at(ask, project_id, machine_id, recent) if kept is None else lambda: kept
        known_cases = ask(chosen_cases.given_as("chosen"))
        measured = ask(overview_data.metrics_of(machine_id, ()).where(cases="ARRAY (SELECT id FROM chosen)"))
        failing = ask(overview_data.failures_at(machine_id, [commit.id for commit in commits]))
        suites = ask(overview_data.suites_of(project_id, machine_id))
        devices, is_ours = ask(overview_data.devices_of(project_id)), ask(is_measured_here(project_id))
        everything = _STOOD.kept((now, metric_name))
        if everything is None:
            newest = _newest_asked(ask, present, metric_name, known_cases if choice == CaseChoice() else None)
    failures = failing.value
    lately = kept if kept is not None else _LATELY.keep(now, await in_background(changes))
    known, of_cases = known_cases.value, measured.value
    cases = known
    if state.changed:
        moved = changed_cases(lately, RECENTLY)
        cases = [case for case in known if case.label in moved]
        of_cases = await statements.answer(session, overview_data.metrics_of(machine_id, [case.id for case in cases]))
    metrics = in_metric_order(Metric(one.name, one.unit, one.exact, one.direction == "bigger") for one in of_cases)
    metric = _chosen(metrics, state)
    if metric.name != metric_name:  # none that comes before it was measured
        everything = _STOOD.kept((now, metric.name))
        if everything is None:
            async with statements.together(session, read_in=in_background) as ask:
                newest = _newest_asked(ask, present, metric.name)
    if everything is None:
        everything = _STOOD.keep((now, metric.name), await _standings(session, *newest(), metric, failures))
    workloads, stood, averages = await in_background(_ranked, cases, everything, metric, state.sort)
    visible, paging = _page(workloads, state.page)
    all_open = paging.cases <= OPEN_BY_THEMSELVES
    opened = frozenset(one.workload for one in visible) if all_open else frozenset(state.open)
    drawn = await in_background(_drawn, visible, opened, stood)
    return OverviewData(
        commits=tuple(map(sources.commit_of, commits)),
        curves=await _curves(session, commits, drawn, metric, failures),
        lately=lately,
        metric=metric,
        metrics=metrics,
        workloads=visible,
        standings=stood,
        opened=opened,
        means=averages,
        paging=paging,
        suites=suites.value,
        devices=devices.value,
        is_measured_here=is_ours.value,
        all_open=all_open,
    )


def _ranked(
    cases: Sequence[KnownCase], everything: Sequence[tuple[str, VariantResult]], metric: Metric, order: str
) -> tuple[Sequence[RankedWorkload], Mapping[tuple[str, str], VariantResult], tuple[Mean, ...]]:
    """The workloads of some cases in order, the standings of these by case and variant, and their means."""
    chosen = {case.label for case in cases}
    stood = {(label, result.variant): result for label, result in everything if label in chosen}
    by_workload: dict[str, list[str]] = {}
    for case in cases:
        by_workload.setdefault(case.workload, []).append(case.label)
    return in_order(ranked(by_workload, stood.values(), metric), order), stood, means(stood.values(), metric)


async def _curves(
    session: AsyncSession,
    commits: Sequence[CommitFacts],
    drawn: Sequence[VariantResult],
    metric: Metric,
    failures: Sequence[FailedCase],
) -> Mapping[tuple[str, str], Curve]:
    """The curves of sparklines: ratios with their intervals, and what failed."""
    places = {commit.id: place for place, commit in enumerate(commits)}
    curves: dict[tuple[str, str], list[Mark | Failure | None]] = {
        (result.case, result.variant): [None] * len(commits) for result in drawn
    }
    of_series = {
        result.series_id: curves[result.case, result.variant] for result in drawn if result.series_id is not None
    }
    oldest = (commits[0].ordered_at, commits[0].id) if commits else None
    marks = marks_since(list(of_series), oldest, most=MOST_MARKS) if oldest and of_series else None
    for mark in [] if marks is None else await statements.answer(session, marks):
        place = places.get(mark.commit_id)
        if place is not None:
            of_series[mark.series_id][place] = mark
    by_case: dict[str, list[str]] = {}
    for case, variant in curves:
        by_case.setdefault(case, []).append(variant)
    for failure in failures:
        for variant in by_case.get(failure.case.label, ()):
            place = places.get(failure.commit.id)
            if failure.variant in {None, variant} and place is not None:
                curve = curves[failure.case.label, variant]
                curve[place] = curve[place] or Failure(failure.message)
    if metric.exact:
        for result in drawn:
            base = curves.get((result.case, result.baseline))
            if base is not None and not result.is_baseline:
                _count_against(curves[result.case, result.variant], base)
    return curves


def _count_against(curve: list[Mark | Failure | None], base: Curve) -> None:
    """Give counts their ratio to those of the baseline at the same commits."""
    for place, (mark, of_base) in enumerate(zip(curve, base, strict=True)):
        if isinstance(mark, Mark) and isinstance(of_base, Mark):
            outcome, ratio = outcome_against(mark, of_base.value)
            curve[place] = mark.against(ratio, outcome)


def _chosen(metrics: Sequence[Metric], state: State) -> Metric:
    known = {metric.name: metric for metric in metrics}
    if state.metric is None and metrics:
        return metrics[0]
    if state.metric in known:
        return known[state.metric]
    if metrics and not state.narrows:
        raise NotFoundError(
            f"No metric {state.metric!r} was measured here: choose one of {', '.join(known)}.",
            missing=MissingObject("metric", state.metric or ""),
        )
    return Metric(state.metric or "time", "s", exact=False)  # of which the chosen cases have nothing


def _newest_asked(
    ask: QueryBatch, present: NewestMeasurements, metric: str, known: Answer[Sequence[KnownCase]] | None = None
) -> Callable[[], tuple[Sequence[KnownCase], Sequence[NewestReading]]]:
    """All cases, which are asked for if they are not those that are `chosen`, and the newest reading of every series of a metric."""
    cases: LiteralString = "ARRAY (SELECT id FROM chosen)"
    if known is None:
        every = overview_data.cases_of(present.project_id, present.machine_id, CaseChoice())
        ask.give(every=every)
        known, cases = ask(every.given_as("every")), "ARRAY (SELECT id FROM every)"
    newest = ask(overview_data.standings(present.machine_id, (), metric).where(cases=cases))
    return lambda: (known.value, newest.value)


async def _standings(
    session: AsyncSession,
    cases: Sequence[KnownCase],
    points: Sequence[NewestReading],
    metric: Metric,
    failures: Sequence[FailedCase],
) -> tuple[tuple[str, VariantResult], ...]:
    """The newest of every variant of all `cases`, by the case: a number, or a failure at that commit or since."""
    baselines = await in_background(_baselines, points)
    earlier = await _earlier_baselines(session, points, baselines) if metric.exact else {}
    return await in_background(_stood, cases, points, metric, failures, baselines, earlier)


def _baselines(points: Sequence[NewestReading]) -> Mapping[int, str]:
    return {case_id: reading.baseline for case_id, _, reading in sorted(points, key=_place) if reading.baseline}


def _stood(
    cases: Sequence[KnownCase],
    points: Sequence[NewestReading],
    metric: Metric,
    failures: Sequence[FailedCase],
    baselines: Mapping[int, str],
    earlier: Mapping[tuple[int, int], float],
) -> tuple[tuple[str, VariantResult], ...]:
    labels = {case.id: case.label for case in cases}
    found: _Standings = {}
    variants: dict[str, list[str]] = {}
    for case_id, variant, newest in points:
        label, baseline = labels[case_id], baselines.get(case_id, BASELINE)
        result = VariantResult(label, variant, newest.commit_id, newest, newest.series_id, baseline)
        found[label, variant] = newest.place, result
        variants.setdefault(label, []).append(variant)
    unnamed = variant_of_failures({variant for _, variant in found})
    for failure in failures:  # oldest first
        struck = labels.get(failure.case.id)
        if struck is None:
            continue
        place = (failure.commit.ordered_at, failure.commit.id)
        named = [variant for variant in variants.get(struck, ()) if failure.variant in {None, variant}]
        for variant in named or [failure.variant or unnamed]:
            known = found.get((struck, variant))
            is_wrong = failure.kind == WRONG_GRADIENT  # whatever another report of the commit measured
            if known is None or known[0] < place or (is_wrong and known[0] == place):
                result = VariantResult(
                    struck,
                    variant,
                    failure.commit.id,
                    None,
                    series_id=known[1].series_id if known else None,
                    baseline=baselines.get(failure.case.id, BASELINE),
                    failure=failure.message,
                )
                found[struck, variant] = place, result
    base = {(labels[case_id], commit_id): value for (case_id, commit_id), value in earlier.items()}
    stood = against_baseline((one for _, one in found.values()), metric, base)
    return tuple((result.case, result) for result in stood)


def _place(stood: NewestReading) -> Place:
    return stood.reading.place


async def _earlier_baselines(
    session: AsyncSession, stood: Sequence[NewestReading], baselines: Mapping[int, str]
) -> Mapping[tuple[int, int], float]:
    """The baseline's counts at older commits than its newest, by case and commit: where another variant stands at one."""
    newest = {case_id: reading for case_id, variant, reading in stood if variant == baselines.get(case_id, BASELINE)}
    values = {
        (base.series_id, reading.commit_id): (case_id, reading.commit_id)
        for case_id, _, reading in stood
        if (base := newest.get(case_id)) is not None and base.commit_id != reading.commit_id
    }
    return {values[pair]: reading.value for pair, reading in (await readings_at(session, values)).items()}


def _page(workloads: Sequence[RankedWorkload], page: int) -> tuple[tuple[RankedWorkload, ...], WorkloadPages]:
    variants = {variant for one in workloads for variant in one.extremes}
    size = min(MOST_WORKLOADS, max(8, CELLS_ON_A_PAGE // max(1, len(variants))))
    skip = (page - 1) * size
    if page > 1 and skip >= len(workloads):
        pages = max(1, math.ceil(len(workloads) / size))
        raise NotFoundError(
            f"There is no page {page}: {counted(len(workloads), 'workload')} chosen, which fit on {counted(pages, 'page')} of {size}: choose a page up to {pages}.",
            missing=MissingObject("page", str(page)),
        )
    visible = tuple(workloads[skip : skip + size])
    cases = sum(len(one.cases) for one in workloads)
    return visible, WorkloadPages(skip + 1, skip + len(visible), len(workloads), cases, page, size)


def _drawn(
    visible: Sequence[RankedWorkload], opened: frozenset[str], stood: Mapping[tuple[str, str], VariantResult]
) -> list[VariantResult]:
    """Standings whose lines are drawn: all cases of open workloads, of closed ones the worst, with their baselines."""
    by_case: dict[str, dict[str, VariantResult]] = {}
    for result in stood.values():
        by_case.setdefault(result.case, {})[result.variant] = result
    drawn: dict[tuple[str, str], VariantResult] = {}
    for one in visible:
        if len(one.cases) == 1 or one.workload in opened:
            chosen = [s for case in one.cases[:CASES_OF_A_WORKLOAD] for s in by_case[case].values()]
        else:
            chosen = [extremes.worst for extremes in one.extremes.values()]
            chosen += [base for s in tuple(chosen) if (base := by_case[s.case].get(s.baseline))]
        drawn |= {(s.case, s.variant): s for s in chosen}
    return list(drawn.values())

"""What the overview asks of the service: how all chosen cases stand, lines of those that are shown, and what changed lately.

All cases of a project may be thousands. Of these only the newest numbers are read, as plain rows; the lines behind the
sparklines are read for the cases on the page, of closed workloads for the worst ones.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeAlias

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_dashboards import sources
from pullback_dashboards.charts.palette import BASELINE
from pullback_dashboards.history import History, Metric, Reading, in_metric_order
from pullback_dashboards.overview.ranking import (
    Mean,
    Ranked,
    Standing,
    against_baseline,
    in_order,
    means,
    ranked,
)
from pullback_dashboards.overview.state import State
from pullback_dashboards.overview.view import LATELY, SPARK_COMMITS, changed_cases
from pullback_dashboards.wording.factors import FLOOR
from pullback_service.errors import NotFoundError
from pullback_service.ids import MachineId, ProjectId
from pullback_service.series import overviewing
from pullback_service.series.overviewing import CaseChoice, KnownCase
from pullback_service.series.queries import CommitFacts, FailedCase, WorkloadHistory

_Place: TypeAlias = tuple[datetime, int]

WORKLOADS_ON_A_PAGE = 25
OPEN_BY_THEMSELVES = 30  # cases; so few are all shown, and workloads need not be opened
CASES_OF_A_WORKLOAD = 40  # shown of one that is open; words in the filter find the others


@dataclass(frozen=True)
class Paging:
    """Which of the chosen workloads a page shows, by number from 1, and of how many with how many cases."""

    first: int
    last: int
    of: int
    cases: int
    page: int

    @property
    def pages(self) -> int:
        """How many pages there are."""
        return max(1, -(-self.of // WORKLOADS_ON_A_PAGE))


@dataclass(frozen=True)
class Found:
    """What the overview is made of."""

    history: History
    lately: History
    metric: Metric
    metrics: tuple[Metric, ...]
    workloads: tuple[Ranked, ...]
    standings: Mapping[tuple[str, str], Standing]
    opened: frozenset[str]
    means: tuple[Mean, ...]
    paging: Paging
    suites: tuple[str, ...]
    devices: tuple[str, ...]
    all_open: bool


async def find(session: AsyncSession, project_id: ProjectId, machine_id: MachineId, state: State) -> Found:
    """Everything for one state of the page."""
    commits = await overviewing.measured_commits(session, project_id, machine_id, limit=SPARK_COMMITS)
    choice = CaseChoice(state.q, state.suite, state.device)
    cases = list(await overviewing.cases_of(session, project_id, machine_id, choice))
    failures = await overviewing.failures_at(session, machine_id, [commit.id for commit in commits])
    lately = await what_changed(session, machine_id, commits, failures)
    if state.changed:
        moved = changed_cases(lately)
        cases = [case for case in cases if case.label in moved]
    metrics = in_metric_order(
        Metric(known.name, known.unit, known.exact, known.direction == "bigger")
        for known in await overviewing.metrics_of(session, machine_id, [case.id for case in cases])
    )
    metric = _chosen(metrics, state)
    stood = await _standings(session, machine_id, cases, metric, failures)
    by_workload: dict[str, list[str]] = {}
    for case in cases:
        by_workload.setdefault(case.workload, []).append(case.label)
    workloads = in_order(ranked(by_workload, stood, metric), state.sort)
    shown, paging = _page(workloads, state.page)
    all_open = paging.cases <= OPEN_BY_THEMSELVES
    opened = frozenset(one.workload for one in shown) if all_open else frozenset(state.open)
    drawn = _drawn(shown, opened, stood)
    of_drawn = {standing.case for standing in drawn}
    cells = (
        await overviewing.lines_of(session, [s.series_id for s in drawn if s.series_id], commits[0]) if commits else ()
    )
    struck = [failure for failure in failures if failure.case.label in of_drawn]
    return Found(
        history=sources.as_history([WorkloadHistory(commits, cells, struck)]),
        lately=lately,
        metric=metric,
        metrics=metrics,
        workloads=shown,
        standings={(standing.case, standing.variant): standing for standing in stood},
        opened=opened,
        means=means(stood, metric),
        paging=paging,
        suites=tuple(await overviewing.suites_of(session, project_id, machine_id)),
        devices=tuple(await overviewing.devices_of(session, project_id)),
        all_open=all_open,
    )


async def what_changed(
    session: AsyncSession,
    machine_id: MachineId,
    commits: Sequence[CommitFacts],
    failures: Sequence[FailedCase],
) -> History:
    """The newest commits with the series that changed at them, what failed, and what sessions say of them."""
    recent = commits[-(LATELY + 1) :]
    ids = [commit.id for commit in recent]
    if not ids:
        return History()
    series = set(await overviewing.changed_series(session, machine_id, ids, floor=FLOOR))
    failed = [failure for failure in failures if failure.commit.id in ids]
    if failed:
        series |= set(
            await overviewing.series_named(session, machine_id, {failure.case.id for failure in failed}, "time")
        )
    cells = await overviewing.lines_of(session, series, recent[0])
    history = sources.as_history([WorkloadHistory(recent, cells, failed)])
    stated = await overviewing.comparisons_at(session, machine_id, ids)
    places = {commit.id: place for place, commit in enumerate(recent)}
    return replace(history, claims=tuple(sources.claim_of(one, places[one.candidate_id]) for one in stated))


async def lately(session: AsyncSession, project_id: ProjectId, machine_id: MachineId) -> History:
    """What changed at the newest commits of a project on a machine."""
    commits = await overviewing.measured_commits(session, project_id, machine_id, limit=LATELY + 1)
    failures = await overviewing.failures_at(session, machine_id, [commit.id for commit in commits])
    return await what_changed(session, machine_id, commits, failures)


def _chosen(metrics: Sequence[Metric], state: State) -> Metric:
    known = {metric.name: metric for metric in metrics}
    if state.metric is None and metrics:
        return metrics[0]
    if state.metric in known:
        return known[state.metric]
    if metrics and not state.narrows:
        raise NotFoundError(f"No metric {state.metric!r} was measured here: there are {', '.join(known)}.")
    return Metric(state.metric or "time", "s", exact=False)  # of which the chosen cases have nothing


async def _standings(
    session: AsyncSession,
    machine_id: MachineId,
    cases: Sequence[KnownCase],
    metric: Metric,
    failures: Sequence[FailedCase],
) -> tuple[Standing, ...]:
    """The newest of every variant: a number, or a failure at that commit or since."""
    labels = {case.id: case.label for case in cases}
    found: dict[tuple[str, str], tuple[_Place, Standing]] = {}
    for point in await overviewing.standings(session, machine_id, list(labels), metric.name):
        reading = Reading(
            point.value, point.log_ratio, point.low, point.high, point.n, point.outcome, point.quality != "clean"
        )
        label = labels[point.case_id]
        place = (point.ordered_at, point.commit_id)
        found[label, point.variant] = place, Standing(label, point.variant, point.commit_id, reading, point.series_id)
    for failure in failures:  # oldest first
        struck = labels.get(failure.case.id)
        if struck is None:
            continue
        place = (failure.commit.ordered_at, failure.commit.id)
        named = [variant for label, variant in found if label == struck and failure.variant in {None, variant}]
        for variant in named or [failure.variant or BASELINE]:
            known = found.get((struck, variant))
            if known is None or known[0] < place:
                reading = Reading(failure=failure.message, report=str(failure.report_id))
                series_id = known[1].series_id if known else None
                found[struck, variant] = place, Standing(struck, variant, failure.commit.id, reading, series_id)
    return against_baseline((standing for _, standing in found.values()), metric)


def _page(workloads: Sequence[Ranked], page: int) -> tuple[tuple[Ranked, ...], Paging]:
    skip = (page - 1) * WORKLOADS_ON_A_PAGE
    if page > 1 and skip >= len(workloads):
        pages = max(1, math.ceil(len(workloads) / WORKLOADS_ON_A_PAGE))
        raise NotFoundError(
            f"There is no page {page}: {len(workloads)} workloads are chosen, which is {pages} of {WORKLOADS_ON_A_PAGE} each."
        )
    shown = tuple(workloads[skip : skip + WORKLOADS_ON_A_PAGE])
    cases = sum(len(one.cases) for one in workloads)
    return shown, Paging(skip + 1, skip + len(shown), len(workloads), cases, page)


def _drawn(shown: Sequence[Ranked], opened: frozenset[str], stood: Sequence[Standing]) -> list[Standing]:
    """Standings whose lines are drawn: all cases of open workloads, of closed ones the worst, with their baselines."""
    by_case: dict[str, dict[str, Standing]] = {}
    for standing in stood:
        by_case.setdefault(standing.case, {})[standing.variant] = standing
    drawn: dict[tuple[str, str], Standing] = {}
    for one in shown:
        if len(one.cases) == 1 or one.workload in opened:
            chosen = [s for case in one.cases[:CASES_OF_A_WORKLOAD] for s in by_case[case].values()]
        else:
            chosen = [extremes.worst for extremes in one.extremes.values()]
            chosen += [base for s in tuple(chosen) if (base := by_case[s.case].get(BASELINE))]
        drawn |= {(s.case, s.variant): s for s in chosen}
    return list(drawn.values())

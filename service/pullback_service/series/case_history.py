"""One case across commits on one machine: its series in some metrics, thinned where commits are more than marks.

Of more commits than marks, value, ratio and interval of every reading are read first, and only the readings that are drawn in
full.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby, pairwise
from operator import attrgetter
from typing import LiteralString, TypeVar

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.commits.predecessors import followed_in, places_followed
from pullback_service.ids import MachineId, ProjectId
from pullback_service.measured_code.code_identity import CodeIdentity
from pullback_service.measured_code.queries import measured_by_id
from pullback_service.readings.queries import newest_marks, newest_readings, readings_of_pairs
from pullback_service.readings.reading import Mark, Place, Reading
from pullback_service.series.overview_data import KnownCase
from pullback_service.series.queries import (
    FAILURE_WIDTH,
    FAILURES,
    MOST_FAILURES,
    CommitFacts,
    FailedCase,
    commits_called,
    failed_cases,
)
from pullback_service.series.thinning import thin
from pullback_service.statements import Query, QueryBatch, Rows

T = TypeVar("T")

MOST_COMMITS = 5_000
MOST_MARKS = 1_000
"""The most marks of one series. This is about the width of a plot in pixels; M4 keeps four or six points for each of its buckets."""


@dataclass(frozen=True, slots=True)
class CaseSeries:
    """A series of a case on a machine."""

    case_id: int
    machine_id: int
    id: int
    variant: str
    metric: str
    unit: str
    direction: str
    exact: bool


@dataclass(frozen=True)
class CaseHistory:
    """Commits of a window, oldest first, with the readings that are to be drawn.

    Readings come series by series and then oldest first. `thinned`: there are more than these, and `before` has the
    reading before each of them by (series, commit). `follows` says by their places which commit another follows, where
    that is not the one before it; -1 where it lies before the window. It is known where that is wanted. `measured` says by
    id what readings were measured of.
    """

    commits: Sequence[CommitFacts]
    readings: Sequence[Reading]
    failures: Sequence[FailedCase]
    before: Mapping[tuple[int, int], Reading]
    thinned: bool
    follows: Mapping[int, int]
    measured: Mapping[int, CodeIdentity] = field(default_factory=dict)

    @cached_property
    def parted(self) -> frozenset[int]:
        """The commits that do not follow the one before them."""
        return frozenset(self.commits[place].id for place in self.follows)


_CASES: LiteralString = """
SELECT id, workload, label,
       ARRAY (SELECT machine_id FROM series WHERE case_id = "case".id
               UNION
              SELECT machine_id FROM failure WHERE case_id = "case".id)
  FROM "case"
 WHERE project_id = %(project)s AND workload = %(workload)s
 ORDER BY natural_label
"""
_SERIES: LiteralString = """
SELECT series.case_id, series.machine_id, series.id, series.variant, series.metric, series.unit, series.direction, series.exact
  FROM "case"
  JOIN series ON series.case_id = "case".id
  JOIN machine ON machine.id = series.machine_id
 WHERE "case".project_id = %(project)s AND "case".workload = %(workload)s AND (%(label)s::text IS NULL OR "case".label = %(label)s)
 ORDER BY "case".natural_label, series.variant, series.metric, machine.name, machine.fingerprint, machine.host
"""
_FAILURES: LiteralString = f"""
{FAILURES}
 WHERE failure.case_id = %(case)s AND failure.machine_id = %(machine)s
 ORDER BY failure.ordered_at DESC, failure.commit_id DESC, failure.variant DESC NULLS LAST, failure.report_id DESC, failure.id DESC
 LIMIT %(most)s
"""


def cases_of_workload(project_id: ProjectId, workload: str) -> Query[Mapping[KnownCase, frozenset[int]]]:
    """Cases of a workload, each with the machines on which it was measured or failed.

    Index: ix_case_workload, uq_series_case_id_variant_metric_machine_id, ix_failure_case_history.
    """
    values = {"project": project_id, "workload": workload}
    return Query(_CASES, values, lambda rows: {KnownCase(*case): frozenset(machines) for *case, machines in rows})


def series_of_workload(
    project_id: ProjectId, workload: str, *, case: str | None = None
) -> Query[Mapping[tuple[int, int], Sequence[CaseSeries]]]:
    """Series of a workload, or of one case of it, by case and machine.

    Index: ix_case_workload, uq_series_case_id_variant_metric_machine_id.
    """
    return Query(_SERIES, {"project": project_id, "workload": workload, "label": case}, _by_case, width=8)


def _by_case(rows: Rows) -> Mapping[tuple[int, int], Sequence[CaseSeries]]:
    results: dict[tuple[int, int], list[CaseSeries]] = defaultdict(list)
    for row in rows:
        results[row[0], row[1]].append(CaseSeries(*row))
    return results


@dataclass(frozen=True, slots=True)
class NewestReadings:
    """The newest readings of a case, or marks where they are more than are drawn, and failures, oldest first."""

    last: int
    whole: Sequence[Reading]
    marks: Sequence[Mark]
    failures: Sequence[FailedCase]


def newest_of_case(
    ask: QueryBatch, case_id: int, machine_id: MachineId, drawn: Collection[int], *, last: int
) -> Callable[[], NewestReadings]:
    """The newest `last` commits of a case: of some series, and what failed. Index: ix_reading_series_history, ix_failure_case_history."""
    last = min(last, MOST_COMMITS)
    values = {"case": case_id, "machine": machine_id, "most": min(last, MOST_FAILURES)}
    failures = ask(Query(_FAILURES, values, failed_cases, width=FAILURE_WIDTH))
    # So few commits are all drawn; of more, only the readings that are drawn are read in full.
    whole = ask(newest_readings(drawn, last=last)) if last <= MOST_MARKS else None
    marks = ask(newest_marks(drawn, last=last)) if last > MOST_MARKS else None
    return lambda: NewestReadings(
        last, whole.value if whole else (), marks.value if marks else (), failures.value[::-1]
    )


async def case_history(
    session: AsyncSession,
    project_id: ProjectId,
    series: Sequence[CaseSeries],
    newest: NewestReadings,
    also: Callable[[Place], Query[T]] | None = None,
) -> tuple[CaseHistory, T | None]:
    """The history of a case from its newest commits; and which of them follow which, and `also` something since the oldest.

    Index: pk_commit, pk_measured, as `followed_in`; thinned pk_reading.
    """
    whole, failures = newest.whole, newest.failures
    groups = _by_series(newest.marks)
    places = _window(_by_series(whole) if whole else groups, failures, newest.last)
    if not places:
        return CaseHistory([], [], [], {}, thinned=False, follows={}), None
    oldest, known = places[0], {commit_id for _, commit_id in places}
    groups = [[mark for mark in group if mark.place >= oldest] for group in groups]
    kept = {pair: earlier for group in groups for pair, earlier in _kept(group).items()}
    thinned = len(kept) < sum(map(len, groups))
    previous = {pair: earlier for pair, earlier in kept.items() if earlier is not None and thinned}
    drawn = readings_of_pairs({*kept, *previous.values()})
    async with statements.together(session, drawn=drawn) as ask:
        commits, at = ask(commits_called(known)), ask(drawn.given_as("drawn"))
        of = measured_by_id({each.measured_id or 0 for each in whole})
        measured = ask(of.where(ids="ARRAY (SELECT DISTINCT measured_id FROM drawn)") if kept else of)
        followed = None if also is None else ask(followed_in(project_id, [one.id for one in series], known))
        besides = None if also is None else ask(also(oldest))
    readings = [at.value[pair] for pair in kept] if kept else whole
    history = CaseHistory(
        commits=commits.value,
        readings=[reading for reading in readings if reading.commit_id in known],
        failures=[failure for failure in failures if failure.commit.id in known],
        before={pair: at.value[earlier] for pair, earlier in previous.items()},
        thinned=thinned,
        follows=places_followed(places, {} if followed is None else followed.value),
        measured=measured.value,
    )
    return history, None if besides is None else besides.value


def _window(measured: Sequence[Sequence[Mark | Reading]], failures: Sequence[FailedCase], last: int) -> list[Place]:
    """Places of the commits, oldest first: no older than where a series had more than could be read."""
    known = {mark.commit_id: mark.ordered_at for of_series in measured for mark in of_series}
    known |= {failure.commit.id: failure.commit.ordered_at for failure in failures}
    newest = sorted([(ordered_at, id_) for id_, ordered_at in known.items()])[-last:]
    begins = [of_series[0].place for of_series in measured if len(of_series) >= last]
    if not begins:
        return newest
    first = max(begins)
    return [place for place in newest if place >= first] or newest


def _kept(marks: Sequence[Mark]) -> dict[tuple[int, int], tuple[int, int] | None]:
    """The readings of a series to draw, as (series, commit), each with the one before it."""
    if not marks:
        return {}
    pairs = [(mark.series_id, mark.commit_id) for mark in marks]
    traces: list[list[float | None]] = [[mark.value for mark in marks], [mark.ratio.log_ratio for mark in marks]]
    changed = [place for place, (one, other) in enumerate(pairwise(marks), 1) if one.value != other.value]
    counted = changed if len(changed) <= MOST_MARKS // 8 else ()  # of counts all changes stay; times always differ
    chosen = thin(traces, MOST_MARKS, keep={place for at in counted for place in (at - 1, at)})
    return {pairs[place]: pairs[place - 1] if place else None for place in chosen}


M = TypeVar("M", Mark, Reading)


def _by_series(marks: Iterable[M]) -> list[list[M]]:
    return [list(group) for _, group in groupby(marks, key=attrgetter("series_id"))]

"""Two commits, series by series: everything is judged, then one page of it is read in full."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID

from sqlalchemy import ColumnElement, Row, and_, case, func, or_, select
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.commits.models import Commit
from pullback_service.comparisons.judging import (
    Doubt,
    Judgement,
    Outcome,
    Side,
    Stated,
    doubt,
    judge,
    trend,
    urgency,
)
from pullback_service.errors import InvalidInputError
from pullback_service.ids import MachineId
from pullback_service.machines.models import Machine
from pullback_service.outcomes import COUNTED
from pullback_service.reports.models import Comparison, Failure, Report
from pullback_service.reports.parts import EXACT_METRICS, TIMES, WRONG_GRADIENT
from pullback_service.series.choosing import SeriesChoice, conditions
from pullback_service.series.models import ROLLED_UP, Case, Point, Series
from pullback_service.series.pooling import Spread, pooled_spread, pooled_value, speaker, usable

MOST_COMPARED_POINTS = 100_000
MOST_FAILURES = 20_000
ON_TWO_MACHINES = (
    "Measured on two machines, which no groups hold: only their ratios to the baseline can be held together."
)

Key: TypeAlias = tuple[int, int, str, str]
"""Case, machine, variant, metric: a series, or what is one as soon as it has a point."""
Order: TypeAlias = tuple[int, float, int]
"""Where a series stands in a comparison, worst first; the third is its id, or minus that of its oldest statement."""


@dataclass(frozen=True, slots=True)
class Compared:
    """A series at two commits. `series_id` is None where only uploads that compare know it."""

    key: Key
    order: Order
    series_id: int | None
    kind: str | None
    unit: str | None
    direction: str
    exact: bool
    reference: Side | None
    candidate: Side | None
    judgement: Judgement
    reference_series_id: int | None = None
    """Another series than `series_id` where two machines are held against each other."""

    @property
    def bigger_is_better(self) -> bool:
        """The better direction."""
        return self.direction == "bigger"


@dataclass(frozen=True, slots=True)
class ShownSide:
    """A series at one of the commits, in full."""

    side: Side
    spread: Spread | None
    reports: tuple[UUID, ...]
    processes: tuple[float, ...] = ()
    """What every process gave, as far as that is still kept."""


@dataclass(frozen=True, slots=True)
class Across:
    """Two machines to be held against each other, each at its commit."""

    reference: MachineId
    candidate: MachineId


@dataclass(frozen=True, slots=True)
class Shown:
    """A compared series, in full. `doubt` is None unless the commits were measured at different times."""

    compared: Compared
    case: Case
    machine: Machine
    reference: ShownSide | None
    candidate: ShownSide | None
    doubt: Doubt | None


@dataclass(frozen=True, slots=True)
class Span:
    """How far the claims of one kind go: how many, the mean of their log ratios, the smallest and the largest of them.

    Changes from and to zero are counted and have no ratio.
    """

    count: int
    mean: float | None
    smallest: float | None
    largest: float | None


@dataclass(frozen=True, slots=True)
class MetricSummary:
    """One metric over all series: how many of each outcome, and how far they go."""

    metric: str
    outcomes: Mapping[Outcome, int]
    worse: Span
    better: Span


_NOTHING: dict[int, Sequence[Row[*tuple[Any, ...]]]] = {}


async def compare(
    session: AsyncSession,
    reference: Commit,
    candidate: Commit,
    choice: SeriesChoice,
    *,
    across: Across | None = None,
) -> Sequence[Compared]:
    """Every chosen series that either commit has, worst first; with `across`, of one machine against another.

    No groups hold two machines, so between them only counts are claimed; a series is called by the candidate's machine.

    Index: ix_point_commit_id_series_id twice, ix_comparison_candidate, ix_failure_commit_id, ix_report_commit_id: what two commits
    have, whatever the length of history.
    """
    commits = reference_id, candidate_id = reference.id, candidate.id
    dirty = frozenset(await session.scalars(select(Report.id).where(Report.commit_id.in_(commits), Report.dirty)))
    machine_ids = (None, None) if across is None else (across.reference, across.candidate)
    ends = tuple(enumerate(zip(commits, machine_ids, strict=True)))
    where = [*(await conditions(session, choice)).values()]
    if across is not None:
        where.append(Series.machine_id.in_([across.reference, across.candidate]))
    measured = await _points(session, commits, where)
    stated = {} if across is not None else await _statements(session, reference_id, candidate_id, choice)
    failures = await _failures(session, commits)
    sides: dict[Key, dict[int, Sequence[Row[*tuple[Any, ...]]]]] = {}
    for (case_id, machine_id, variant, metric, commit_id), group in groupby(measured, key=_key_and_commit):
        key = (case_id, machine_id if across is None else across.candidate, variant, metric)
        rows_there = list(group)
        for end, (end_commit, end_machine) in ends:
            if commit_id == end_commit and end_machine in {None, machine_id}:
                sides.setdefault(key, {})[end] = rows_there
    found = []
    for key in sides.keys() | stated.keys():
        points = sides.get(key, _NOTHING)
        rows = stated.get(key, ())
        of_reference, of_candidate = points.get(0), points.get(1)
        measured_there = of_candidate or of_reference
        about = measured_there[0] if measured_there else next((row for row in rows if row.unit), None)
        direction = "smaller" if about is None else about.direction
        bigger_is_better = direction == "bigger"
        exact = about.exact if about is not None else _is_counted(key[3], rows)
        older, newer = _side(of_reference, dirty), _side(of_candidate, dirty)
        failed = _failure(failures, candidate_id, key)
        failed_before = _failure(failures, reference_id, _on(key, machine_ids[0]))
        judgement = judge(
            older,
            newer,
            [_stated(row, turned=row.reference_id != reference_id) for row in rows] if rows else (),
            exact=exact,
            bigger_is_better=bigger_is_better,
            failure=None if failed is None else failed.message,
            reference_failure=None if failed_before is None else failed_before.message,
            wrong_gradient=next(
                (each.message for each in (failed, failed_before) if each is not None and each.kind == WRONG_GRADIENT),
                None,
            ),
        )
        if across is not None and judgement.kind == "unpaired":
            judgement = judgement._replace(reason=ON_TWO_MACHINES)
        series_id = None if about is None else about.series_id
        tie = series_id if series_id is not None else -min(row.id for row in rows)
        found.append(
            Compared(
                key=key,
                order=(*urgency(judgement, bigger_is_better=bigger_is_better), tie),
                series_id=series_id,
                kind=None if about is None else about.variant_kind,
                unit=None if about is None else about.unit,
                direction=direction,
                exact=exact,
                reference=older,
                candidate=newer,
                judgement=judgement,
                reference_series_id=of_reference[0].series_id if of_reference else None,
            )
        )
    return sorted(found, key=lambda compared: compared.order)


async def show(
    session: AsyncSession, reference: Commit, candidate: Commit, page: Sequence[Compared]
) -> Sequence[Shown]:
    """A page of compared series in full. Index: pk_case, pk_machine, ix_point_series_history."""
    cases, machines = await named(session, page)
    rows = await session.execute(
        select(
            Point.series_id,
            Point.commit_id,
            Point.report_id,
            Point.value,
            Point.process_values,
            *ROLLED_UP,
            Point.quality,
            Point.n,
        )
        .where(
            Point.series_id.in_({id_ for each in page for id_ in _series_ids(each) if id_ is not None}),
            # With both columns the index is entered at each series and commit; without the first it reads whole series.
            Point.ordered_at.in_([reference.ordered_at, candidate.ordered_at]),
            Point.commit_id.in_([reference.id, candidate.id]),
        )
        .order_by(Point.id)
    )
    points: dict[tuple[int, int], list[Row[*tuple[Any, ...]]]] = defaultdict(list)
    for row in rows:
        points[row.series_id, row.commit_id].append(row)
    shown = []
    for each in page:
        older, newer = (
            None if side is None else _shown_side(side, points.get((series_id or 0, commit.id), ()))
            for side, commit, series_id in zip(
                (each.reference, each.candidate), (reference, candidate), _series_ids(each), strict=True
            )
        )
        left_open = None
        if each.judgement.kind == "unpaired" and older is not None and newer is not None:
            left_open = doubt(
                older.side, newer.side, older.spread, newer.spread, bigger_is_better=each.bigger_is_better
            )
        shown.append(Shown(each, cases[each.key[0]], machines[each.key[1]], older, newer, left_open))
    return shown


async def named(
    session: AsyncSession, compared: Iterable[Compared]
) -> tuple[Mapping[int, Case], Mapping[int, Machine]]:
    """Cases and machines of compared series, by their ids. Index: pk_case, pk_machine."""
    keys = [each.key for each in compared]
    cases = await session.scalars(select(Case).where(Case.id.in_({key[0] for key in keys})))
    machines = await session.scalars(select(Machine).where(Machine.id.in_({key[1] for key in keys})))
    return {found.id: found for found in cases}, {found.id: found for found in machines}


async def groups_of(session: AsyncSession, reference: Commit, candidate: Commit, key: Key) -> Sequence[float]:
    """Log ratios candidate/reference of the groups that held both commits, of the newest upload that tells them.

    Index: ix_comparison_candidate.
    """
    case_id, machine_id, variant, metric = key
    found: Sequence[float] | None = await session.scalar(
        select(Comparison.group_log_ratios)
        .where(
            Comparison.candidate_id == candidate.id,
            Comparison.reference_id == reference.id,
            Comparison.case_id == case_id,
            Comparison.machine_id == machine_id,
            Comparison.variant == variant,
            Comparison.metric == metric,
            Comparison.group_log_ratios.is_not(None),
        )
        .order_by(Comparison.id.desc())
        .limit(1)
    )
    return found or ()


def summarize(compared: Iterable[Compared]) -> Sequence[MetricSummary]:
    """All compared series by metric. Seconds and bytes have no common mean, so there is none over metrics."""
    by_metric: dict[str, list[Compared]] = defaultdict(list)
    for each in compared:
        by_metric[each.key[3]].append(each)
    return [
        MetricSummary(
            metric=metric,
            outcomes=Counter(each.judgement.outcome for each in group),
            worse=_span(group, "worse"),
            better=_span(group, "better"),
        )
        for metric, group in sorted(by_metric.items())
    ]


def _span(group: Iterable[Compared], which: str) -> Span:
    fitting = [
        each.judgement.log_ratio
        for each in group
        if each.judgement.outcome != "failed"
        and trend(each.judgement.outcome, bigger_is_better=each.bigger_is_better) == which
    ]
    ratios = sorted((ratio for ratio in fitting if ratio is not None), key=abs)
    if not ratios:
        return Span(len(fitting), None, None, None)
    return Span(len(fitting), sum(ratios) / len(ratios), ratios[0], ratios[-1])


async def _points(
    session: AsyncSession, commits: Sequence[int], where: Collection[ColumnElement[bool]]
) -> Sequence[Row[*tuple[Any, ...]]]:
    """Points of both commits, those of a series at a commit together and oldest first. Index: ix_point_commit_id_series_id.

    Rows as the driver makes them, without the session's loading of objects. Its rule of what callers see is not applied
    there: commits and the project in `where` were found where it is.
    """
    several = func.count().over(partition_by=(Point.series_id, Point.commit_id)) > 1
    rows = (
        await (await session.connection()).execute(
            select(
                Series.case_id,
                Series.machine_id,
                Series.variant,
                Series.metric,
                Point.commit_id,
                Point.series_id,
                Point.report_id,
                Point.value,
                case((or_(several, Series.exact), Point.process_values)).label("process_values"),
                *ROLLED_UP,
                Point.quality,
                Point.n,
                Point.baseline,
                Point.log_ratio,
                Point.low,
                Point.high,
                Point.method,
                Point.program_hash,
                Series.variant_kind,
                Series.unit,
                Series.direction,
                Series.exact,
            )
            .select_from(Point)
            .join(Series, Series.id == Point.series_id)
            .join(Case, Case.id == Series.case_id)
            .join(Machine, Machine.id == Series.machine_id)
            .where(Point.commit_id.in_(commits), *where)
            .order_by(Point.series_id, Point.commit_id, Point.id)
            .limit(MOST_COMPARED_POINTS + 1)
        )
    ).all()
    if len(rows) > MOST_COMPARED_POINTS:
        raise InvalidInputError(
            f"These commits have more than {MOST_COMPARED_POINTS} points: narrow the comparison with machine=, metric= or "
            "workload=."
        )
    return rows


async def _statements(
    session: AsyncSession, reference_id: int, candidate_id: int, choice: SeriesChoice
) -> Mapping[Key, Sequence[Row[*tuple[Any, ...]]]]:
    """What uploads state of the two commits, in either order, oldest first. Index: ix_comparison_candidate."""
    where = await conditions(
        session, choice, project_id=Case.project_id, variant=Comparison.variant, metric=Comparison.metric
    )
    rows = await session.execute(
        select(
            Comparison.id,
            Comparison.case_id,
            Comparison.machine_id,
            Comparison.variant,
            Comparison.metric,
            Comparison.reference_id,
            Comparison.log_ratio,
            Comparison.low,
            Comparison.high,
            Comparison.n,
            Comparison.outcome,
            Comparison.claim,
            Comparison.margin,
            Comparison.provisional,
            Report.quality,
            Report.dirty,
            Series.id.label("series_id"),
            Series.variant_kind,
            Series.unit,
            Series.direction,
            Series.exact,
        )
        .select_from(Comparison)
        .join(Report, Report.id == Comparison.report_id)
        .join(Case, Case.id == Comparison.case_id)
        .join(Machine, Machine.id == Comparison.machine_id)
        .join(
            Series,
            and_(
                Series.case_id == Comparison.case_id,
                Series.machine_id == Comparison.machine_id,
                Series.variant == Comparison.variant,
                Series.metric == Comparison.metric,
            ),
            isouter=True,
        )
        .where(
            or_(
                and_(Comparison.candidate_id == candidate_id, Comparison.reference_id == reference_id),
                and_(Comparison.candidate_id == reference_id, Comparison.reference_id == candidate_id),
            ),
            *where.values(),
        )
        .order_by(Comparison.id)
        .limit(MOST_COMPARED_POINTS)
    )
    found: dict[Key, list[Row[*tuple[Any, ...]]]] = defaultdict(list)
    for row in rows:
        found[_key(row)].append(row)
    return found


class _Failed(NamedTuple):
    kind: str
    message: str


async def _failures(
    session: AsyncSession, commits: Sequence[int]
) -> Mapping[tuple[int, int, int, str | None], _Failed]:
    """Why cases, or variants of them, gave nothing; a wrong gradient before any other reason. Index: ix_failure_commit_id."""
    rows = await session.execute(
        select(Failure.commit_id, Failure.case_id, Failure.machine_id, Failure.variant, Failure.kind, Failure.message)
        .join(Case, Case.id == Failure.case_id)
        .where(Failure.commit_id.in_(commits))
        .order_by(Failure.kind == WRONG_GRADIENT, Failure.id)
        .limit(MOST_FAILURES)
    )
    return {(row.commit_id, row.case_id, row.machine_id, row.variant): _Failed(row.kind, row.message) for row in rows}


def _failure(failures: Mapping[tuple[int, int, int, str | None], _Failed], commit_id: int, key: Key) -> _Failed | None:
    if not failures:
        return None
    case_id, machine_id, variant, _ = key
    of_variant = failures.get((commit_id, case_id, machine_id, variant))
    return of_variant if of_variant is not None else failures.get((commit_id, case_id, machine_id, None))


def _is_counted(metric: str, stated: Sequence[Row[*tuple[Any, ...]]]) -> bool:
    """Whether a metric without a point is a count: one of ours, or another's of which only counts are stated."""
    return metric in EXACT_METRICS or (
        metric not in TIMES and all(row.outcome in COUNTED or row.outcome in {"ambiguous", "failed"} for row in stated)
    )


def _key(row: Row[*tuple[Any, ...]]) -> Key:
    return row.case_id, row.machine_id, row.variant, row.metric


_key_and_commit: Callable[[Sequence[Any]], tuple[Any, ...]] = itemgetter(0, 1, 2, 3, 4)
"""The key and the commit of a point, which `_points` selects first: by number they are found several times as fast."""


def _side(rows: Sequence[Row[*tuple[Any, ...]]] | None, dirty: Collection[UUID]) -> Side | None:
    if not rows:
        return None
    # Nearly every commit has one report: at 4,000 points it pays not to look for others.
    is_alone = len(rows) == 1
    counted = rows if is_alone else usable(rows)
    spoken = rows[0] if is_alone else speaker(rows)
    return Side(
        value=spoken.value if is_alone else pooled_value(rows),
        quality=spoken.quality,
        dirty=bool(dirty) and any(row.report_id in dirty for row in counted),
        agree=_agree(counted),
        method=spoken.method,
        program_hash=spoken.program_hash,
        baseline=spoken.baseline,
        log_ratio=spoken.log_ratio,
        low=spoken.low,
        high=spoken.high,
    )


def _agree(rows: Sequence[Row[*tuple[Any, ...]]]) -> bool:
    """Whether all reports of a count, and all processes of each, counted the same."""
    first = rows[0].value
    return all(row.value == first and set(row.process_values or ()) <= {first} for row in rows)


def _shown_side(side: Side, rows: Sequence[Row[*tuple[Any, ...]]]) -> ShownSide:
    processes = tuple(value for row in usable(rows) for value in row.process_values or ()) if rows else ()
    return ShownSide(side, pooled_spread(rows) if rows else None, tuple(row.report_id for row in rows), processes)


def _series_ids(each: Compared) -> tuple[int | None, int | None]:
    return each.reference_series_id or each.series_id, each.series_id


def _on(key: Key, machine_id: int | None) -> Key:
    return key if machine_id is None else (key[0], machine_id, key[2], key[3])


def _stated(row: Row[*tuple[Any, ...]], *, turned: bool) -> Stated:
    stated = Stated(
        outcome=row.outcome,
        log_ratio=row.log_ratio,
        low=row.low,
        high=row.high,
        n=row.n,
        claim=row.claim,
        margin=row.margin,
        provisional=bool(row.provisional),
        quality=row.quality,
        dirty=row.dirty,
    )
    return stated.turned() if turned else stated

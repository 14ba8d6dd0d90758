"""Two commits, series by series: everything is judged by a few numbers, then one page of it is read in full."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import nan
from typing import Any, Final, LiteralString, NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.claims import COUNTED_IN_ONE_SESSION
from pullback_service.commits.models import Commit
from pullback_service.comparisons.at_once import CODE_OF, KIND_CODE_OF, Flags
from pullback_service.comparisons.columns import NOTHING, describe_series, read_numbers
from pullback_service.comparisons.grounds import Across, Grounds, Key, read_failures, read_statements
from pullback_service.comparisons.judging import CHANGED_COUNTS, Doubt, Judgement, Side, doubt, judge
from pullback_service.comparisons.outcomes import NO_SERIES, Outcomes, Shape
from pullback_service.comparisons.pairing import lay_out, pair
from pullback_service.machines.software import Software, software_at, software_on
from pullback_service.reports.models import Comparison
from pullback_service.reports.parts import WRONG_GRADIENT
from pullback_service.series.choosing import SeriesChoice, conditions
from pullback_service.series.models import Series
from pullback_service.series.pooling import Spread, counting, pooled_spread, pooled_value, speaker, usable

ON_TWO_MACHINES = (
    "Measured on two machines, which no groups hold: only their ratios to the baseline can be held together."
)

POINT_COLUMNS: Final[LiteralString] = """
SELECT p.series_id, p.commit_id, p.report_id, p.value, p.process_values, p.process_count, p.process_low, p.process_q25,
       p.process_q75, p.process_high, p.quality, p.n, p.baseline, p.log_ratio, p.low, p.high, p.method, p.program_hash,
       r.dirty
"""
"""Of a point `p` and its report `r`, as `PointRow` takes them."""
_POINTS: Final[LiteralString] = f"""{POINT_COLUMNS}
  FROM point p
  JOIN report r ON r.id = p.report_id
 WHERE p.commit_id = ANY (%(commits)s::bigint[]) AND p.series_id = ANY (%(series)s::bigint[])
 ORDER BY p.id
"""
_CASES: Final[LiteralString] = """
SELECT id, label, workload, params, dtype, device FROM "case" WHERE id = ANY (%(ids)s::bigint[])
"""
_MACHINES: Final[LiteralString] = "SELECT id, name, fingerprint FROM machine WHERE id = ANY (%(ids)s::bigint[])"


class PointRow(NamedTuple):
    """A point as it is pooled with others of its series at its commit."""

    series_id: int
    commit_id: int
    report_id: UUID
    value: float
    process_values: Sequence[float] | None
    process_count: int | None
    process_low: float | None
    process_q25: float | None
    process_q75: float | None
    process_high: float | None
    quality: str
    n: int | None
    baseline: str | None
    log_ratio: float | None
    low: float | None
    high: float | None
    method: str | None
    program_hash: str | None
    dirty: bool


class NamedCase(NamedTuple):
    """A case by its names."""

    id: int
    label: str
    workload: str
    params: Mapping[str, Any]
    dtype: str | None
    device: str | None


class NamedMachine(NamedTuple):
    """A machine by its names."""

    id: int
    name: str
    fingerprint: str


class Names(NamedTuple):
    """Cases and machines by their ids."""

    cases: Mapping[int, NamedCase]
    machines: Mapping[int, NamedMachine]


@dataclass(frozen=True, slots=True)
class Judged:
    """Two commits with what was judged of their series, and on which grounds."""

    reference_id: int
    candidate_id: int
    across: Across | None
    grounds: Grounds
    outcomes: Outcomes


@dataclass(frozen=True, slots=True)
class Compared:
    """A series at two commits. `series_id` is None where only uploads that compare know it."""

    key: Key
    series_id: int | None
    kind: str | None
    unit: str | None
    direction: str
    exact: bool
    reference: Side | None
    candidate: Side | None
    judgement: Judgement
    wrong_gradient: str | None = None
    """What a report says of either commit, whatever else was measured there."""

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
class Shown:
    """A compared series, in full. `doubt` is None unless the commits were measured at different times."""

    compared: Compared
    case: NamedCase
    machine: NamedMachine
    reference: ShownSide | None
    candidate: ShownSide | None
    doubt: Doubt | None


async def compare(
    session: AsyncSession,
    reference: Commit,
    candidate: Commit,
    choice: SeriesChoice,
    *,
    across: Across | None = None,
) -> Judged:
    """Every chosen series that either commit has, worst first; with `across`, of one machine against another.

    No groups hold two machines, so between them only counts are claimed; a series is called by the candidate's machine.

    Index: ix_point_commit_id_series_id, ix_comparison_candidate, ix_failure_commit_id, ix_report_commit_id: what two
    commits have, whatever the length of history; where counts differ, ix_facts_change_machine_id, across pk_machine.
    """
    where = [*(await conditions(session, choice)).values()] if choice.is_narrow else []
    if across is not None:
        where.append(Series.machine_id.in_([across.reference, across.candidate]))
    numbers = await read_numbers(session, reference.id, candidate.id, where)
    grounds = Grounds(
        stated=await read_statements(session, reference.id, candidate.id, choice)
        if numbers.has_statements and across is None
        else {},
        failures=await read_failures(session, (reference.id, candidate.id)) if numbers.has_failures else {},
    )
    older, newer = numbers.of.get(reference.id, NOTHING), numbers.of.get(candidate.id, NOTHING)
    described = await describe_series(session, np.union1d(older.series_id, newer.series_id))
    pairs = pair(described, older, newer, across)
    outcomes = lay_out(described, pairs, grounds, across)
    if pairs.unusual.any() or outcomes.having(*CHANGED_COUNTS).any():
        grounds = replace(grounds, software=await _software(session, [reference.id, candidate.id], across))
    judged = Judged(reference.id, candidate.id, across, grounds, outcomes)
    unusual = _unusual(judged, pairs.unusual)
    await _judge_one_by_one(session, judged, unusual)
    return replace(judged, outcomes=judged.outcomes.sorted())


async def show(session: AsyncSession, judged: Judged, page: Outcomes, names: Names | None = None) -> Sequence[Shown]:
    """A page of compared series in full, by `names` where they are read already.

    Index: ix_point_commit_id_series_id, pk_report; as `names_of`.
    """
    cases, machines = await names_of(session, page) if names is None else names
    points = await _read_points(session, judged, page)
    shown = []
    for each in _rows(page):
        older_rows, newer_rows = (points.get(place, ()) for place in each.places(judged))
        compared = _compared(judged, each, older_rows, newer_rows)
        older, newer = _shown_side(compared.reference, older_rows), _shown_side(compared.candidate, newer_rows)
        left_open = None
        if compared.judgement.kind == "unpaired" and older is not None and newer is not None:
            left_open = doubt(
                older.side, newer.side, older.spread, newer.spread, bigger_is_better=compared.bigger_is_better
            )
        shown.append(Shown(compared, cases[each.case_id], machines[each.machine_id], older, newer, left_open))
    return shown


async def names_of(session: AsyncSession, found: Outcomes) -> Names:
    """What the cases and machines of compared series are called. Index: pk_case, pk_machine."""
    cases = await statements.rows(session, _CASES, {"ids": np.unique(found.case_id).tolist()})
    machines = await statements.rows(session, _MACHINES, {"ids": np.unique(found.machine_id).tolist()})
    return Names({row[0]: NamedCase(*row) for row in cases}, {row[0]: NamedMachine(*row) for row in machines})


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


class _Row(NamedTuple):
    """One entry of `Outcomes`."""

    shape: Shape
    case_id: int
    machine_id: int
    series_id: int
    reference_series_id: int
    has_reference: bool
    has_candidate: bool

    @property
    def key(self) -> Key:
        return self.case_id, self.machine_id, self.shape.variant, self.shape.metric

    def places(self, judged: Judged) -> tuple[tuple[int, int] | None, tuple[int, int] | None]:
        """Series and commit of its points at the reference and at the candidate."""
        return (
            (self.reference_series_id, judged.reference_id) if self.has_reference else None,
            (self.series_id, judged.candidate_id) if self.has_candidate else None,
        )


def _rows(found: Outcomes) -> Iterable[_Row]:
    columns = (
        found.case_id,
        found.machine_id,
        found.series_id,
        found.reference_series_id,
        found.has_reference,
        found.has_candidate,
    )
    shapes = (found.shapes[place] for place in found.shape.tolist())
    return map(_Row, shapes, *(column.tolist() for column in columns))


def _compared(judged: Judged, each: _Row, older: Sequence[PointRow], newer: Sequence[PointRow]) -> Compared:
    return judged_series(
        each.key,
        each.shape,
        each.series_id if each.series_id != NO_SERIES else None,
        older,
        newer,
        judged.reference_id,
        judged.candidate_id,
        judged.grounds,
        judged.across,
    )


def judged_series(
    key: Key,
    shape: Shape,
    series_id: int | None,
    older: Sequence[PointRow],
    newer: Sequence[PointRow],
    reference_id: int,
    candidate_id: int,
    grounds: Grounds,
    across: Across | None = None,
) -> Compared:
    """A series judged by the rule itself, from its points at both commits, oldest first, and whatever else there is."""
    stated = grounds.stated.get(key)
    reference, candidate = _side(older), _side(newer)
    failed, failed_before = grounds.failures_of(key, reference_id, candidate_id, across)
    wrong_gradient = next(
        (one.message for one in (failed, failed_before) if one is not None and one.kind == WRONG_GRADIENT), None
    )
    judgement = judge(
        reference,
        candidate,
        () if stated is None else stated.statements,
        exact=shape.exact,
        counted_together=COUNTED_IN_ONE_SESSION.get(shape.metric),
        bigger_is_better=shape.direction == "bigger",
        failure=None if failed is None else failed.message,
        reference_failure=None if failed_before is None else failed_before.message,
        wrong_gradient=wrong_gradient,
        changed_software=_changed_software(grounds, shape.variant, older, newer),
    )
    if across is not None and judgement.kind == "unpaired":
        judgement = judgement._replace(reason=ON_TWO_MACHINES)
    return Compared(
        key=key,
        series_id=series_id,
        kind=shape.kind,
        unit=shape.unit,
        direction=shape.direction,
        exact=shape.exact,
        reference=reference,
        candidate=candidate,
        judgement=judgement,
        wrong_gradient=wrong_gradient,
    )


async def _software(session: AsyncSession, commit_ids: Collection[int], across: Across | None) -> Software:
    if across is None:
        return await software_at(session, commit_ids)
    return await software_on(session, commit_ids, {across.reference, across.candidate})


def _changed_software(
    grounds: Grounds, variant: str, older: Sequence[PointRow], newer: Sequence[PointRow]
) -> str | None:
    """In words, what the count of each commit was made with where it was not the same."""
    if not older or not newer:
        return None
    return grounds.software.between(counting(older).report_id, counting(newer).report_id, variant) or None


def _unusual(judged: Judged, by_numbers: Flags) -> NDArray[np.intp]:
    """The places of the series that the rule itself has to judge: by their numbers, or for what else there is of them."""
    grounds, found = judged.grounds, judged.outcomes
    unusual = np.ones(len(found), bool)  # also those that only uploads that compare know
    unusual[: len(by_numbers)] = by_numbers
    if grounds.stated or grounds.failures:
        ends = judged.reference_id, judged.candidate_id, judged.across
        unusual |= [key in grounds.stated or any(grounds.failures_of(key, *ends)) for key in found.named()]
    if grounds.software.machines:
        unusual |= found.having(*CHANGED_COUNTS) & np.isin(found.machine_id, list(grounds.software.machines))
    return np.flatnonzero(unusual)


async def _judge_one_by_one(session: AsyncSession, judged: Judged, unusual: NDArray[np.intp]) -> None:
    """Judge the series at some places by the rule itself, and write down what it says."""
    if not len(unusual):
        return
    found = judged.outcomes
    rows = list(_rows(found[unusual]))
    stated = judged.grounds.stated
    # What uploads state of a measurement decides without the points, unless all of them failed.
    by_points = np.array(
        [each.shape.exact or each.key not in stated or not stated[each.key].is_decisive for each in rows], bool
    )
    points = await _read_points(session, judged, found[unusual[by_points]])
    judgements = []
    for each in rows:
        older, newer = (points.get(place, ()) for place in each.places(judged))
        judgements.append(_compared(judged, each, older, newer).judgement)
    found.outcome[unusual] = [CODE_OF[judgement.outcome] for judgement in judgements]
    found.kind[unusual] = [KIND_CODE_OF[judgement.kind] for judgement in judgements]
    found.log_ratio[unusual] = [nan if each.log_ratio is None else each.log_ratio for each in judgements]


async def _read_points(
    session: AsyncSession, judged: Judged, found: Outcomes
) -> Mapping[tuple[int, int] | None, Sequence[PointRow]]:
    """Points of series at both commits, oldest first, by series and commit. Index: ix_point_commit_id_series_id."""
    points: dict[tuple[int, int] | None, list[PointRow]] = defaultdict(list)
    series_ids = np.union1d(found.series_id, found.reference_series_id)
    if len(series_ids):
        values = {
            "commits": [judged.reference_id, judged.candidate_id],
            "series": statements.array_of(series_ids.tolist()),
        }
        for row in await statements.rows(session, _POINTS, values, binary=True):
            points[row[0], row[1]].append(PointRow(*row))
    return points


def _side(rows: Sequence[PointRow]) -> Side | None:
    if not rows:
        return None
    spoken = speaker(rows)
    counted = usable(rows)
    return Side(
        value=pooled_value(rows),
        quality=spoken.quality,
        dirty=any(row.dirty for row in counted),
        agree=_agree(counted),
        method=spoken.method,
        program_hash=spoken.program_hash,
        baseline=spoken.baseline,
        log_ratio=spoken.log_ratio,
        low=spoken.low,
        high=spoken.high,
    )


def _agree(rows: Sequence[PointRow]) -> bool:
    """Whether all reports of a count, and all processes of each, counted the same."""
    first = rows[0].value
    return all(row.value == first and set(row.process_values or ()) <= {first} for row in rows)


def _shown_side(side: Side | None, rows: Sequence[PointRow]) -> ShownSide | None:
    if side is None:
        return None
    processes = tuple(value for row in usable(rows) for value in row.process_values or ())
    return ShownSide(side, pooled_spread(rows), tuple(row.report_id for row in rows), processes)

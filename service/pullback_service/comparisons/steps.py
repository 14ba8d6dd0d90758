"""From one commit to another, series by series: the judgement that a comparison of both makes, of any series at any two commits.

A comparison is of two commits and all series. Whoever tells of a history has many pairs of commits and few series of each:
those that differ. The rule is the same (`judging.py`), so that no page says firmly what a comparison leaves open.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Final, LiteralString, NamedTuple
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.comparisons.grounds import Failed, Grounds, Key, StatedRow, StatedSeries, stated_series
from pullback_service.comparisons.outcomes import Shape
from pullback_service.comparisons.queries import Compared, judged_series
from pullback_service.machines.software import software_under
from pullback_service.measured.queries import read_measured
from pullback_service.readings.reading import COLUMNS, Reading
from pullback_service.reports.parts import WRONG_GRADIENT


class Step(NamedTuple):
    """A series, at a commit and at another one that it is held against."""

    key: Key
    reference_id: int
    candidate_id: int


_ENDS: Final[LiteralString] = f"""
SELECT s.case_id, s.machine_id, s.variant, s.metric, s.id, s.variant_kind, s.unit, s.direction, s.exact, {COLUMNS}
  FROM unnest(%(cases)s::bigint[], %(machines)s::bigint[], %(variants)s::text[], %(metrics)s::text[], %(commits)s::bigint[])
       asked (case_id, machine_id, variant, metric, commit_id)
  JOIN series s USING (case_id, machine_id, variant, metric)
  LEFT JOIN reading ON reading.series_id = s.id AND reading.commit_id = asked.commit_id
"""  # noqa: S608 - our own words
_WIDTH: Final = 9
"""Columns of a series, before those of a reading."""
_STATED: Final[LiteralString] = """
SELECT c.id, c.case_id, c.machine_id, c.variant, c.metric, c.reference_id, c.candidate_id, c.log_ratio, c.low, c.high, c.n,
       c.outcome, c.claim, c.margin, c.provisional, r.quality, r.dirty, s.id, s.variant_kind, s.unit, s.direction, s.exact
  FROM (SELECT DISTINCT * FROM unnest(%(cases)s::bigint[], %(machines)s::bigint[], %(older)s::bigint[], %(newer)s::bigint[]))
       asked (case_id, machine_id, reference_id, candidate_id)
  JOIN comparison c USING (case_id, machine_id, reference_id, candidate_id)
  JOIN report r ON r.id = c.report_id
  LEFT JOIN series s
    ON s.case_id = c.case_id AND s.variant = c.variant AND s.metric = c.metric AND s.machine_id = c.machine_id
 ORDER BY c.id
"""
_FAILED: Final[LiteralString] = """
SELECT f.commit_id, f.case_id, f.machine_id, f.variant, f.kind, f.message
  FROM (SELECT DISTINCT * FROM unnest(%(commits)s::bigint[], %(cases)s::bigint[], %(machines)s::bigint[]))
       asked (commit_id, case_id, machine_id)
  JOIN failure f USING (commit_id, case_id, machine_id)
 ORDER BY f.kind = %(wrong)s, f.id
"""


async def judge_steps(session: AsyncSession, steps: Collection[Step]) -> Mapping[Step, Compared]:
    """What may be said of each step, of cases and machines of a project that was found; what nobody knows is left out.

    Index: uq_series_case_id_variant_metric_machine_id, pk_reading, ix_comparison_candidate,
    ix_failure_commit_id, pk_report; where counts differ, ix_facts_change_machine_id.
    """
    if not steps:
        return {}
    known, readings = await _read_ends(session, steps)
    stated = await _statements(session, steps)
    failures = await _failures(session, steps)
    ends = {step: _ends(step, known, readings) for step in steps}
    software = await software_under(session, _counting_differently(ends.values()))
    measured = await read_measured(session, (each.measured_id for each in readings.values()))
    judged = {}
    for step, (older, newer) in ends.items():
        pair = step.reference_id, step.candidate_id
        of_pair = stated.get(pair, {})
        series_id, shape = known.get(step.key) or _told_of(step.key, of_pair)
        if shape is not None:
            grounds = Grounds(of_pair, failures, software, measured)
            judged[step] = judged_series(step.key, shape, series_id, older, newer, *pair, grounds)
    return judged


_Known = Mapping[Key, tuple[int | None, Shape]]
_Readings = Mapping[tuple[int, int], Reading]
_Ends = tuple[Reading | None, Reading | None]


async def _read_ends(session: AsyncSession, steps: Collection[Step]) -> tuple[_Known, _Readings]:
    """The series of steps, and their readings at both commits."""
    asked = {(*step.key, commit) for step in steps for commit in (step.reference_id, step.candidate_id)}
    cases, machines, variants, metrics, commits = zip(*asked, strict=True)
    values = {
        "cases": statements.array_of(cases),
        "machines": statements.array_of(machines),
        "variants": statements.array_of_texts(variants),
        "metrics": statements.array_of_texts(metrics),
        "commits": statements.array_of(commits),
    }
    known: dict[Key, tuple[int | None, Shape]] = {}
    readings = {}
    for row in await statements.rows(session, _ENDS, values, binary=True):
        case_id, machine_id, variant, metric, series_id, kind, unit, direction, exact = row[:_WIDTH]
        key = case_id, machine_id, variant, metric
        known[key] = series_id, Shape(variant, kind, metric, unit, direction, exact)
        reading = Reading._make(row[_WIDTH:])
        if reading.commit_id is not None:
            readings[reading[:2]] = reading
    return known, readings


async def _statements(
    session: AsyncSession, steps: Collection[Step]
) -> Mapping[tuple[int, int], Mapping[Key, StatedSeries]]:
    """What uploads state, in either order of the commits, by reference and candidate."""
    pairs = {(*step.key[:2], step.reference_id, step.candidate_id) for step in steps}
    asked = [*pairs, *((case, machine, newer, older) for case, machine, older, newer in pairs)]
    values = dict(
        zip(("cases", "machines", "older", "newer"), map(statements.array_of, zip(*asked, strict=True)), strict=True)
    )
    told: dict[tuple[int, int], dict[Key, list[StatedRow]]] = defaultdict(lambda: defaultdict(list))
    for row in map(StatedRow._make, await statements.rows(session, _STATED, values)):
        key = row.case_id, row.machine_id, row.variant, row.metric
        for pair in {(row.reference_id, row.candidate_id), (row.candidate_id, row.reference_id)}:
            told[pair][key].append(row)
    return {pair: {key: stated_series(key, rows, pair[0]) for key, rows in of.items()} for pair, of in told.items()}


async def _failures(
    session: AsyncSession, steps: Collection[Step]
) -> Mapping[tuple[int, int, int, str | None], Failed]:
    asked = {(commit, *step.key[:2]) for step in steps for commit in (step.reference_id, step.candidate_id)}
    values = dict(
        zip(("commits", "cases", "machines"), map(statements.array_of, zip(*asked, strict=True)), strict=True)
    )
    rows = await statements.rows(session, _FAILED, values | {"wrong": WRONG_GRADIENT})
    return {(commit, case, machine, variant): Failed(kind, told) for commit, case, machine, variant, kind, told in rows}


def _ends(step: Step, known: _Known, readings: _Readings) -> _Ends:
    series_id = known[step.key][0] if step.key in known else None
    if series_id is None:
        return None, None
    return readings.get((series_id, step.reference_id)), readings.get((series_id, step.candidate_id))


def _counting_differently(ends: Iterable[_Ends]) -> Collection[UUID]:
    """Reports whose counts differ; of what is timed, values always do, and software is no doubt of it."""
    return {
        UUID(reading.report_id)
        for older, newer in ends
        if older is not None and newer is not None and older.value != newer.value
        for reading in (older, newer)
    }


def _told_of(key: Key, stated: Mapping[Key, StatedSeries]) -> tuple[int | None, Shape | None]:
    """What a series is that only uploads that compare know."""
    told = stated.get(key)
    if told is None:
        return None, None
    return told.series_id, Shape(key[2], told.kind, key[3], told.unit, told.direction, told.exact)

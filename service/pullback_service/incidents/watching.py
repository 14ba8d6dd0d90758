"""Reading what detection looks at: the trunk, what uploads touched, and everything about some cases on some machines."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, LiteralString, NamedTuple, TypeAlias
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.claims import COUNTED_IN_ONE_SESSION
from pullback_service.commits.trunk import TRUNK
from pullback_service.ids import ProjectId
from pullback_service.incidents.changes import Places
from pullback_service.incidents.failing import Failing, Measured
from pullback_service.incidents.finding import MOST_READINGS, Claim, Observed, Watched
from pullback_service.readings.pooling import BUSY
from pullback_service.rule import RULE
from pullback_service.steps.following import IS_RIGHT

Pair: TypeAlias = tuple[int, int]
"""A case and a machine."""

_TRUNK: Final[LiteralString] = f"""
SELECT watched.name, watched.detected_from, watched.watched, watched.trunk, branch.id
  FROM (SELECT id, name, detected_from, watched, {TRUNK} AS trunk FROM project WHERE id = %(project)s) watched
  LEFT JOIN branch ON branch.project_id = watched.id AND branch.name = watched.trunk
"""  # noqa: S608 - our own words
_PLACES: Final[LiteralString] = "SELECT commit_id, position FROM branch_commit WHERE branch_id = %(branch)s"
_IS_JUDGED: Final[LiteralString] = """
SELECT NOT EXISTS (SELECT FROM commit WHERE project_id = %(project)s AND NOT projected)
   AND NOT EXISTS (SELECT FROM commit WHERE project_id = %(project)s AND judged_by < %(rule)s)
   AND NOT EXISTS (SELECT FROM step JOIN series ON series.id = step.series_id WHERE step.stale AND series.project_id = %(project)s)
"""
_WAITING: Final[LiteralString] = """
SELECT id FROM report
 WHERE project_id = %(project)s AND detected_at IS NULL
 ORDER BY received_at LIMIT %(most)s FOR NO KEY UPDATE
"""
_DETECTED: Final[LiteralString] = "UPDATE report SET detected_at = now() WHERE id = ANY (%(reports)s::uuid[])"
_TOUCHED: Final[LiteralString] = """
SELECT series.case_id, series.machine_id
  FROM (SELECT DISTINCT series_id FROM point WHERE report_id = ANY (%(reports)s::uuid[])) touched
  JOIN series ON series.id = touched.series_id
 UNION
SELECT case_id, machine_id FROM failure WHERE report_id = ANY (%(reports)s::uuid[])
 UNION
SELECT case_id, machine_id FROM comparison WHERE report_id = ANY (%(reports)s::uuid[])
 UNION -- what a report measured that was withdrawn is not known any more
SELECT series.case_id, series.machine_id
  FROM report
  JOIN series ON series.project_id = report.project_id AND series.machine_id = report.machine_id
 WHERE report.id = ANY (%(reports)s::uuid[]) AND report.status = 'withdrawn'
"""
_WATCHED: Final[LiteralString] = "UPDATE project SET watched = %(trunk)s WHERE id = %(project)s"
_EVERY_PAIR: Final[LiteralString] = "SELECT DISTINCT case_id, machine_id FROM series WHERE project_id = %(project)s"
_SERIES: Final[LiteralString] = """
SELECT series.id, series.case_id, series.machine_id, series.variant, series.metric, series.exact, series.direction = 'bigger'
  FROM unnest(%(cases)s::bigint[], %(machines)s::bigint[]) wanted (case_id, machine_id)
  JOIN series USING (case_id, machine_id)
"""
_READINGS: Final[LiteralString] = f"""
SELECT newest.*
  FROM unnest(%(series)s::bigint[]) wanted (id), LATERAL (
       SELECT reading.series_id, branch_commit.position, reading.commit_id, reading.value, reading.baseline, reading.log_ratio,
              reading.low, reading.high, reading.quality, reading.method, reading.measured_id, report.received_at
         FROM reading
         JOIN branch_commit ON branch_commit.commit_id = reading.commit_id AND branch_commit.branch_id = %(branch)s
         JOIN report ON report.id = reading.report_id
        WHERE reading.series_id = wanted.id AND NOT reading.dirty AND {IS_RIGHT}
        ORDER BY reading.ordered_at DESC, reading.commit_id DESC
        LIMIT %(most)s) newest
 ORDER BY 1, 2
"""  # noqa: S608 - our own words
_CLAIMS: Final[LiteralString] = """
SELECT series_id, reference_id, commit_id, outcome, evidence, log_ratio, low, high, n, doubt
  FROM step
 WHERE series_id = ANY (%(series)s::bigint[]) AND news AND NOT stale AND evidence IN ('exact', 'paired')
"""
_FAILED: Final[LiteralString] = """
SELECT failure.case_id, failure.machine_id, failure.variant, failure.kind, failure.message, failure.commit_id, failure.report_id
  FROM unnest(%(cases)s::bigint[], %(machines)s::bigint[]) wanted (case_id, machine_id)
  JOIN failure USING (case_id, machine_id)
  JOIN branch_commit ON branch_commit.commit_id = failure.commit_id AND branch_commit.branch_id = %(branch)s
 ORDER BY failure.id
"""
_MEASURED: Final[LiteralString] = """
SELECT DISTINCT series.case_id, series.machine_id, series.variant, reading.commit_id
  FROM unnest(%(cases)s::bigint[], %(machines)s::bigint[]) wanted (case_id, machine_id)
  JOIN series USING (case_id, machine_id)
  JOIN reading ON reading.series_id = series.id
  JOIN branch_commit ON branch_commit.commit_id = reading.commit_id AND branch_commit.branch_id = %(branch)s
"""
_LEVELS: Final[LiteralString] = "SELECT id, workload, harness, subject FROM measured WHERE id = ANY (%(ids)s::int[])"
_FACTS: Final[LiteralString] = "SELECT id, facts FROM machine WHERE id = ANY (%(machines)s::bigint[])"
_FACTS_CHANGES: Final[LiteralString] = """
SELECT machine_id, at, before, after FROM facts_change WHERE machine_id = ANY (%(machines)s::bigint[]) ORDER BY at, id
"""


class Trunk(NamedTuple):
    """The trunk of a project: the places of its commits, none where there is no such branch yet."""

    project: str
    detected_from: datetime
    watched: str | None
    """The trunk along which changes were last looked for."""
    name: str
    branch_id: int | None
    places: Places


class History(NamedTuple):
    """A series with all that is known of it along the trunk."""

    series: Watched
    claims: Sequence[Claim]
    readings: Sequence[Observed]


async def read_trunk(session: AsyncSession, project_id: ProjectId) -> Trunk | None:
    """The trunk, or None where the project was removed meanwhile. Index: pk_project, uq_branch_project_id_name, pk_branch_commit."""
    found = await statements.row(session, _TRUNK, {"project": project_id})
    if found is None:
        return None
    project, detected_from, watched, name, branch_id = found
    rows = await statements.rows(session, _PLACES, {"branch": branch_id}) if branch_id is not None else []
    return Trunk(project, detected_from, watched, name, branch_id, {row[0]: row[1] for row in rows})


async def is_judged(session: AsyncSession, project_id: ProjectId) -> bool:
    """True if all steps of a project are up to date. Index: ix_commit_unprojected, ix_commit_judged_by, ix_step_stale."""
    found = await statements.row(session, _IS_JUDGED, {"project": project_id, "rule": RULE})
    return bool(found and found[0])


async def waiting_reports(session: AsyncSession, project_id: ProjectId, *, most: int) -> Sequence[UUID]:
    """Reports in which no changes were looked for yet, oldest first. Index: ix_report_undetected."""
    return [row[0] for row in await statements.rows(session, _WAITING, {"project": project_id, "most": most})]


async def mark_detected(session: AsyncSession, reports: Collection[UUID]) -> None:
    """Note that changes were looked for in reports. Index: pk_report."""
    await statements.run(session, _DETECTED, {"reports": list(reports)})


async def touched_pairs(session: AsyncSession, reports: Collection[UUID]) -> list[Pair]:
    """The cases and machines that reports speak of. Index: ix_point_report_id, ix_failure_report_id, ix_comparison_report_id, ix_series_project_id."""
    return sorted(await statements.rows(session, _TOUCHED, {"reports": list(reports)}))


async def every_pair(session: AsyncSession, project_id: ProjectId, trunk: Trunk) -> list[Pair]:
    """All cases and machines of a project, where changes were last looked for along another trunk; none else.

    Index: ix_series_project_id.
    """
    if trunk.watched == trunk.name:
        return []
    await statements.run(session, _WATCHED, {"project": project_id, "trunk": trunk.name})
    rows = await statements.rows(session, _EVERY_PAIR, {"project": project_id}) if trunk.watched is not None else []
    return sorted(rows)


async def read_histories(session: AsyncSession, pairs: Collection[Pair], trunk: Trunk) -> Sequence[History]:
    """All series of some cases on some machines, along the trunk.

    Index: uq_series_case_id_variant_metric_machine_id, ix_reading_series_history, pk_branch_commit, pk_report, ix_step_news_of,
    pk_measured, pk_machine, ix_facts_change_machine_id.
    """
    series = await statements.rows(session, _SERIES, columns_of(pairs))
    ids = {"series": statements.array_of(row[0] for row in series)}
    known = {"branch": trunk.branch_id, "most": MOST_READINGS}
    rows = await statements.rows(session, _READINGS, ids | known, binary=True)
    levels = await statements.rows(
        session, _LEVELS, {"ids": statements.array_of({row[10] for row in rows if row[10] is not None})}
    )
    facts = await _facts(session, {machine for _, machine in pairs})
    measured_of = {row[0]: row[1:] for row in levels}
    of_series = {row[0]: row for row in series}
    observed: dict[int, list[Observed]] = {}
    for series_id, of_one in groupby(rows, key=itemgetter(0)):
        machine_id = of_series[series_id][2]
        observed[series_id] = []
        for _, _, commit_id, value, baseline, ratio, low, high, quality, method, measured_id, received_at in of_one:
            has_ratio = baseline is not None and ratio is not None
            if not has_ratio and quality == BUSY and not of_series[series_id][5]:
                continue  # nothing says by how much others moved it
            workload, harness, subject = measured_of.get(measured_id, ("", "", ""))
            level = (baseline if has_ratio else None, method, workload, harness, facts[machine_id].at(received_at))
            reading = Observed(commit_id, value, ratio, low, high, level, subject)
            observed[series_id].append(reading if has_ratio else reading._replace(log_ratio=None, low=None, high=None))
    claims = await _claims(session, ids, trunk.places)
    return [
        History(
            Watched(
                series_id,
                case_id,
                machine_id,
                variant,
                exact,
                bigger,
                is_watched=metric not in COUNTED_IN_ONE_SESSION,
            ),
            claims.get(series_id, ()),
            observed.get(series_id, ()),
        )
        for series_id, case_id, machine_id, variant, metric, exact, bigger in series
    ]


async def read_failures(
    session: AsyncSession, pairs: Collection[Pair], trunk: Trunk
) -> tuple[Sequence[Failing], Sequence[Measured]]:
    """The failures of some cases on some machines, and the measurements of those with failures.

    Index: ix_failure_case_history, uq_series_case_id_variant_metric_machine_id, ix_reading_series_history, pk_branch_commit.
    """
    branch = {"branch": trunk.branch_id}
    failing = [Failing._make(row) for row in await statements.rows(session, _FAILED, columns_of(pairs) | branch)]
    if not failing:
        return [], []
    failed = {(each.case_id, each.machine_id) for each in failing}
    return failing, [
        Measured._make(row) for row in await statements.rows(session, _MEASURED, columns_of(failed) | branch)
    ]


def columns_of(pairs: Iterable[Pair]) -> dict[str, Any]:
    """Pairs of case and machine as two arrays, for `unnest`."""
    ordered = sorted(pairs)
    return {
        "cases": statements.array_of(case for case, _ in ordered),
        "machines": statements.array_of(machine for _, machine in ordered),
    }


async def _claims(session: AsyncSession, ids: dict[str, str], places: Places) -> Mapping[int, Sequence[Claim]]:
    found: dict[int, list[Claim]] = defaultdict(list)
    for series_id, reference_id, commit_id, *judged in await statements.rows(session, _CLAIMS, ids, binary=True):
        if reference_id in places and commit_id in places and places[reference_id] < places[commit_id]:
            found[series_id].append(Claim(reference_id, commit_id, *judged))
    return found


class _Facts(NamedTuple):
    """The states of a machine, as numbers, and when each but the first began; the same facts have the same number."""

    since: Sequence[datetime]
    states: Sequence[int]

    def at(self, moment: datetime) -> int:
        return self.states[bisect_right(self.since, moment)]


async def _facts(session: AsyncSession, machines: Collection[int]) -> Mapping[int, _Facts]:
    values = {"machines": statements.array_of(machines)}
    changes: dict[int, list[tuple[datetime, Mapping[str, Any]]]] = defaultdict(list)
    for machine_id, at, before, after in await statements.rows(session, _FACTS_CHANGES, values):
        changes[machine_id].append((at, {**dict.fromkeys(after), **before}))
    found = {}
    for machine_id, facts in await statements.rows(session, _FACTS, values):
        state, told = dict(facts), []
        for _, before in reversed(changes[machine_id]):
            told.append(_text_of(state))
            state |= before
        told.append(_text_of(state))
        numbers: dict[str, int] = {}
        states = [numbers.setdefault(text, len(numbers)) for text in reversed(told)]
        found[machine_id] = _Facts([at for at, _ in changes[machine_id]], states)
    return found


def _text_of(facts: Mapping[str, Any]) -> str:
    return repr(sorted((fact, value) for fact, value in facts.items() if value is not None and fact != "name"))

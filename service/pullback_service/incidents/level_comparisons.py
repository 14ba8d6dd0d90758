"""Comparisons in turns across a change of level: the first commit of the new level with the last before it.

What another release of the harness, another text of the workload, another method or other facts of the machine measured does not
compare with what came before, so whatever that commit changed would never be seen.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, LiteralString, NamedTuple

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.ids import JobId, ProjectId
from pullback_service.incidents.anchor_comparisons import TIMEOUT_S
from pullback_service.incidents.confirmation import (
    BEHIND,
    COMPARISONS_OF_A_JOB,
    GIVEN_UP_AFTER_DAYS,
    MINUTES_A_DAY,
    MOST_CASES,
    Device,
    PlannedComparison,
    budget_of,
    measuring_devices,
    queue_job,
)
from pullback_service.incidents.detection_inputs import MachineFacts, Trunk, UploadContent, read_facts
from pullback_service.incidents.trunk_changes import MOST_READINGS
from pullback_service.logs import logger
from pullback_service.measuring_methods import differ

# A level that was left and reached again continues, so an edge is only where no other reading of the series has the level. What both commits share in
# all measured files needs no comparison, and no variant of a case is compared twice. A late reading can be the first one before the next.
_EDGES: Final[LiteralString] = f"""
SELECT series.machine_id, told.device, older.commit_id, newer.commit_id, series.case_id, series.variant,
       abs(coalesce(newer.log_ratio - older.log_ratio,
                    CASE WHEN older.value > 0 AND newer.value > 0 THEN ln(newer.value / older.value) END, 0)),
       apart.is_other,
       older.received_at, came.received_at
  FROM unnest(%(machines)s::bigint[], %(commits)s::bigint[]) touched (machine_id, commit_id)
  JOIN reading taken ON taken.commit_id = touched.commit_id AND NOT taken.dirty
  JOIN series ON series.id = taken.series_id AND series.machine_id = touched.machine_id AND series.metric = 'time'
 CROSS JOIN LATERAL (
       SELECT taken.commit_id, false AS is_next
        UNION ALL
      (SELECT reading.commit_id, true
         FROM reading
         JOIN branch_commit ON branch_commit.commit_id = reading.commit_id AND branch_commit.branch_id = %(branch)s
        WHERE reading.series_id = taken.series_id AND NOT reading.dirty
          AND (reading.ordered_at, reading.commit_id) > (taken.ordered_at, taken.commit_id)
        ORDER BY reading.ordered_at, reading.commit_id
        LIMIT 1)) chosen
  JOIN reading newer ON newer.series_id = taken.series_id AND newer.commit_id = chosen.commit_id
  JOIN "case" ON "case".id = series.case_id
 CROSS JOIN LATERAL (SELECT coalesce("case".device, 'cpu')) told (device)
  JOIN report came ON came.id = newer.report_id
  JOIN measured now ON now.id = newer.measured_id
  JOIN LATERAL (
       SELECT reading.commit_id, reading.measured_id, reading.method, reading.log_ratio, reading.value, report.received_at
         FROM reading
         JOIN branch_commit ON branch_commit.commit_id = reading.commit_id AND branch_commit.branch_id = %(branch)s
         JOIN report ON report.id = reading.report_id
        WHERE reading.series_id = newer.series_id AND NOT reading.dirty
          AND (reading.ordered_at, reading.commit_id) < (newer.ordered_at, newer.commit_id)
        ORDER BY reading.ordered_at DESC, reading.commit_id DESC
        LIMIT 1) older ON true
  JOIN measured before ON before.id = older.measured_id
  JOIN LATERAL (
       SELECT now.harness <> before.harness AND '' NOT IN (now.harness, before.harness)
              OR now.workload <> before.workload AND '' NOT IN (now.workload, before.workload)
              OR {differ("newer.method", "older.method")}) apart (is_other) ON true
 WHERE (now.subject <> before.subject OR now.subject = '')
   AND (apart.is_other OR EXISTS (
       SELECT FROM facts_change
        WHERE machine_id = series.machine_id AND at > older.received_at AND at <= came.received_at))
   AND NOT EXISTS (
       SELECT FROM (
              SELECT measured_id, method, report_id, commit_id FROM reading
               WHERE series_id = newer.series_id AND NOT dirty
               ORDER BY ordered_at DESC, commit_id DESC LIMIT %(most)s) other
         JOIN measured ON measured.id = other.measured_id
         JOIN report ON report.id = other.report_id
         JOIN commit ON commit.id = other.commit_id
        WHERE other.commit_id <> ALL (%(commits)s::bigint[])
          AND (NOT chosen.is_next OR (commit.ordered_at, commit.id) < (newer.ordered_at, newer.commit_id))
          AND NOT {differ("other.method", "newer.method")}
          AND (measured.harness, measured.workload) = (now.harness, now.workload)
          AND NOT EXISTS (
              SELECT FROM facts_change
               WHERE machine_id = series.machine_id AND at > least(report.received_at, came.received_at)
                 AND at <= greatest(report.received_at, came.received_at)))
   AND NOT EXISTS (
       SELECT FROM job
        WHERE job.kind = 'compare' AND job.machine_id = series.machine_id
          AND coalesce(job.requires ->> 'device', 'cpu') = told.device
          AND job.commit_id = newer.commit_id AND (chosen.is_next OR job.reference_id = older.commit_id)
          AND (job.cases = '{{}}' OR "case".label = ANY (job.cases))
          AND (job.variants = '{{}}' OR series.variant = ANY (job.variants)))
 ORDER BY newer.ordered_at, newer.commit_id, older.commit_id, series.case_id, series.variant
"""  # noqa: S608 - our own words
# A day of a machine is booked up to the last one for which cases of an earlier edge wait.
_BOOKED: Final[LiteralString] = """
SELECT machine_id, max((not_before AT TIME ZONE 'UTC')::date - (now() AT TIME ZONE 'UTC')::date)
  FROM job
 WHERE machine_id = ANY (%(machines)s::bigint[]) AND origin = 'confirm' AND priority = %(behind)s AND state = 'queued'
   AND not_before > now()
 GROUP BY machine_id
"""


class _Edge(NamedTuple):
    """A series at the first commit of a new level and at the last commit before it, and its move between them."""

    machine_id: int
    device: str
    reference_id: int
    commit_id: int
    case_id: int
    variant: str
    moved: float
    is_other: bool
    """Another harness, another text of the workload, or another method."""
    came_before: datetime
    came: datetime

    @property
    def of_device(self) -> Device:
        """The device of the machine that measured it."""
        return self.machine_id, self.device


async def compare_across_edges(
    session: AsyncSession,
    project_id: ProjectId,
    trunk: Trunk,
    upload: UploadContent,
    *,
    minutes_a_day: float = MINUTES_A_DAY,
) -> list[JobId]:
    """Queue comparisons of the first commits of new levels on each device of a machine, if an agent can measure it; returns the new jobs.

    A job has as many of the cases as the machine has time for today, those that moved most; the first job of a machine has a few at least.
    The others wait in jobs for the next days, in half of the minutes of a day.
    Index: as `measuring_devices` and `budget_of`; pk_reading, pk_series, pk_case, pk_measured, pk_report, ix_reading_series_history,
    uq_branch_commit_branch_id_commit_id, ix_facts_change_machine_id, ix_job_commit, ix_job_of_incidents.
    """
    measuring = await measuring_devices(session, project_id, upload.commits)
    machines = sorted({machine for machine, _ in measuring})
    touched = [(machine, commit) for machine in machines for commit in sorted(upload.commits[machine])]
    if not touched or trunk.branch_id is None:
        return []
    values = {
        "machines": statements.array_of(machine for machine, _ in touched),
        "commits": statements.array_of(commit for _, commit in touched),
        "branch": trunk.branch_id,
        "most": MOST_READINGS,
    }
    rows = [_Edge._make(row) for row in await statements.rows(session, _EDGES, values)]
    edges = [edge for edge in rows if edge.of_device in measuring]
    if not edges:
        return []
    facts = await read_facts(session, {edge.machine_id for edge in edges})
    budget = await budget_of(session, machines, minutes_a_day, behind=True)
    waiting = {"machines": statements.array_of(machines), "behind": BEHIND}
    booked: dict[int, int] = defaultdict(int, await statements.rows(session, _BOOKED, waiting))
    least, room = dict.fromkeys(machines, MOST_CASES), dict.fromkeys(machines, 0)  # of the last booked day
    jobs = []
    for (device, reference_id, commit_id), of_both in _first_of_series(
        edge for edge in edges if _is_edge(edge, facts)
    ).items():
        machine_id, _ = device
        variants = {edge.variant for edge in of_both}
        cases = _moved_most(of_both)
        at_once = max(budget.comparisons_left(machine_id) // len(variants), least[machine_id])
        least[machine_id] = 0  # the first ones alone go beyond the budget
        parts, cases = [(0, cases[:at_once])] if at_once else [], cases[at_once:]
        if at_once:
            budget.take(machine_id, len(parts[0][1]), len(variants), 1)
        while cases:
            if room[machine_id] < len(variants):
                booked[machine_id] += 1
                room[machine_id] = max(budget.comparisons_of_a_later_day(), MOST_CASES * len(variants))
            a_day = room[machine_id] // len(variants)
            part, cases = cases[:a_day], cases[a_day:]
            room[machine_id] -= len(part) * len(variants) + COMPARISONS_OF_A_JOB
            parts.append((booked[machine_id], part))
        for days_later, part in parts:
            if days_later > GIVEN_UP_AFTER_DAYS:
                logger.warning("edge_not_compared", commit=commit_id, machine=machine_id, cases=len(part))
                continue
            planned = PlannedComparison(
                reference_id,
                commit_id,
                "confirm",
                part,
                variants,
                priority=BEHIND,
                timeout_s=TIMEOUT_S,
                days_later=days_later,
            )
            jobs.append(JobId(await queue_job(session, project_id, planned, measuring[device])))
    return jobs


def _is_edge(edge: _Edge, facts: Mapping[int, MachineFacts]) -> bool:
    """True if the level is new, from what is stored of both readings; a machine that returned to an earlier state is not a new level."""
    return edge.is_other or facts[edge.machine_id].are_new(edge.came_before, edge.came)


def _first_of_series(edges: Iterable[_Edge]) -> Mapping[tuple[Device, int, int], Sequence[_Edge]]:
    """The first edge of each series, by device and both commits."""
    first: dict[tuple[Device, int, str], int] = {}
    results: dict[tuple[Device, int, int], list[_Edge]] = defaultdict(list)
    for edge in edges:
        if first.setdefault((edge.of_device, edge.case_id, edge.variant), edge.commit_id) == edge.commit_id:
            results[edge.of_device, edge.reference_id, edge.commit_id].append(edge)
    return results


def _moved_most(edges: Iterable[_Edge]) -> Sequence[int]:
    """The cases of edges, those that moved most first."""
    moved: dict[int, float] = defaultdict(float)
    for edge in edges:
        moved[edge.case_id] = max(moved[edge.case_id], edge.moved)
    return sorted(moved, key=lambda case: (-moved[case], case))

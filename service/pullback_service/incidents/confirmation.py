"""Confirmation: suspicions are measured again, paired, on the machine and the device that showed them."""

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Final, LiteralString, NamedTuple, TypeAlias

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.sql.functions import now

from pullback_service import statements
from pullback_service.ids import CommitId, ProjectId
from pullback_service.incidents.bisection import LONGER
from pullback_service.incidents.changes import Change, Places
from pullback_service.incidents.detection_inputs import Pair
from pullback_service.job_channel import notify_waiting_agents
from pullback_service.jobs.trust import trust_in
from pullback_service.models.agents import Agent
from pullback_service.models.incidents import Incident, IncidentJob
from pullback_service.models.jobs import Job
from pullback_service.models.series import Case

Device: TypeAlias = tuple[int, str]
"""A device of a machine."""

MOST_CASES: Final = 8
PRIORITY: Final = 50
AFTER_NEW: Final = PRIORITY - 1
"""The priority of measurements of suspicions of earlier days, and in results that are older than detection: after those of new ones."""
BEHIND: Final = -10
"""The priority of comparisons without a suspicion: after all requests of people, before the work of idle machines."""
TIMEOUT_S: Final = 3600.0
HEARD_OF_WITHIN_S: Final = 24 * 3600
"""An agent that was in touch within a day is expected to come back for a job."""
GIVEN_UP_AFTER_DAYS: Final = 14
"""The days that a job of an incident or of the anchor waits for its machine, and a bisection for an agent."""
NOBODY_CAME: Final = f"No agent of its machine took it within {GIVEN_UP_AFTER_DAYS} days."
OF_OLD_RESULTS: Final = 0.5
"""The share of a day's minutes that suspicions in old results and of earlier days may take: an upgrade finds hundreds at once, and leaves the rest to new ones."""
MINUTES_A_DAY: Final = 120.0
"""Minutes of a day (UTC) that a machine spends on jobs of incidents, unless the setting says otherwise: on one device at a time."""
_A_COMPARISON_S: Final = 15.0
_A_JOB_S: Final = 60.0
"""The estimated time of a job that has not ended: this, and one of the above for each comparison."""
COMPARISONS_OF_A_JOB: Final = int(_A_JOB_S / _A_COMPARISON_S)
"""The number of comparisons that take as long as the start of a job."""
_TODAY: Final = func.date_trunc("day", func.timezone("UTC", now()))

_MEASURING: Final[LiteralString] = """
SELECT DISTINCT ON (report.machine_id, told.device) report.machine_id, told.device, job.suite, job.requires
  FROM report
  JOIN job ON job.id = report.job_id
 CROSS JOIN LATERAL (SELECT coalesce(job.requires ->> 'device', 'cpu')) told (device)
 WHERE report.project_id = %(project)s AND report.machine_id = ANY (%(machines)s::bigint[]) AND report.status = 'accepted'
   AND job.kind = 'run' AND job.trust = 'trusted' AND NOT report.dirty
   AND EXISTS (
     SELECT FROM agent
      WHERE agent.machine_id = report.machine_id AND coalesce(agent.labels ->> 'device', 'cpu') = told.device
        AND agent.last_seen_at > now() - make_interval(secs => %(within_s)s)
        AND (agent.project_id IS NULL OR agent.project_id = report.project_id))
 ORDER BY report.machine_id, told.device, report.received_at DESC
"""
_DEVICES: Final[LiteralString] = """
SELECT id, coalesce(device, 'cpu') FROM "case" WHERE id = ANY (%(cases)s::bigint[])
"""
# Measured at both ends in the same variant, without a known change between them. The case that moved least is first: a case that is too
# noisy for the detector may be affected as well.
_UNAFFECTED: Final[LiteralString] = """
SELECT "case".id
  FROM series
  JOIN "case" ON "case".id = series.case_id
  JOIN reading older ON older.series_id = series.id AND older.commit_id = %(reference)s AND NOT older.dirty
  JOIN reading newer ON newer.series_id = series.id AND newer.commit_id = %(commit)s AND NOT newer.dirty
 WHERE series.project_id = %(project)s AND series.machine_id = %(machine)s AND series.variant = %(variant)s
   AND series.metric = 'time' AND coalesce("case".device, 'cpu') = %(device)s
   AND NOT EXISTS (SELECT FROM failure
                    WHERE case_id = "case".id AND machine_id = series.machine_id
                      AND commit_id IN (%(reference)s, %(commit)s))
   AND "case".id <> ALL (%(affected)s::bigint[])
 ORDER BY "case".workload = ANY (%(workloads)s::text[]),
       abs(coalesce(newer.log_ratio - older.log_ratio,
                    CASE WHEN older.value > 0 AND newer.value > 0 THEN ln(newer.value / older.value) END)),
       "case".id
 LIMIT 1
"""
_CHANGED: Final[LiteralString] = """
SELECT case_id, reference_id, commit_id FROM change
 WHERE project_id = %(project)s AND machine_id = %(machine)s AND standing <> 'refuted'
   AND (evidence <> 'anchor' OR %(by_anchor)s)
"""
_SPENT: Final[LiteralString] = """
  WITH today AS (SELECT date_trunc('day', now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC' AS began)
SELECT job.machine_id,
       sum(greatest(coalesce(worked.seconds, 0),
                    CASE WHEN job.state IN ('queued', 'leased', 'running') AND job.priority >= %(from_priority)s
                          AND coalesce(job.not_before < today.began + interval '1 day', true)
                         THEN %(a_job_s)s + job.effort * %(a_comparison_s)s * greatest(cardinality(job.cases), 1)
                              * greatest(cardinality(job.variants), 1)
                         ELSE 0 END))::float8 / 60
  FROM today, job
  LEFT JOIN LATERAL (
       SELECT extract(epoch FROM sum(coalesce(ended_at, now()) - leased_at)) AS seconds
         FROM attempt WHERE job_id = job.id AND leased_at >= (SELECT began FROM today)) worked ON true
 WHERE job.origin IN ('confirm', 'bisect') AND job.machine_id = ANY (%(machines)s::bigint[])
   AND (job.created_at >= today.began OR job.finished_at >= today.began OR job.state IN ('queued', 'leased', 'running'))
 GROUP BY job.machine_id
"""


_GIVE_UP: Final[LiteralString] = """
UPDATE job SET state = 'cancelled', finished_at = now(), failure_kind = 'cancelled', failure_message = %(nobody)s
 WHERE id IN (
       SELECT id FROM job
        WHERE state = 'queued' AND origin IN ('confirm', 'bisect', 'anchor')
          AND coalesce(not_before, created_at) < now() - make_interval(days => %(days)s)
          FOR UPDATE SKIP LOCKED)
"""


class MeasurementMethod(NamedTuple):
    """The way a machine measures a project on a device: the suite and labels of its newest run there."""

    machine_id: int
    device: str
    suite: str
    requires: dict[str, object]


async def measuring_devices(
    session: AsyncSession, project_id: ProjectId, machines: Collection[int]
) -> dict[Device, MeasurementMethod]:
    """The devices of machines whose agents can build a project's commits and compare them. Index: ix_report_machine, pk_job."""
    values = {
        "project": project_id, "machines": statements.array_of(machines), "within_s": HEARD_OF_WITHIN_S,
    }  # fmt: skip
    rows = await statements.rows(session, _MEASURING, values) if machines else []
    return {
        (machine, device): MeasurementMethod(machine, device, suite.partition(":")[0], requires)
        for machine, device, suite, requires in rows
    }


async def can_be_measured(session: AsyncSession, project_id: ProjectId) -> bool:
    """True if some agent can build a project's commits and compare them. Index: none of `agent`, a table of a few rows; as `measuring_devices`."""
    machines = set(await session.scalars(select(Agent.machine_id)))
    return bool(await measuring_devices(session, project_id, machines))


async def measuring_pairs(
    session: AsyncSession, project_id: ProjectId, pairs: Collection[Pair]
) -> dict[Pair, MeasurementMethod]:
    """The cases on machines that agents can measure, each on its own device. Index: as `measuring_devices`; pk_case."""
    measuring = await measuring_devices(session, project_id, {machine for _, machine in pairs})
    cases = statements.array_of({case for case, _ in pairs})
    devices = dict(await statements.rows(session, _DEVICES, {"cases": cases}) if measuring else [])
    by = {(case, machine): measuring.get((machine, devices.get(case, ""))) for case, machine in pairs}
    return {pair: result for pair, result in by.items() if result is not None}


async def give_up_waiting(session: AsyncSession) -> None:
    """Cancel jobs of incidents and anchors whose machine stayed away too long. Index: ix_job_state."""
    await statements.run(session, _GIVE_UP, {"nobody": NOBODY_CAME, "days": GIVEN_UP_AFTER_DAYS})


class Budget:
    """The minutes of today that machines have left for jobs of incidents."""

    def __init__(self, left: Mapping[int, float], minutes_a_day: float) -> None:
        self._left = dict(left)
        self._minutes_a_day = minutes_a_day

    def comparisons_left(self, machine_id: int) -> int:
        """The number of comparisons for which one more job has time."""
        left_s = 60 * self._left.get(machine_id, self._minutes_a_day) - _A_JOB_S
        return max(int(left_s / _A_COMPARISON_S), 0)

    def comparisons_of_a_later_day(self) -> int:
        """The number of comparisons for which one more job has time on another day, in the share that new suspicions leave."""
        left_s = 60 * OF_OLD_RESULTS * self._minutes_a_day - _A_JOB_S
        return max(int(left_s / _A_COMPARISON_S), 0)

    def take(self, machine_id: int, cases: int, variants: int, effort: int, *, of_old_results: bool = False) -> bool:
        """Take the estimated time of a job if any time is left for it; false if none is."""
        left = self._left.get(machine_id, self._minutes_a_day)
        reserved = (1 - OF_OLD_RESULTS) * self._minutes_a_day if of_old_results else 0.0
        if left <= reserved:
            return False
        self._left[machine_id] = left - (_A_JOB_S + effort * _A_COMPARISON_S * max(cases, 1) * max(variants, 1)) / 60
        return True


async def budget_of(
    session: AsyncSession, machines: Collection[int], minutes_a_day: float, *, behind: bool = False
) -> Budget:
    """The minutes that machines have left today. Waiting jobs of the lowest priority count only if the budget is for such (`behind`).

    Index: ix_job_of_incidents, uq_attempt_job_id_number.
    """
    values = {
        "machines": statements.array_of(machines), "a_job_s": _A_JOB_S, "a_comparison_s": _A_COMPARISON_S,
        "from_priority": BEHIND if behind else BEHIND + 1,
    }  # fmt: skip
    rows = await statements.rows(session, _SPENT, values) if machines else []
    return Budget({machine: minutes_a_day - spent for machine, spent in rows}, minutes_a_day)


def chosen_to_measure(changes: Sequence[Change], measuring: Mapping[Pair, MeasurementMethod]) -> list[Change]:
    """The largest suspicions of an incident on one device, of at most eight cases; none if no agent can measure them."""
    open_ = [change for change in changes if change.standing not in {"claimed", "refuted"} and change.worse]
    return shown_most(open_, measuring)


def shown_most(changes: Sequence[Change], measuring: Mapping[Pair, MeasurementMethod]) -> list[Change]:
    """The largest of some changes on one device of a machine, of at most eight cases; none if no agent can measure them."""
    measurable = [change for change in changes if change.series_id is not None and change.pair in measuring]
    ordered = sorted(
        measurable, key=lambda change: (-abs(change.log_ratio or 0.0), change.case_id, change.series_id or 0)
    )
    of_device = [change for change in ordered if measuring[change.pair] == measuring[ordered[0].pair]]
    cases = list(dict.fromkeys(change.case_id for change in of_device))[:MOST_CASES]
    return [change for change in of_device if change.case_id in cases]


def effort_for(chosen: Sequence[Change]) -> int:
    """The effort of a measurement: longer if an earlier answer was ambiguous."""
    return LONGER if any(change.standing == "ambiguous" for change in chosen) else 1


async def queue_confirmation(
    session: AsyncSession,
    incident: Incident,
    chosen: Sequence[Change],
    places: Places,
    by: MeasurementMethod,
    *,
    asked_by: str | None = None,
    of_old_results: bool = False,
) -> None:
    """Queue the job that compares the ends of all chosen ranges, with an unaffected case, and wake agents."""
    reference_id = min((change.reference_id for change in chosen), key=places.__getitem__)
    commit_id = max((change.commit_id for change in chosen), key=places.__getitem__)
    control_id = await _unaffected(session, incident, chosen, by.device, (reference_id, commit_id), places)
    incident.job_id = await queue_comparison(
        session,
        incident,
        PlannedComparison(
            reference_id,
            commit_id,
            cases={change.case_id for change in chosen},
            variants={change.variant for change in chosen if change.variant is not None},
            effort=effort_for(chosen),
            origin="confirm",
            control_id=control_id,
            priority=AFTER_NEW if of_old_results else PRIORITY,
        ),
        by,
        asked_by=asked_by,
    )
    incident.asked += 1


class PlannedComparison(NamedTuple):
    """A comparison of two commits, with the whole suite if no cases are named."""

    reference_id: int
    commit_id: int
    origin: str
    cases: Collection[int] = ()
    variants: Collection[str] = ()
    effort: int = 1
    control_id: int | None = None
    priority: int = PRIORITY
    timeout_s: float = TIMEOUT_S
    days_later: int = 0
    """The number of days (UTC) from today on which it may begin."""


async def queue_comparison(
    session: AsyncSession,
    incident: Incident,
    planned: PlannedComparison,
    by: MeasurementMethod,
    *,
    asked_by: str | None = None,
) -> int:
    """Queue a job for an incident and wake agents; returns its id."""
    job_id = await queue_job(session, incident.project_id, planned, by, asked_by=asked_by)
    session.add(IncidentJob(job_id=job_id, incident_id=incident.id, control_id=planned.control_id))
    return job_id


async def queue_job(
    session: AsyncSession,
    project_id: int,
    planned: PlannedComparison,
    by: MeasurementMethod,
    *,
    asked_by: str | None = None,
) -> int:
    """Queue the job of a comparison on a machine and wake agents; returns its id. Index: pk_case, pk_commit."""
    cases = {*planned.cases, *(() if planned.control_id is None else (planned.control_id,))}
    labels = select(Case.label).where(Case.id.in_(cases)).order_by(Case.id)
    job = Job(
        project_id=project_id,
        commit_id=planned.commit_id,
        reference_id=planned.reference_id,
        suite=by.suite,
        cases=list(await session.scalars(labels)) if cases else [],
        variants=sorted(planned.variants),
        kind="compare",
        priority=planned.priority,
        requires=by.requires,
        timeout_s=planned.timeout_s,
        effort=planned.effort,
        machine_id=by.machine_id,
        origin=planned.origin,
        asked_by=asked_by,
        not_before=func.timezone("UTC", _TODAY + timedelta(days=planned.days_later)) if planned.days_later else None,
        trust=await trust_in(session, {CommitId(planned.reference_id), CommitId(planned.commit_id)}),
    )
    session.add(job)
    await session.flush()
    await notify_waiting_agents(session)
    return job.id


async def _unaffected(
    session: AsyncSession,
    incident: Incident,
    chosen: Sequence[Change],
    device: str,
    ends: tuple[int, int],
    places: Places,
) -> int | None:
    """The case of a device without a known change that moved least between both ends, of another workload if possible; None if there is none.

    Index: ix_change_project_id, ix_series_project_id, pk_reading, ix_failure_case_history.
    """
    on_machine = {"project": incident.project_id, "machine": chosen[0].machine_id}
    by_anchor = {
        "by_anchor": chosen[0].evidence == "anchor"
    }  # of a single commit, all that drifted since then says nothing
    changed = {change.case_id for change in chosen}
    first, last = places[ends[0]], places[ends[1]]
    for case_id, reference_id, commit_id in await statements.rows(session, _CHANGED, on_machine | by_anchor):
        if places.get(reference_id, last) < last and places.get(commit_id, first) > first:
            changed.add(case_id)
    workloads = await session.scalars(select(Case.workload).where(Case.id.in_({each.case_id for each in chosen})))
    row = await statements.row(
        session,
        _UNAFFECTED,
        on_machine
        | {
            "variant": chosen[0].variant,
            "device": device,
            "reference": ends[0],
            "commit": ends[1],
            "affected": statements.array_of(changed),
            "workloads": workloads.all(),
        },
    )
    return None if row is None else int(row[0])

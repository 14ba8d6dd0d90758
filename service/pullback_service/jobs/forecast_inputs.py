"""The inputs of the queue's forecast: waiting jobs, machines with their agents, durations of past work.

The queue is one for all projects, so a forecast counts jobs of projects that its reader may not see; it names none.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import LiteralString

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.jobs.forecast import Forecast, QueueMachine, WaitingJob, Work, forecast, remaining_s
from pullback_service.jobs.leases import FAIR_WITHIN_S, MOST_COUNTED
from pullback_service.models.agents import SILENT_AFTER_S

MOST_WAITING = 2_000
"""The most waiting jobs with a forecast; in a longer queue the end has none."""
# How many attempts of a machine are looked at for how long its work takes; more of them would be of older engines.
_LOOK_BACK = 200

# As many of each project, those that may be taken first, so that thousands that wait for something do not hide the next jobs.
_QUEUE: LiteralString = """
SELECT id, project_id, suite, kind, requires, machine_id, trust = 'trusted', approved_at IS NOT NULL,
       greatest(extract(epoch FROM not_before - now())::float8, 0), priority
  FROM (SELECT *, row_number() OVER (PARTITION BY project_id, least(priority, 0)
                                     ORDER BY (trust = 'trusted' OR approved_at IS NOT NULL) AND (not_before IS NULL OR not_before <= now()) DESC,
                                              priority DESC, attempts, id) AS turn
          FROM job
         WHERE state = 'queued'
         ORDER BY least(priority, 0) DESC, turn, id
         LIMIT %(most)s) next
 ORDER BY priority DESC, attempts, id
"""
_AGENTS: LiteralString = """
SELECT m.id, m.name, m.accepts = 'untrusted', a.labels, a.refuses,
       a.last_seen_at > now() - make_interval(secs => %(silent_after_s)s)
  FROM machine m JOIN agent a ON a.machine_id = m.id ORDER BY m.id, a.id
"""
_RUNNING: LiteralString = """
SELECT t.machine_id, j.id, j.project_id, j.suite, j.kind, extract(epoch FROM now() - t.leased_at)::float8,
       CASE WHEN jsonb_typeof(t.progress -> 'done') = 'number' THEN (t.progress ->> 'done')::float8 ELSE 0 END,
       CASE WHEN jsonb_typeof(t.progress -> 'total') = 'number' THEN (t.progress ->> 'total')::float8 ELSE 0 END
  FROM attempt t JOIN job j ON j.id = t.job_id WHERE t.state IN ('leased', 'running')
"""
_DURATIONS: LiteralString = """
SELECT m.id, j.project_id, j.suite, j.kind,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM t.ended_at - t.leased_at)::float8)
  FROM (SELECT DISTINCT machine_id AS id FROM agent) m
 CROSS JOIN LATERAL (SELECT * FROM attempt WHERE machine_id = m.id ORDER BY id DESC LIMIT %(look_back)s) t
  JOIN job j ON j.id = t.job_id
 WHERE t.state = 'done'
 GROUP BY m.id, j.project_id, j.suite, j.kind
"""
# As `leases.claim` counts it.
_USED: LiteralString = """
SELECT m.id, j.project_id, sum(extract(epoch FROM t.ended_at - greatest(t.leased_at, hour.began)))::float8
  FROM (SELECT now() - make_interval(secs => %(within_s)s) AS began) hour,
       (SELECT DISTINCT machine_id AS id FROM agent) m
 CROSS JOIN LATERAL (
       SELECT job_id, leased_at, coalesce(ended_at, now()) AS ended_at
         FROM attempt WHERE machine_id = m.id ORDER BY id DESC LIMIT %(most)s) t
  JOIN job j ON j.id = t.job_id
 WHERE t.ended_at > hour.began
 GROUP BY m.id, j.project_id
"""


@dataclass(frozen=True, slots=True)
class QueueForecast:
    """The forecast of every waiting job, the next one first, and of every running one when it will be done."""

    waiting: Mapping[int, Forecast]
    remaining_s: Mapping[int, float | None]
    durations: Mapping[tuple[int, Work], float]


async def outlook(session: AsyncSession) -> QueueForecast:
    """The forecast of the queue as it is now. Index: ix_job_state, uq_attempt_machine_active, ix_attempt_machine_id."""
    durations = {
        (machine_id, (project_id, suite, kind)): seconds
        for machine_id, project_id, suite, kind, seconds in await statements.rows(
            session, _DURATIONS, {"look_back": _LOOK_BACK}
        )
    }
    left: dict[int, float | None] = {}
    busy: dict[int, float | None] = {}
    for machine_id, job_id, project_id, suite, kind, elapsed_s, done, total in await statements.rows(
        session, _RUNNING, {}
    ):
        takes_s = durations.get((machine_id, (project_id, suite, kind)))
        left[job_id] = busy[machine_id] = remaining_s(
            elapsed_s=elapsed_s, takes_s=takes_s, done=int(done), total=int(total)
        )
    queue = [
        WaitingJob(job_id, (project_id, suite, kind), *rest)
        for job_id, project_id, suite, kind, *rest in await statements.rows(session, _QUEUE, {"most": MOST_WAITING})
    ]
    used_s = {
        (machine_id, project_id): seconds
        for machine_id, project_id, seconds in await statements.rows(
            session, _USED, {"within_s": FAIR_WITHIN_S, "most": MOST_COUNTED}
        )
    }
    return QueueForecast(forecast(queue, await _benches(session, busy), durations, used_s), left, durations)


async def _benches(session: AsyncSession, busy: Mapping[int, float | None]) -> list[QueueMachine]:
    """Machines with agents. One at work is here, whenever its agents asked for more last."""
    by_machine: dict[int, list[tuple[str, bool, dict[str, object], str | None, bool]]] = {}
    for machine_id, *rest in await statements.rows(session, _AGENTS, {"silent_after_s": SILENT_AFTER_S}):
        by_machine.setdefault(machine_id, []).append((rest[0], rest[1], rest[2], rest[3], rest[4]))
    return [
        QueueMachine(
            machine_id=machine_id,
            name=agents[0][0],
            offers=tuple(
                labels for _, _, labels, refuses, here in agents if refuses is None and (here or machine_id in busy)
            ),
            away=tuple(labels for _, _, labels, _, here in agents if not here and machine_id not in busy),
            accepts_untrusted=agents[0][1],
            free_in_s=busy.get(machine_id, 0.0),
            refusal=next((refuses for _, _, _, refuses, here in agents if refuses and here), None),
        )
        for machine_id, agents in by_machine.items()
    ]

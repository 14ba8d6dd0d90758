"""Comparing the first commit that another release of the harness measured with the last before it, in turns.

What was measured by different releases does not compare, so whatever that commit changed would never be seen.
"""

from typing import Final, LiteralString

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.ids import CommitId, JobId, ProjectId
from pullback_service.incidents.anchoring import PRIORITY, TIMEOUT_S
from pullback_service.incidents.confirming import measuring_machines
from pullback_service.incidents.watching import Trunk, UploadContent
from pullback_service.job_channel import ring
from pullback_service.jobs.trust import trust_in
from pullback_service.models.jobs import Job

# Of each machine the oldest. What both commits share in all measured files needs no comparison.
_EDGES: Final[LiteralString] = """
SELECT DISTINCT ON (series.machine_id) series.machine_id, older.commit_id, newer.commit_id
  FROM unnest(%(machines)s::bigint[], %(commits)s::bigint[]) touched (machine_id, commit_id)
  JOIN reading newer ON newer.commit_id = touched.commit_id AND NOT newer.dirty
  JOIN series ON series.id = newer.series_id AND series.machine_id = touched.machine_id AND series.metric = 'time'
  JOIN measured now ON now.id = newer.measured_id
  JOIN LATERAL (
       SELECT reading.commit_id, reading.measured_id
         FROM reading
         JOIN branch_commit ON branch_commit.commit_id = reading.commit_id AND branch_commit.branch_id = %(branch)s
        WHERE reading.series_id = newer.series_id AND NOT reading.dirty
          AND (reading.ordered_at, reading.commit_id) < (newer.ordered_at, newer.commit_id)
        ORDER BY reading.ordered_at DESC, reading.commit_id DESC
        LIMIT 1) older ON true
  JOIN measured before ON before.id = older.measured_id
 WHERE now.harness <> before.harness AND '' NOT IN (now.harness, before.harness)
   AND (now.subject <> before.subject OR now.subject = '')
   AND NOT EXISTS (
       SELECT FROM job
        WHERE job.kind = 'compare' AND job.machine_id = series.machine_id
          AND job.commit_id = newer.commit_id AND job.reference_id = older.commit_id)
 ORDER BY series.machine_id, newer.ordered_at, newer.commit_id
"""


async def compare_across_edges(
    session: AsyncSession, project_id: ProjectId, trunk: Trunk, brought: UploadContent
) -> list[JobId]:
    """Queue the comparisons that uploads by another release of the harness ask for, where an agent can measure them; the new jobs.

    Index: as `measuring_machines`; pk_reading, pk_series, pk_measured, ix_reading_series_history, uq_branch_commit_branch_id_commit_id,
    ix_job_commit.
    """
    measuring = await measuring_machines(session, project_id, brought.commits)
    touched = [(machine, commit) for machine in sorted(measuring) for commit in sorted(brought.commits[machine])]
    if not touched or trunk.branch_id is None:
        return []
    values = {
        "machines": statements.array_of(machine for machine, _ in touched),
        "commits": statements.array_of(commit for _, commit in touched),
        "branch": trunk.branch_id,
    }
    jobs = [
        Job(
            project_id=project_id,
            commit_id=commit_id,
            reference_id=reference_id,
            suite=measuring[machine_id].suite,
            kind="compare",
            priority=PRIORITY,
            requires=measuring[machine_id].requires,
            timeout_s=TIMEOUT_S,
            machine_id=machine_id,
            origin="confirm",
            trust=await trust_in(session, {CommitId(reference_id), CommitId(commit_id)}),
        )
        for machine_id, reference_id, commit_id in await statements.rows(session, _EDGES, values)
    ]
    session.add_all(jobs)
    await session.flush()
    if jobs:
        await ring(session)
    return [JobId(job.id) for job in jobs]

"""Comparing the newest commit of the trunk with the anchor of a project, once a week on each device of a machine that measures it.

Each step of a slow drift is too small to be seen; their sum is not.
"""

from collections.abc import Sequence
from typing import Final, LiteralString

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.commits.trunk import TRUNK
from pullback_service.ids import JobId, ProjectId
from pullback_service.incidents.confirmation import (
    BEHIND,
    HEARD_OF_WITHIN_S,
    PlannedComparison,
    measuring_devices,
    queue_job,
)

EVERY_DAYS: Final = 7
TIMEOUT_S: Final = 4 * 3600.0

_ANCHORED: Final[LiteralString] = "SELECT id FROM project WHERE anchor_sha IS NOT NULL ORDER BY id"
# The row is locked, so that of two workers the second sees the jobs of the first.
_ANCHOR: Final[LiteralString] = f"""
SELECT anchor.commit_id, anchor.branch_id, anchor.position
  FROM project
  JOIN commit ON commit.project_id = project.id AND commit.sha = project.anchor_sha
  JOIN branch ON branch.project_id = project.id AND branch.name = {TRUNK}
  JOIN branch_commit anchor ON anchor.branch_id = branch.id AND anchor.commit_id = commit.id
 WHERE project.id = %(project)s
   FOR NO KEY UPDATE OF project
"""  # noqa: S608 - our own words
_DUE: Final[LiteralString] = """
SELECT DISTINCT agent.machine_id, told.device
  FROM agent
 CROSS JOIN LATERAL (SELECT coalesce(agent.labels ->> 'device', 'cpu')) told (device)
 WHERE agent.last_seen_at > now() - make_interval(secs => %(within_s)s)
   AND (agent.project_id IS NULL OR agent.project_id = %(project)s)
   AND NOT EXISTS (
       SELECT FROM job
        WHERE job.origin = 'anchor' AND job.project_id = %(project)s AND job.machine_id = agent.machine_id
          AND coalesce(job.requires ->> 'device', 'cpu') = told.device
          AND (job.created_at > now() - make_interval(days => %(days)s) OR job.state IN ('queued', 'leased', 'running')))
"""
_NEWEST: Final[LiteralString] = """
SELECT DISTINCT ON (report.machine_id, told.device) report.machine_id, told.device, report.commit_id
  FROM report
 CROSS JOIN LATERAL (SELECT coalesce(report.device, 'cpu')) told (device)
  JOIN branch_commit ON branch_commit.commit_id = report.commit_id AND branch_commit.branch_id = %(branch)s
 WHERE report.project_id = %(project)s AND report.machine_id = ANY (%(machines)s::bigint[])
   AND report.status = 'accepted' AND NOT report.dirty AND branch_commit.position > %(position)s
   AND NOT EXISTS (
       SELECT FROM job
        WHERE job.origin = 'anchor' AND job.project_id = %(project)s AND job.machine_id = report.machine_id
          AND coalesce(job.requires ->> 'device', 'cpu') = told.device AND job.reference_id = %(anchor)s AND job.commit_id = report.commit_id AND job.state = 'done')
 ORDER BY report.machine_id, told.device, branch_commit.position DESC
"""


async def anchored_projects(session: AsyncSession) -> Sequence[ProjectId]:
    """The projects that have an anchor. Index: none, a table of a few rows."""
    return [ProjectId(row[0]) for row in await statements.rows(session, _ANCHORED, {})]


async def compare_with_anchor(session: AsyncSession, project_id: ProjectId) -> list[JobId]:
    """Queue the comparisons with the anchor of a project that are due; returns the new jobs.

    Nothing is due if the anchor is no known commit of the trunk, or if nothing was measured after it.
    Index: pk_project, uq_commit_project_id_sha, uq_branch_project_id_name, pk_branch_commit, ix_job_anchor, ix_report_machine.
    """
    anchor = await statements.row(session, _ANCHOR, {"project": project_id})
    if anchor is None:
        return []
    anchor_id, branch_id, position = anchor
    of_project = {"project": project_id, "within_s": HEARD_OF_WITHIN_S, "days": EVERY_DAYS}
    due = set(await statements.rows(session, _DUE, of_project))
    measuring = await measuring_devices(session, project_id, {machine for machine, _ in due})
    values = {
        "project": project_id, "branch": branch_id, "machines": statements.array_of({machine for machine, _ in due}), "position": position,
        "anchor": anchor_id,
    }  # fmt: skip
    newest = await statements.rows(session, _NEWEST, values) if measuring else []
    jobs = []
    for machine_id, device, commit_id in newest:
        by = measuring.get((machine_id, device))
        if by is None or (machine_id, device) not in due:
            continue
        planned = PlannedComparison(anchor_id, commit_id, "anchor", priority=BEHIND, timeout_s=TIMEOUT_S)
        jobs.append(JobId(await queue_job(session, project_id, planned, by)))
    return jobs

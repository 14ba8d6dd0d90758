"""Measuring suspicions again, in turns, on the machine that raised them."""

from collections.abc import Collection, Sequence
from typing import Final, LiteralString, NamedTuple

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.ids import CommitId, ProjectId
from pullback_service.incidents.changes import Change, Places
from pullback_service.job_channel import ring
from pullback_service.jobs.trust import trust_in
from pullback_service.models.jobs import Job
from pullback_service.models.series import Case

MOST_CASES: Final = 8
PRIORITY: Final = 50
TIMEOUT_S: Final = 3600.0
HEARD_OF_WITHIN_S: Final = 24 * 3600
"""An agent that was heard of within a day will come back for a job."""

_MEASURING: Final[LiteralString] = """
SELECT DISTINCT ON (report.machine_id) report.machine_id, job.suite, job.requires
  FROM report
  JOIN job ON job.id = report.job_id
 WHERE report.project_id = %(project)s AND report.machine_id = ANY (%(machines)s::bigint[]) AND report.status = 'accepted'
   AND job.kind = 'run' AND job.trust = 'trusted' AND NOT report.dirty
   AND coalesce(job.requires ->> 'device', 'cpu') = 'cpu' -- as two commits are compared
   AND EXISTS (
     SELECT FROM agent
      WHERE agent.machine_id = report.machine_id AND agent.last_seen_at > now() - make_interval(secs => %(within_s)s)
        AND (agent.project_id IS NULL OR agent.project_id = report.project_id))
 ORDER BY report.machine_id, report.received_at DESC
"""


class Measuring(NamedTuple):
    """The way a machine measures a project: by the suite of its newest run."""

    machine_id: int
    suite: str
    requires: dict[str, object]


async def measuring_machines(
    session: AsyncSession, project_id: ProjectId, machines: Collection[int]
) -> dict[int, Measuring]:
    """Those machines whose agents can build a project's commits and compare them. Index: ix_report_machine, pk_job."""
    values = {
        "project": project_id, "machines": statements.array_of(machines), "within_s": HEARD_OF_WITHIN_S,
    }  # fmt: skip
    rows = await statements.rows(session, _MEASURING, values) if machines else []
    return {row[0]: Measuring(row[0], row[1].partition(":")[0], row[2]) for row in rows}


def chosen_to_measure(changes: Sequence[Change], machines: Collection[int]) -> list[Change]:
    """The suspicions of one machine that show an incident most, of at most eight cases; none where no agent can measure them."""
    open_ = [
        change
        for change in changes
        if change.standing not in {"claimed", "refuted"}
        and change.worse
        and change.series_id is not None
        and change.machine_id in machines
    ]
    ordered = sorted(open_, key=lambda change: (-abs(change.log_ratio or 0.0), change.case_id, change.series_id or 0))
    of_machine = [change for change in ordered if change.machine_id == ordered[0].machine_id]
    cases = list(dict.fromkeys(change.case_id for change in of_machine))[:MOST_CASES]
    return [change for change in of_machine if change.case_id in cases]


async def queue_confirmation(
    session: AsyncSession, project_id: ProjectId, chosen: Sequence[Change], places: Places, by: Measuring
) -> int:
    """Queue the job that compares the ends of all chosen ranges, and ring the bell; its id."""
    reference_id = min((change.reference_id for change in chosen), key=places.__getitem__)
    commit_id = max((change.commit_id for change in chosen), key=places.__getitem__)
    cases = {change.case_id for change in chosen}
    labels = (await session.scalars(select(Case.label).where(Case.id.in_(cases)).order_by(Case.id))).all()
    job = Job(
        project_id=project_id,
        commit_id=commit_id,
        reference_id=reference_id,
        suite=by.suite,
        cases=list(labels),
        variants=sorted({change.variant for change in chosen if change.variant is not None}),
        kind="compare",
        priority=PRIORITY,
        requires=by.requires,
        timeout_s=TIMEOUT_S,
        machine_id=by.machine_id,
        origin="confirm",
        trust=await trust_in(session, {CommitId(reference_id), CommitId(commit_id)}),
    )
    session.add(job)
    await session.flush()
    await ring(session)
    return job.id

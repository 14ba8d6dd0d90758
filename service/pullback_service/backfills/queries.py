"""Finding commits without results, and queueing jobs for them.

A commit needs no job if there was one for the same measurement, however it ended (a commit that does not build is a
result, a cancelled job was not wanted, a lost one is retried by a person), or if results of the suite were uploaded.
So asking again makes nothing twice, and `limit` bounds what is under way and not what one request makes.

Commits newer than the newest one that needs no job are fresh: somebody waits for them. They come before all of the history, at
a higher priority, and are not kept out by what is under way.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.backfills.order import newest_first, widest_gap_first
from pullback_service.caller import name_of_caller
from pullback_service.errors import NotFoundError
from pullback_service.fields import HIGHEST_PRIORITY
from pullback_service.ids import CommitId, ProjectId
from pullback_service.job_channel import notify_waiting_agents
from pullback_service.jobs.labels import column_with_device, device_of, with_device
from pullback_service.jobs.queries import UNFINISHED, take_turns
from pullback_service.models.commits import Branch, BranchCommit, Commit
from pullback_service.models.jobs import Job
from pullback_service.models.projects import Project
from pullback_service.models.reports import Report
from pullback_service.models.series import Case, Point, Series
from pullback_service.projects.schemas import BackfillPolicy

KIND = "run"
FRESH_BEFORE_BACKFILL = 100
"""The difference between the priority of new commits and that of their backfill; by default, new commits have the priority of requested jobs."""


@dataclass(frozen=True, slots=True)
class MissingCommit:
    """A commit without a result, with its place on the branch and the job it was given."""

    id: CommitId
    sha: str
    title: str | None
    position: int
    job_id: int | None = None


@dataclass(frozen=True, slots=True)
class Backfill:
    """The result of a backfill: how many commits were examined, missing and under way; and which were chosen."""

    looked_at: int
    missing: int
    under_way: int
    chosen: Sequence[MissingCommit]


async def backfill(session: AsyncSession, project_id: ProjectId, policy: BackfillPolicy, *, dry_run: bool) -> Backfill:
    """Queue jobs for missing commits, as many as there is room for. Index: pk_branch_commit, ix_job_commit."""
    if not dry_run:
        await _take_turns(session, project_id)
    commits = await _commits_of(session, project_id, policy)
    known = await _known(session, project_id, policy, [commit.id for commit in commits])
    under_way = await _under_way(session, project_id, policy)
    choose = newest_first if policy.order == "newest" else widest_gap_first
    done = {place for place, commit in enumerate(commits) if commit.id in known}
    fresh = range(len(commits) - 1, max(done, default=len(commits)), -1)[: policy.limit]
    history = choose(len(commits), done.union(fresh))
    places = [*fresh, *islice(history, max(policy.limit - under_way - len(fresh), 0))]
    chosen = [commits[place] for place in places]
    missing = len(commits) - len(done)
    made = {} if dry_run else await _queue(session, project_id, policy, chosen, fresh=len(fresh))
    return Backfill(
        looked_at=len(commits),
        missing=missing,
        under_way=under_way,
        chosen=[
            MissingCommit(commit.id, commit.sha, commit.title, commit.position, made.get(commit.id))
            for commit in chosen
            if dry_run or commit.id in made
        ],
    )


async def projects_with_policy(
    session: AsyncSession, project_id: ProjectId | None = None
) -> Sequence[tuple[ProjectId, str, dict[str, Any]]]:
    """Projects that are filled without anybody asking: all of them, or the one, if it is."""
    filled = (
        select(Project.id, Project.name, Project.backfill).where(Project.backfill.is_not(None)).order_by(Project.id)
    )
    rows = await session.execute(filled if project_id is None else filled.where(Project.id == project_id))
    return [(ProjectId(row.id), row.name, row.backfill) for row in rows]


async def _take_turns(session: AsyncSession, project_id: ProjectId) -> None:
    await session.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(f"backfill {project_id}", 0))))


async def _commits_of(session: AsyncSession, project_id: ProjectId, policy: BackfillPolicy) -> list[MissingCommit]:
    """The newest commits of the branch, oldest first. Index: uq_branch_project_id_name, pk_branch_commit."""
    branch_id = await session.scalar(
        select(Branch.id).where(Branch.project_id == project_id, Branch.name == policy.branch)
    )
    if branch_id is None:
        raise NotFoundError(
            f"This project has no branch {policy.branch!r}: check the name, or send its history with `pullback log`."
        )
    rows = await session.execute(
        select(Commit.id, Commit.sha, Commit.title, BranchCommit.position)
        .join(Commit, Commit.id == BranchCommit.commit_id)
        .where(BranchCommit.branch_id == branch_id)
        .order_by(BranchCommit.position.desc())
        .limit(policy.depth)
    )
    return [MissingCommit(CommitId(row.id), row.sha, row.title, row.position) for row in rows][::-1]


async def _known(
    session: AsyncSession, project_id: ProjectId, policy: BackfillPolicy, commit_ids: Sequence[int]
) -> set[int]:
    """Commits that need no job. Index: ix_job_commit; ix_report_commit_id, ix_point_report_id."""
    known = set(
        await session.scalars(
            select(Job.commit_id).where(
                Job.project_id == project_id,
                Job.commit_id == func.any(list(commit_ids)),
                Job.suite == policy.suite,
                Job.kind == KIND,
                column_with_device(Job.requires) == with_device(policy.requires),
                Job.machine_id.is_(None),
            )
        )
    )
    if ":" in policy.suite:
        return known  # a part of a suite: reports name the suite alone, so only jobs tell
    device = device_of(policy.requires)
    measured = (
        select(Point.id)
        .join(Series, Series.id == Point.series_id)
        .join(Case, Case.id == Series.case_id)
        .where(Point.report_id == Report.id, Case.device == device)
    )
    uploaded = select(Report.commit_id).where(
        Report.commit_id == func.any(list(commit_ids)),
        Report.suite == policy.suite,
        Report.job_id.is_(None),
        Report.points > 0,
        measured.exists(),
    )
    return known | set(await session.scalars(uploaded))


async def _under_way(session: AsyncSession, project_id: ProjectId, policy: BackfillPolicy) -> int:
    """Jobs of this backfill that wait or run. Index: ix_job_state."""
    counted = await session.scalar(
        select(func.count()).where(
            Job.state.in_(UNFINISHED),
            Job.origin == "backfill",
            Job.project_id == project_id,
            Job.suite == policy.suite,
            column_with_device(Job.requires) == with_device(policy.requires),
        )
    )
    return counted or 0


async def _queue(
    session: AsyncSession, project_id: ProjectId, policy: BackfillPolicy, chosen: Sequence[MissingCommit], *, fresh: int
) -> dict[int, int]:
    """Jobs by their commits, of which the first so many are `fresh`; one that somebody else asked for meanwhile is left out."""
    for commit_id in sorted(commit.id for commit in chosen):  # one order for everybody
        await take_turns(session, commit_id, KIND, policy.suite)
    taken = await _known(session, project_id, policy, [commit.id for commit in chosen])
    # First come those chosen first: within a priority the older job is given out.
    jobs = [
        Job(
            project_id=project_id,
            commit_id=commit.id,
            suite=policy.suite,
            kind=KIND,
            priority=min(policy.priority + FRESH_BEFORE_BACKFILL, HIGHEST_PRIORITY)
            if place < fresh
            else policy.priority,
            requires=dict(policy.requires),
            timeout_s=policy.timeout_s,
            origin="backfill",
            asked_by=name_of_caller(session),
        )
        for place, commit in enumerate(chosen)
        if commit.id not in taken
    ]
    for job in jobs:
        session.add(job)
        await session.flush()
    if jobs:
        await notify_waiting_agents(session)
    return {job.commit_id: job.id for job in jobs}

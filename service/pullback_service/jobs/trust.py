"""Whose code a job runs.

A commit is trusted unless it came from a fork: whoever may push to the project may run code on its machines. A fork's
commit becomes the project's own when a log (`git log` of a checkout, or a mirror) puts it on a branch; an upload or a job
that merely names a branch does not, since a fork names its branches as it likes.

An untrusted job waits until somebody approves it, and even then runs only on a machine that accepts untrusted ones, by an agent with a
sandbox (`labels.py`): what a stranger's code leaves behind on a machine, or reads there, is not undone by having looked at it once.
"""

from collections.abc import Collection
from typing import Literal

from sqlalchemy import exists, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.ids import CommitId
from pullback_service.models.commits import BranchCommit, Commit

TrustLevel = Literal["trusted", "untrusted"]

_ON_A_BRANCH = exists().where(BranchCommit.commit_id == Commit.id)


async def note_fork(session: AsyncSession, commit_id: CommitId, fork: str) -> None:
    """Remember that a commit came from a fork, unless it is the project's own. Index: pk_commit, ix_branch_commit_commit_id."""
    await session.execute(
        update(Commit)
        .where(Commit.id == commit_id, Commit.fork.is_(None), ~_ON_A_BRANCH)
        .values(fork=fork)
        .execution_options(synchronize_session=False)
    )


async def trust_in(session: AsyncSession, commit_ids: Collection[CommitId]) -> TrustLevel:
    """The trust of a job that runs the code of some commits: that of the least trusted. Index: pk_commit."""
    stranger = await session.scalar(
        select(Commit.id).where(Commit.id.in_(commit_ids), Commit.fork.is_not(None), ~_ON_A_BRANCH).limit(1)
    )
    return "trusted" if stranger is None else "untrusted"

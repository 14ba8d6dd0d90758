"""Names of commits: a hash, the beginning of one, or a branch."""

import re
from dataclasses import dataclass

from sqlalchemy import Exists, and_, exists, literal, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased

from pullback_service.commits import history
from pullback_service.commits.queries import commit_by_sha
from pullback_service.errors import Missing, NotFoundError, refuse
from pullback_service.ids import ProjectId
from pullback_service.models.commits import Branch, BranchCommit, Commit, CommitParent
from pullback_service.models.reports import Report

FULL_HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
BEGINNING_OF_HASH = re.compile(r"[0-9a-f]{7,63}")
LAST_DIGIT, LONGEST_HASH = "f", 64
FARTHEST_ANCESTOR = 500


@dataclass(frozen=True, slots=True)
class NamedCommit:
    """A commit and, where a branch was named, that branch; `newest` is false when the branch goes on unmeasured."""

    commit: Commit
    branch: str | None = None
    newest: bool = True


async def named_commit(
    session: AsyncSession, project_id: ProjectId, name: str, *, where: str, measured: bool = True
) -> NamedCommit:
    """The commit of this hash, beginning of a hash (7 digits or more) or branch; `where` names the parameter at fault.

    A branch stands for its newest commit, or for the newest with results where only `measured` ones are of use.
    Index: uq_commit_project_id_sha, uq_branch_project_id_name, pk_branch_commit, ix_report_commit_id.
    """
    if FULL_HASH.fullmatch(name):
        return NamedCommit(await commit_by_sha(session, project_id, name))
    if BEGINNING_OF_HASH.fullmatch(name):
        found = await _by_beginning(session, project_id, name, where)
        if found is not None:
            return NamedCommit(found)
    return await _newest_of_branch(session, project_id, name, measured=measured)


async def _by_beginning(session: AsyncSession, project_id: ProjectId, beginning: str, where: str) -> Commit | None:
    # A range and not LIKE: the index serves it in whatever order the database sorts text.
    last = beginning.ljust(LONGEST_HASH, LAST_DIGIT)
    rows = (
        await session.scalars(
            select(Commit)
            .where(Commit.project_id == project_id, Commit.sha >= beginning, Commit.sha <= last)
            .order_by(Commit.sha)
            .limit(2)
        )
    ).all()
    if len(rows) > 1:
        refuse(where, f"More than one commit begins with {beginning}: give more digits.")
    return rows[0] if rows else None


async def _newest_of_branch(session: AsyncSession, project_id: ProjectId, name: str, *, measured: bool) -> NamedCommit:
    branch = await branch_by_name(session, project_id, name)
    on = (
        select(Commit, BranchCommit.position)
        .join(BranchCommit, BranchCommit.commit_id == Commit.id)
        .where(BranchCommit.branch_id == branch.id)
        .order_by(BranchCommit.position.desc())
        .limit(1)
    )
    top = (await session.execute(on)).first()
    if top is None:
        raise NotFoundError(
            f"Branch {name!r} has no commits yet: measure one, or send its history with `pullback log`.",
            missing=Missing("results", name),
        )
    if not measured:
        return NamedCommit(top[0], name)
    found = (await session.execute(on.where(has_results()))).first()
    if found is None:
        raise NotFoundError(
            f"No commit of branch {name!r} has results yet: measure one, or name another branch.",
            missing=Missing("results", name),
        )
    return NamedCommit(found[0], name, newest=found.position == top.position)


async def branch_by_name(session: AsyncSession, project_id: ProjectId, name: str) -> Branch:
    """A branch of a project. Index: uq_branch_project_id_name."""
    found = await session.scalar(select(Branch).where(Branch.project_id == project_id, Branch.name == name))
    if found is None:
        raise NotFoundError(
            f"There is neither a commit nor a branch {name!r} in this project: give a hash, of 7 digits or more, "
            f"or a branch that GET /api/v1/branches lists.",
            missing=Missing("branch", name),
        )
    return found


async def commit_before(session: AsyncSession, project_id: ProjectId, commit: Commit) -> tuple[Commit, str | None]:
    """The default reference of a commit, and a word where that is not its first parent.

    A parent without results says nothing, and of a commit that was uploaded without its history no parent may be known.
    Index: pk_commit_parent, uq_commit_project_id_sha, ix_report_commit_id, ix_commit_history.
    """
    parent = (
        await session.execute(
            select(Commit, has_results())
            .join(CommitParent, and_(CommitParent.parent_sha == Commit.sha, CommitParent.position == 0))
            .where(CommitParent.commit_id == commit.id, Commit.project_id == project_id)
        )
    ).first()
    if parent is not None and parent[1]:
        return parent[0], None
    nearest = await nearest_measured(session, project_id, commit)
    if nearest is not None:
        word = f"The first parent of {commit.sha} has no results: {nearest} is its nearest ancestor with results."
        return await commit_by_sha(session, project_id, nearest), word
    earlier = await session.scalar(
        select(Commit)
        .where(
            Commit.project_id == project_id,
            has_results(),
            history.before(Commit, commit.ordered_at, literal(commit.id)),
        )
        .order_by(*history.newest_first(Commit))
        .limit(1)
    )
    if earlier is None:
        raise NotFoundError(
            f"Nothing was measured before commit {commit.sha}: name the commit to compare with in `base`, or measure its parent.",
            missing=Missing("results", commit.sha),
        )
    return earlier, (
        f"The ancestry of {commit.sha} is not known: {earlier.sha} is the newest commit with results before it in "
        "history; send its parents with `pullback log`."
    )


async def nearest_measured(session: AsyncSession, project_id: ProjectId, commit: Commit) -> str | None:
    """Hash of the nearest ancestor by first parents with results, up to 500 commits back.

    Index: pk_commit_parent, uq_commit_project_id_sha, ix_report_commit_id.
    """
    chain = select(Commit.id, Commit.sha, literal(0).label("steps")).where(Commit.id == commit.id).cte(recursive=True)
    parent = aliased(Commit)
    chain = chain.union_all(
        select(parent.id, parent.sha, chain.c.steps + 1)
        .join(CommitParent, and_(CommitParent.commit_id == chain.c.id, CommitParent.position == 0))
        .join(parent, and_(parent.project_id == project_id, parent.sha == CommitParent.parent_sha))
        .where(chain.c.steps < FARTHEST_ANCESTOR)
    )
    measured = exists().where(Report.commit_id == chain.c.id, Report.points > 0)
    found: str | None = await session.scalar(
        select(chain.c.sha).where(chain.c.steps > 0, measured).order_by(chain.c.steps).limit(1)
    )
    return found


def has_results() -> Exists:
    """True if a commit of the statement has points. Index: ix_report_commit_id."""
    return exists().where(Report.commit_id == Commit.id, Report.points > 0)

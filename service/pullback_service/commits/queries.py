"""Finding and making commits, and putting them into their place in history."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.commits import history
from pullback_service.commits.models import Commit, CommitParent
from pullback_service.ids import CommitId, ProjectId
from pullback_service.reports.models import Failure
from pullback_service.series.models import Point


@dataclass(frozen=True, slots=True)
class ToldCommit:
    """What an upload or a job says of a commit; None is not knowing."""

    sha: str
    parents: Sequence[str] = ()
    branch: str | None = None
    author: str | None = None
    authored_at: datetime | None = None
    title: str | None = None


@dataclass(frozen=True, slots=True)
class PlacedCommit:
    """A commit and its place in history, which cannot move until this transaction ends."""

    id: CommitId
    ordered_at: datetime


async def ensure_commit(session: AsyncSession, project_id: ProjectId, told: ToldCommit) -> PlacedCommit:
    """The commit, made where it is missing, with what is new about it filled in. Index: uq_commit_project_id_sha.

    Nothing that is known is overwritten. When it becomes known when a commit was authored, everything measured at it
    moves along.
    """
    this = (Commit.project_id == project_id, Commit.sha == told.sha)
    await session.execute(
        insert(Commit)
        .values(
            project_id=project_id,
            sha=told.sha,
            branch=told.branch,
            author=told.author,
            title=told.title,
            authored_at=told.authored_at,
            ordered_at=told.authored_at if told.authored_at is not None else func.now(),
        )
        .on_conflict_do_nothing()
    )
    if told.authored_at is not None:
        moved = await session.scalar(
            update(Commit)
            .where(*this, Commit.authored_at.is_(None))
            .values(authored_at=told.authored_at, ordered_at=told.authored_at)
            .returning(Commit.id)
        )
        if moved is not None:
            for measured in (Point, Failure):
                await session.execute(
                    update(measured).where(measured.commit_id == moved).values(ordered_at=told.authored_at)
                )
    await _fill_in(session, this, told)
    # Shared, so that nobody moves the commit between this reading of its place and the points that repeat it.
    row = (await session.execute(select(Commit.id, Commit.ordered_at).where(*this).with_for_update(read=True))).one()
    if told.parents:
        await session.execute(
            insert(CommitParent)
            .values(
                [
                    {"commit_id": row.id, "position": position, "parent_sha": sha}
                    for position, sha in enumerate(told.parents)
                ]
            )
            .on_conflict_do_nothing()
        )
    return PlacedCommit(CommitId(row.id), row.ordered_at)


async def _fill_in(session: AsyncSession, this: tuple[ColumnElement[bool], ...], told: ToldCommit) -> None:
    news = {
        column: value
        for column, value in ((Commit.branch, told.branch), (Commit.author, told.author), (Commit.title, told.title))
        if value is not None
    }
    if news:
        await session.execute(
            update(Commit)
            .where(*this, or_(*(column.is_(None) for column in news)))
            .values({column: func.coalesce(column, value) for column, value in news.items()})
        )


async def ensure_commits(session: AsyncSession, project_id: ProjectId, shas: Iterable[str]) -> dict[str, CommitId]:
    """Ids of commits of which only the hash is known, made where missing. Index: uq_commit_project_id_sha."""
    wanted = sorted(set(shas))  # one order for everybody, so that two uploads never wait for each other
    if not wanted:
        return {}
    await session.execute(
        insert(Commit).values([{"project_id": project_id, "sha": sha} for sha in wanted]).on_conflict_do_nothing()
    )
    rows = await session.execute(
        select(Commit.sha, Commit.id).where(Commit.project_id == project_id, Commit.sha.in_(wanted))
    )
    return {row.sha: CommitId(row.id) for row in rows}


async def list_commits(
    session: AsyncSession,
    project_id: ProjectId,
    *,
    branch: str | None,
    before: tuple[datetime, int] | None,
    limit: int,
) -> Sequence[Commit]:
    """Commits of a project, newest in history first. Index: ix_commit_history."""
    statement = select(Commit).where(Commit.project_id == project_id).order_by(*history.newest_first(Commit))
    if branch is not None:
        statement = statement.where(Commit.branch == branch)
    if before is not None:
        statement = statement.where(history.before(Commit, *before))
    return (await session.scalars(statement.limit(limit))).all()


async def parents_of(session: AsyncSession, commit_ids: Sequence[int]) -> dict[int, list[str]]:
    """Hashes of the parents of some commits, first parents first. Index: pk_commit_parent."""
    rows = await session.execute(
        select(CommitParent.commit_id, CommitParent.parent_sha)
        .where(CommitParent.commit_id.in_(commit_ids))
        .order_by(CommitParent.commit_id, CommitParent.position)
    )
    found: dict[int, list[str]] = {}
    for row in rows:
        found.setdefault(row.commit_id, []).append(row.parent_sha)
    return found

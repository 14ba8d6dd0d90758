"""Listing commits and branches, learning them from logs, finding the merge base of two."""

from datetime import datetime

from fastapi import Response
from pydantic import TypeAdapter
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.addresses import API
from pullback_service.audit.trail import note
from pullback_service.commits import branches, queries
from pullback_service.commits.branches import StoredBranch
from pullback_service.commits.placement import lock_graph
from pullback_service.commits.schemas import BranchReceipt, BranchSummary, CommitSummary, LogStatement, MergeBaseAnswer
from pullback_service.endpoints.tables import branches_of, commits_of
from pullback_service.errors import InvalidInputError, NotFoundError
from pullback_service.fields import KnownId, Name, Sha
from pullback_service.ids import ProjectId
from pullback_service.listing import LISTED, KnownListing
from pullback_service.models.commits import Commit
from pullback_service.paging import Page, page_of, read_cursor
from pullback_service.problems import documented
from pullback_service.projects.queries import ensure_project, project_by_name
from pullback_service.routers import api_router
from pullback_service.rows_to_models import filled
from pullback_service.sessions import ReadSession, WriteSession
from pullback_service.steps.projection import keep_steps

router = api_router(prefix=API, tags=["commits"])

Place = TypeAdapter(tuple[datetime, KnownId])
BranchPlace = TypeAdapter(tuple[Name])


@router.get("/commits", response_model=Page[CommitSummary], responses={**LISTED, **documented(NotFoundError)})
async def list_commits(
    session: ReadSession, listing: KnownListing, project: Name, branch: Name | None = None
) -> Response:
    """Commits of a project, newest in history first."""
    project_id = ProjectId((await project_by_name(session, project)).id)

    async def read(session: AsyncSession, cursor: str | None, limit: int) -> Page[CommitSummary]:
        rows = await queries.list_commits(
            session, project_id, branch=branch, before=read_cursor(cursor, Place), limit=limit + 1
        )
        ids = [commit.id for commit in rows]
        parents = await queries.parents_of(session, ids)
        unknown = await queries.unknown_among(session, project_id, [sha for shas in parents.values() for sha in shas])
        places = await queries.positions_on(session, project_id, branch, ids) if branch is not None else {}

        def summary(commit: Commit) -> CommitSummary:
            of_commit = parents.get(commit.id, [])
            position, after_gap = places.get(commit.id, (None, None))
            return CommitSummary.of(commit, of_commit).model_copy(
                update={
                    "position": position,
                    "after_gap": after_gap,
                    "unknown_parents": [sha for sha in of_commit if sha in unknown],
                }
            )

        return page_of(rows, limit, item=summary, key=lambda commit: (commit.ordered_at, commit.id))

    return await listing.give(read, commits_of(project), name=project)


@router.post("/commits", responses=documented(NotFoundError, InvalidInputError))
async def tell_log(statement: LogStatement, session: WriteSession) -> BranchReceipt:
    """Tell what a branch is: its newest commit and that one's first parents. Telling it again changes nothing.

    Without a branch only the commits are stored, as for a check of a commit whose branch is not known yet. Commits that were on the branch and are contradicted by this leave it, as after a force-push.
    """
    project_id = ProjectId((await ensure_project(session, statement.project)).id)
    await lock_graph(session, project_id)
    learnt = await queries.learn_commits(session, project_id, [*map(queries.CommitDescription.of, statement.commits)])
    head = statement.commits[0].sha
    if statement.branch is not None:
        await branches.follow_log(session, project_id, statement.branch, head)
    await keep_steps(session, project_id)
    known = await branches.list_branches(session, project_id) if statement.branch is not None else ()
    result = next((_branch(each) for each in known if each.branch.name == statement.branch), None)
    subject = f"commit {head}" if statement.branch is None else f"branch {statement.branch}"
    note(session, subject=subject, project=statement.project, head=head, new_commits=learnt.new)
    return BranchReceipt(new_commits=learnt.new, completed_commits=learnt.completed, branch=result)


@router.get("/branches", response_model=Page[BranchSummary], responses={**LISTED, **documented(NotFoundError)})
async def list_branches(session: ReadSession, listing: KnownListing, project: Name) -> Response:
    """Branches of a project by name."""
    project_id = ProjectId((await project_by_name(session, project)).id)

    async def read(session: AsyncSession, cursor: str | None, limit: int) -> Page[BranchSummary]:
        place = read_cursor(cursor, BranchPlace)
        rows = await branches.list_branches(session, project_id, after=place[0] if place else None, limit=limit + 1)
        return page_of(rows, limit, item=_branch, key=lambda row: (row.branch.name,))

    return await listing.give(read, branches_of(project), name=project)


@router.get("/merge-base", responses=documented(NotFoundError, InvalidInputError))
async def find_merge_base(session: ReadSession, project: Name, one: Sha, other: Sha) -> MergeBaseAnswer:
    """The newest commit that two commits both descend from."""
    project_id = ProjectId((await project_by_name(session, project)).id)
    merge_base = await queries.find_merge_base(session, project_id, one, other)
    return MergeBaseAnswer(
        merge_base=merge_base.sha, certain=not merge_base.unknown, parents_unknown=list(merge_base.unknown)
    )


def _branch(stored: StoredBranch) -> BranchSummary:
    return filled(BranchSummary, stored, stored.branch)

"""Branches: which commits are on them by first parents, in which places, and what is not known about that.

Two sources tell of branches. An upload names the branch of its one commit: it adds that commit, and removes nothing,
because uploads arrive in any order. A log (`git log --first-parent`, from a checkout or a mirror) says what the branch
is: commits that it contradicts leave the branch, which is a force-push, and is written down as one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import LiteralString

from sqlalchemy import Text, and_, cast, delete, func, insert, select, update
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.commits.graph import is_sibling
from pullback_service.commits.models import Branch, BranchCommit, Commit, CommitParent
from pullback_service.ids import ProjectId

MOST_BRANCHES = 1_000
MOST_FIRST_PARENTS = 100_000


@dataclass(frozen=True, slots=True)
class Member:
    """A commit on a branch, or about to be."""

    id: int
    sha: str
    ordered_at: datetime
    first_parent: str | None


@dataclass(frozen=True, slots=True)
class StoredBranch:
    """A branch with its newest commit and how much of it is known."""

    branch: Branch
    head: str | None
    commits: int
    gaps: int


async def add_commit(session: AsyncSession, project_id: ProjectId, name: str, sha: str) -> None:
    """Put an upload's commit on its branch, unless it is known to lie beside it. The graph must be locked."""
    branch_id = await _ensure_branch(session, project_id, name)
    new = await _member(session, project_id, sha)
    if await _continues(session, branch_id, new):
        return
    on = await _members(session, branch_id)
    if any(member.sha == sha for member in on):
        return
    if is_sibling({m.sha: m.first_parent for m in (*on, new)}, [m.sha for m in on], sha):
        return
    await _write(session, branch_id, [*on, new])


async def follow_log(session: AsyncSession, project_id: ProjectId, name: str, head: str) -> None:
    """Let a branch be what a log says: its newest commit and that one's first parents, as far as they are told.

    Behind the last one that is told, commits which stand earlier stay. A log that ends further back than the branch
    does, or stands before it, is an old one and only fills in. The graph must be locked.
    """
    branch_id = await _ensure_branch(session, project_id, name)
    on = await _members(session, branch_id)
    chain = await _first_parents(session, project_id, head)
    newest, tip, last = on[-1] if on else chain[0], chain[0], chain[-1]
    of_branch, of_chain = {member.sha for member in on}, {member.sha for member in chain}
    if tip.sha in of_branch or (newest.sha not in of_chain and _place(tip) < _place(newest)):
        # An old log: what it says lies on the branch, or before everything that is known of it.
        wanted = [*on, *(member for member in chain if tip.sha in of_branch or _place(member) < _place(on[0]))]
    else:
        # Without parents it may be a root, or where a shallow clone was cut off: what stands earlier stays in both cases.
        behind = [member for member in on if _place(member) < _place(last)]
        wanted = [*behind, *chain]
        if newest.sha not in {member.sha for member in wanted}:
            await session.execute(
                update(Branch).where(Branch.id == branch_id).values(forced_at=func.now(), forced_from=newest.sha)
            )
    await _write(session, branch_id, list({member.sha: member for member in wanted}.values()))


async def place_again(session: AsyncSession, project_id: ProjectId, shas: set[str]) -> None:
    """Renumber the branches of commits that moved. The graph must be locked. Index: ix_branch_commit_commit_id."""
    touched = await session.scalars(
        select(BranchCommit.branch_id)
        .join(Commit, Commit.id == BranchCommit.commit_id)
        .where(Commit.project_id == project_id, Commit.sha == func.any(cast(list(shas), ARRAY(Text))))
        .distinct()
    )
    for branch_id in touched.all():
        on = await _members(session, branch_id)
        await _write(session, branch_id, on)


async def list_branches(session: AsyncSession, project_id: ProjectId) -> Sequence[StoredBranch]:
    """Branches of a project by name. Index: uq_branch_project_id_name, pk_branch_commit."""
    counted = (
        select(
            BranchCommit.branch_id,
            func.count().label("commits"),
            func.count().filter(BranchCommit.after_gap).label("gaps"),
            func.max(BranchCommit.position).label("top"),
        )
        .join(Branch, Branch.id == BranchCommit.branch_id)
        .where(Branch.project_id == project_id)
        .group_by(BranchCommit.branch_id)
        .subquery()
    )
    rows = await session.execute(
        select(Branch, Commit.sha, counted.c.commits, counted.c.gaps)
        .join(counted, counted.c.branch_id == Branch.id)
        .join(BranchCommit, and_(BranchCommit.branch_id == Branch.id, BranchCommit.position == counted.c.top))
        .join(Commit, Commit.id == BranchCommit.commit_id)
        .order_by(Branch.name)
        .limit(MOST_BRANCHES)
    )
    return [StoredBranch(*row) for row in rows]


def _place(member: Member) -> tuple[datetime, int]:
    return member.ordered_at, member.id


async def _ensure_branch(session: AsyncSession, project_id: ProjectId, name: str) -> int:
    statement = select(Branch.id).where(Branch.project_id == project_id, Branch.name == name)
    found: int | None = await session.scalar(statement)
    if found is None:
        await session.execute(upsert(Branch).values(project_id=project_id, name=name).on_conflict_do_nothing())
        found = (await session.scalars(statement)).one()
    return found


async def _members(session: AsyncSession, branch_id: int) -> list[Member]:
    """Commits of a branch as they are numbered now. Index: pk_branch_commit."""
    rows = await session.execute(
        select(Commit.id, Commit.sha, Commit.ordered_at, CommitParent.parent_sha)
        .join(BranchCommit, BranchCommit.commit_id == Commit.id)
        .join(CommitParent, and_(CommitParent.commit_id == Commit.id, CommitParent.position == 0), isouter=True)
        .where(BranchCommit.branch_id == branch_id)
        .order_by(BranchCommit.position)
    )
    return [Member(*row) for row in rows]


async def _continues(session: AsyncSession, branch_id: int, new: Member) -> bool:
    """Append the usual upload's commit, the newest one, without reading the branch. Index: pk_branch_commit."""
    on = select(BranchCommit.position, Commit.id, Commit.sha, Commit.ordered_at).join(
        Commit, Commit.id == BranchCommit.commit_id
    )
    on = on.where(BranchCommit.branch_id == branch_id)
    top = (await session.execute(on.order_by(BranchCommit.position.desc()).limit(1))).one_or_none()
    if top is not None:
        if (top.ordered_at, top.id) >= _place(new):
            return False
        if new.first_parent != top.sha and (await session.execute(on.where(Commit.sha == new.first_parent))).first():
            return False  # beside the branch, or in a gap of it
    position, after_gap = (0, False) if top is None else (top.position + 1, new.first_parent != top.sha)
    await session.execute(
        insert(BranchCommit).values(branch_id=branch_id, position=position, commit_id=new.id, after_gap=after_gap)
    )
    await session.execute(update(Branch).where(Branch.id == branch_id).values(updated_at=func.now()))
    return True


async def _member(session: AsyncSession, project_id: ProjectId, sha: str) -> Member:
    row = (
        await session.execute(
            select(Commit.id, Commit.sha, Commit.ordered_at, CommitParent.parent_sha)
            .join(CommitParent, and_(CommitParent.commit_id == Commit.id, CommitParent.position == 0), isouter=True)
            .where(Commit.project_id == project_id, Commit.sha == sha)
        )
    ).one()
    return Member(*row)


_FIRST_PARENTS: LiteralString = """
  WITH RECURSIVE chain (id, sha, ordered_at, parent_sha) AS (
       SELECT c.id, c.sha, c.ordered_at, p.parent_sha
         FROM commit c
         LEFT JOIN commit_parent p ON p.commit_id = c.id AND p.position = 0
        WHERE c.project_id = %(project)s AND c.sha = %(head)s
        UNION ALL
       SELECT found.*
         FROM chain
        CROSS JOIN LATERAL (
              SELECT c.id, c.sha, c.ordered_at, p.parent_sha
                FROM commit c
                LEFT JOIN commit_parent p ON p.commit_id = c.id AND p.position = 0
               WHERE c.project_id = %(project)s AND c.sha = chain.parent_sha
               LIMIT 1) found)
SELECT id, sha, ordered_at, parent_sha FROM chain LIMIT %(most)s
"""


async def _first_parents(session: AsyncSession, project_id: ProjectId, head: str) -> list[Member]:
    """A commit and its first parents as far as they are told, newest first. Index: uq_commit_project_id_sha.

    The limit of one keeps Postgres from joining every step with all commits, which takes half a minute for 5,000 of them.
    """
    parameters = {"project": project_id, "head": head, "most": MOST_FIRST_PARENTS}
    rows = await statements.rows(session, _FIRST_PARENTS, parameters)
    return sorted((Member(*row) for row in rows), key=_place, reverse=True)


_NUMBER: LiteralString = """
INSERT INTO branch_commit (branch_id, position, commit_id, after_gap)
SELECT %(branch)s, %(before)s + numbered.place, numbered.commit_id, numbered.after_gap
  FROM unnest(%(commits)s::bigint[], %(after_gaps)s::boolean[])
       WITH ORDINALITY AS numbered (commit_id, after_gap, place)
"""


async def _write(session: AsyncSession, branch_id: int, wanted: Sequence[Member]) -> None:
    """Number commits by their place in history, rewriting only from the first difference on."""
    ordered = sorted(wanted, key=_place)
    gaps = [place > 0 and member.first_parent != ordered[place - 1].sha for place, member in enumerate(ordered)]
    stored = {
        row.position: (row.commit_id, row.after_gap)
        for row in await session.execute(
            select(BranchCommit.position, BranchCommit.commit_id, BranchCommit.after_gap).where(
                BranchCommit.branch_id == branch_id
            )
        )
    }
    new = [(member.id, gap) for member, gap in zip(ordered, gaps, strict=True)]
    same = 0
    while same < len(new) and stored.get(same) == new[same]:
        same += 1
    if same == len(new) == len(stored):
        return
    await session.execute(
        delete(BranchCommit).where(BranchCommit.branch_id == branch_id, BranchCommit.position >= same)
    )
    ids, after_gaps = [commit_id for commit_id, _ in new[same:]], [gap for _, gap in new[same:]]
    await statements.run(
        session, _NUMBER, {"branch": branch_id, "before": same - 1, "commits": ids, "after_gaps": after_gaps}
    )
    await session.execute(update(Branch).where(Branch.id == branch_id).values(updated_at=func.now()))

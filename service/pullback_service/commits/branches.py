"""Branches: which commits are on them by first parents, in which places, and what is not known about that.

Two sources tell of branches. An upload names the branch of its one commit: it adds that commit, and removes nothing,
because uploads arrive in any order. A log (`git log --first-parent`, from a checkout or a mirror) says what the branch
is: commits that it contradicts leave the branch, which is a force-push, and is written down as one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise, takewhile
from typing import LiteralString

from sqlalchemy import Select, Text, and_, cast, func, select, true, update
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased

from pullback_service import statements
from pullback_service.commits.trunk import TRUNK
from pullback_service.deferred_chores import defer_detection
from pullback_service.ids import ProjectId
from pullback_service.models.commits import Branch, BranchCommit, Commit, CommitParent

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
    new, branch_id, tip = await _tip(session, project_id, name, sha)
    if branch_id is None:
        branch_id = await _ensure_branch(session, project_id, name)
    if await _continues(session, branch_id, new, tip):
        return
    await _insert(session, branch_id, new)


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
        members = [*on, *(member for member in chain if tip.sha in of_branch or _place(member) < _place(on[0]))]
    else:
        # Without parents it may be a root, or where a shallow clone was cut off: what stands earlier stays in both cases.
        behind = [member for member in on if _place(member) < _place(last)]
        members = [*behind, *chain]
        if newest.sha not in {member.sha for member in members}:
            await session.execute(
                update(Branch).where(Branch.id == branch_id).values(forced_at=func.now(), forced_from=newest.sha)
            )
    await _write(session, branch_id, list({member.sha: member for member in members}.values()))
    joined = [member.id for member in members if member.sha not in of_branch]
    await _look_again(session, project_id, name, joined)


# What was measured on another branch first, as of a pull request, comes under watch with the trunk.
_LOOK_AGAIN: LiteralString = f"""
UPDATE report SET detected_at = NULL
  FROM project
 WHERE report.commit_id = ANY (%(commits)s::bigint[]) AND report.detected_at IS NOT NULL
   AND project.id = %(project)s AND %(name)s = {TRUNK}
RETURNING report.id
"""  # noqa: S608 - our own words


async def _look_again(session: AsyncSession, project_id: ProjectId, name: str, joined: Sequence[int]) -> None:
    """Have changes looked for in the reports of commits that joined the trunk, once more. Index: ix_report_commit_id, pk_project."""
    parameters = {"commits": statements.array_of(joined), "project": project_id, "name": name}
    if joined and await statements.rows(session, _LOOK_AGAIN, parameters):
        await defer_detection(session, project_id)


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


def listed_branches(project_id: ProjectId, *, after: str | None, limit: int) -> Select[Branch, str, int, int]:
    """The statement of `list_branches`: the commits of a page's branches are counted, and not those of all."""
    # A value and not EXISTS, which Postgres may answer by reading what all branches have.
    has_commits = select(true()).where(BranchCommit.branch_id == Branch.id).limit(1).scalar_subquery()
    page = select(Branch.id).where(Branch.project_id == project_id, has_commits).order_by(Branch.name).limit(limit)
    if after is not None:
        page = page.where(Branch.name > after)
    shown = page.cte("shown")
    of_branch = aliased(BranchCommit)
    counted = (
        select(
            func.count().label("commits"),
            func.count().filter(of_branch.after_gap).label("gaps"),
            func.max(of_branch.position).label("top"),
        )
        .where(of_branch.branch_id == shown.c.id)
        .lateral()
    )
    return (
        select(Branch, Commit.sha, counted.c.commits, counted.c.gaps)
        .select_from(shown)
        .join(counted, true())
        .join(Branch, Branch.id == shown.c.id)
        .join(BranchCommit, and_(BranchCommit.branch_id == Branch.id, BranchCommit.position == counted.c.top))
        .join(Commit, Commit.id == BranchCommit.commit_id)
        .order_by(Branch.name)
    )


async def list_branches(
    session: AsyncSession, project_id: ProjectId, *, after: str | None = None, limit: int = MOST_BRANCHES
) -> Sequence[StoredBranch]:
    """Branches of a project by name. Index: uq_branch_project_id_name, pk_branch_commit."""
    statement = listed_branches(project_id, after=after, limit=limit)
    return [StoredBranch(*row) for row in await session.execute(statement)]


def _place(member: Member) -> tuple[datetime, int]:
    return member.ordered_at, member.id


async def _ensure_branch(session: AsyncSession, project_id: ProjectId, name: str) -> int:
    statement = select(Branch.id).where(Branch.project_id == project_id, Branch.name == name)
    row: int | None = await session.scalar(statement)
    if row is None:
        await session.execute(upsert(Branch).values(project_id=project_id, name=name).on_conflict_do_nothing())
        row = (await session.scalars(statement)).one()
    return row


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


_TIP: LiteralString = """
SELECT c.id, c.sha, c.ordered_at, p.parent_sha, b.id, tip.position, tip.id, tip.sha, tip.ordered_at,
       p.parent_sha IS DISTINCT FROM tip.sha AND EXISTS (
         SELECT FROM commit parent JOIN branch_commit known ON known.commit_id = parent.id AND known.branch_id = b.id
          WHERE parent.project_id = c.project_id AND parent.sha = p.parent_sha)
  FROM commit c
  LEFT JOIN commit_parent p ON p.commit_id = c.id AND p.position = 0
  LEFT JOIN branch b ON b.project_id = c.project_id AND b.name = %(name)s
  LEFT JOIN LATERAL (
       SELECT last.position, newest.id, newest.sha, newest.ordered_at
         FROM branch_commit last JOIN commit newest ON newest.id = last.commit_id
        WHERE last.branch_id = b.id
        ORDER BY last.position DESC LIMIT 1) tip ON true
 WHERE c.project_id = %(project)s AND c.sha = %(sha)s
"""
_APPEND: LiteralString = """
  WITH appended AS (
       INSERT INTO branch_commit (branch_id, position, commit_id, after_gap)
       VALUES (%(branch)s, %(position)s, %(commit)s, %(after_gap)s))
UPDATE branch SET updated_at = now() WHERE id = %(branch)s
"""


@dataclass(frozen=True, slots=True)
class _Tip:
    """The newest commit of a branch, as seen by another that may follow it; `lies_beside`: that one's parent is further back."""

    position: int
    id: int
    sha: str
    ordered_at: datetime
    lies_beside: bool


async def _tip(
    session: AsyncSession, project_id: ProjectId, name: str, sha: str
) -> tuple[Member, int | None, _Tip | None]:
    """A commit and what it may continue: a branch with its newest commit, where there are such.

    Index: uq_commit_project_id_sha, uq_branch_project_id_name, pk_branch_commit, uq_branch_commit_branch_id_commit_id.
    """
    row = await statements.row(session, _TIP, {"project": project_id, "name": name, "sha": sha})
    assert row is not None  # noqa: S101 - the commit was made, or was there
    return Member(*row[:4]), row[4], None if row[5] is None else _Tip(*row[5:])


async def _continues(session: AsyncSession, branch_id: int, new: Member, tip: _Tip | None) -> bool:
    """Append the usual upload's commit, the newest one, without reading the branch."""
    if tip is not None and (tip.lies_beside or (tip.ordered_at, tip.id) >= _place(new)):
        return False  # beside the branch, in a gap of it, or on it
    position, after_gap = (0, False) if tip is None else (tip.position + 1, new.first_parent != tip.sha)
    await statements.run(
        session,
        _APPEND,
        {"branch": branch_id, "position": position, "commit": new.id, "after_gap": after_gap},
    )
    return True


_BEHIND: LiteralString = """
SELECT numbered.position, numbered.commit_id, numbered.after_gap, c.sha, c.ordered_at, p.parent_sha
  FROM branch_commit numbered
  JOIN commit c ON c.id = numbered.commit_id
  LEFT JOIN commit_parent p ON p.commit_id = c.id AND p.position = 0
 WHERE numbered.branch_id = %(branch)s
   AND numbered.position >= coalesce((
       SELECT before.position
         FROM branch_commit before JOIN commit earlier ON earlier.id = before.commit_id
        WHERE before.branch_id = %(branch)s AND (earlier.ordered_at, earlier.id) < (%(ordered_at)s, %(id)s)
        ORDER BY before.position DESC LIMIT 1), 0)
   AND NOT EXISTS (
       SELECT FROM commit_parent sibling JOIN branch_commit taken ON taken.commit_id = sibling.commit_id
        WHERE sibling.parent_sha = %(first_parent)s AND sibling.position = 0 AND sibling.commit_id <> %(id)s
          AND taken.branch_id = %(branch)s)
 ORDER BY numbered.position
"""


async def _insert(session: AsyncSession, branch_id: int, new: Member) -> None:
    """Put a late commit among those that stand behind it, unless the branch goes another way from its first parent.

    Reads from the last commit before it on: uploads of two commits that follow each other come in any order, and a branch
    is long. Index: pk_branch_commit, ix_commit_parent_parent_sha.
    """
    rows = await statements.rows(
        session,
        _BEHIND,
        {"branch": branch_id, "id": new.id, "ordered_at": new.ordered_at, "first_parent": new.first_parent},
    )
    on = [Member(id_, *about) for _, id_, _, *about in rows]
    if on and all(member.id != new.id for member in on):
        await _renumber(session, branch_id, [*on, new], [row[:3] for row in rows])


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


_CUT: LiteralString = "DELETE FROM branch_commit WHERE branch_id = %(branch)s AND position >= %(begin)s"
_NUMBER: LiteralString = """
  WITH numbered AS (
       INSERT INTO branch_commit (branch_id, position, commit_id, after_gap)
       SELECT %(branch)s, %(begin)s + given.place - 1, given.commit_id, given.after_gap
         FROM unnest(%(commits)s::bigint[], %(after_gaps)s::boolean[])
              WITH ORDINALITY AS given (commit_id, after_gap, place))
UPDATE branch SET updated_at = now() WHERE id = %(branch)s
"""


async def _write(session: AsyncSession, branch_id: int, members: Sequence[Member]) -> None:
    """Number commits by their place in history."""
    stored = await session.execute(
        select(BranchCommit.position, BranchCommit.commit_id, BranchCommit.after_gap)
        .where(BranchCommit.branch_id == branch_id)
        .order_by(BranchCommit.position)
    )
    await _renumber(session, branch_id, members, [(row.position, row.commit_id, row.after_gap) for row in stored])


async def _renumber(
    session: AsyncSession, branch_id: int, members: Sequence[Member], stored: Sequence[tuple[int, int, bool]]
) -> None:
    """Number commits by their place in history, which takes the place of what is stored of them: the end of a branch, or all.

    Rewrites from the first difference on. Before an end stands something, which its first commit goes on following.
    """
    ordered = sorted(members, key=_place)
    begin, _, first_gap = stored[0] if stored else (0, 0, False)
    gaps = [begin > 0 and first_gap, *(member.first_parent != before.sha for before, member in pairwise(ordered))]
    new = [(begin + place, member.id, gap) for place, (member, gap) in enumerate(zip(ordered, gaps, strict=False))]
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(stored, new, strict=False)))
    if same == len(new) == len(stored):
        return
    values = {"branch": branch_id, "begin": begin + same}
    await statements.run(session, _CUT, values)
    ids, after_gaps = [commit_id for _, commit_id, _ in new[same:]], [gap for _, _, gap in new[same:]]
    await statements.run(session, _NUMBER, {**values, "commits": ids, "after_gaps": after_gaps})

"""Finding and making commits, and putting them into their place in history."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, LiteralString

import orjson
from sqlalchemy import ColumnElement, func, or_, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.background_threads import in_background
from pullback_service.commits import branches, timeline
from pullback_service.commits.ancestry import MergeBase, merge_base
from pullback_service.commits.graph_changes import note_graph_change
from pullback_service.commits.placement import lock_graph, settle
from pullback_service.errors import MissingObject, NotFoundError
from pullback_service.ids import CommitId, ProjectId
from pullback_service.models.commits import Branch, BranchCommit, Commit, CommitParent
from pullback_service.rule_version import RULE
from pullback_service.statements import Query

MOST_ANCESTORS = 200_000
LAST_POSITION = 2**31 - 1

_GIVEN: LiteralString = """
  FROM unnest(%(shas)s::text[], %(branches)s::text[], %(authors)s::text[], %(titles)s::text[],
              %(authored_at)s::timestamptz[], %(have_parents)s::boolean[])
       WITH ORDINALITY AS given (sha, branch, author, title, authored_at, has_parents, place)
  JOIN commit c ON c.project_id = %(project)s AND c.sha = given.sha
"""
_NO_NEWS: LiteralString = """
   (given.branch IS NULL OR c.branch IS NOT NULL OR c.fork IS NOT NULL)
   AND (given.author IS NULL OR c.author IS NOT NULL)
   AND (given.title IS NULL OR c.title IS NOT NULL)
   AND (given.authored_at IS NULL OR c.authored_at IS NOT NULL)
   AND (NOT given.has_parents OR EXISTS (SELECT FROM commit_parent p WHERE p.commit_id = c.id))
"""
_STORED: LiteralString = f"SELECT given.place, c.id, c.ordered_at, c.fork IS NOT NULL, {_NO_NEWS} {_GIVEN}"
_IN_PLACE: LiteralString = f"SELECT c.id, c.ordered_at {_GIVEN} WHERE {_NO_NEWS} FOR SHARE OF c"
_PLACES: LiteralString = """
SELECT sha, id, ordered_at FROM commit WHERE project_id = %(project)s AND sha = ANY (%(shas)s)
"""
# While older commits of the project wait to be projected, nobody can judge what is measured at a new one.
_JUDGED_BY: LiteralString = """
CASE WHEN EXISTS (SELECT FROM commit WHERE NOT projected AND project_id = %(project)s) THEN 0 ELSE %(rule)s END
"""
_MAKE_COMMITS: LiteralString = f"""
  WITH made AS (
       INSERT INTO commit (project_id, sha, branch, author, title, authored_at, ordered_at, projected, judged_by)
       SELECT %(project)s, sha, branch, author, title, authored_at,
              coalesce(least(authored_at, now() + interval '1 day'), now()), true, {_JUDGED_BY}
         FROM unnest(%(shas)s::text[], %(branches)s::text[], %(authors)s::text[], %(titles)s::text[],
                     %(authored_at)s::timestamptz[])
              WITH ORDINALITY AS given (sha, branch, author, title, authored_at, place)
        ORDER BY place
       ON CONFLICT DO NOTHING RETURNING sha, id),
       edges AS (
       INSERT INTO commit_parent (commit_id, position, parent_sha)
       SELECT made.id, edge.position, edge.parent
         FROM unnest(%(children)s::text[], %(positions)s::bigint[], %(parents)s::text[]) AS edge (child, position, parent)
         JOIN made ON made.sha = edge.child)
SELECT sha, id FROM made
"""  # noqa: S608 - our own words
_MAKE_NAMED: LiteralString = f"""
INSERT INTO commit (project_id, sha, projected, judged_by)
SELECT %(project)s, sha, true, {_JUDGED_BY} FROM unnest(%(shas)s::text[]) given (sha) ORDER BY sha
ON CONFLICT DO NOTHING RETURNING id
"""  # noqa: S608 - our own words
_MAKE_EDGES: LiteralString = """
INSERT INTO commit_parent (commit_id, position, parent_sha)
SELECT * FROM unnest(%(children)s::bigint[], %(positions)s::bigint[], %(parents)s::text[])
ON CONFLICT DO NOTHING RETURNING commit_id
"""

_PARENTS: LiteralString = """
SELECT parent_sha, EXISTS (SELECT FROM commit WHERE project_id = %(project)s AND sha = parent_sha)
  FROM commit_parent
 WHERE commit_id = %(commit)s
 ORDER BY position
"""

# Each step enters its indexes: joined in one go, a planner that expects ten times as many takes all commits every time.
_ANCESTORS = """
WITH RECURSIVE reach AS (
  SELECT id, sha, ordered_at FROM commit WHERE project_id = %(project)s AND sha = ANY (%(shas)s)
  UNION
  SELECT parent.*
    FROM reach, LATERAL (
      SELECT c.id, c.sha, c.ordered_at
        FROM commit_parent p
        JOIN commit c ON c.project_id = %(project)s AND c.sha = p.parent_sha
       WHERE p.commit_id = reach.id
      OFFSET 0) parent
)
SELECT coalesce(json_agg(json_build_array(
         sha, extract(epoch FROM ordered_at),
         ARRAY (SELECT parent_sha FROM commit_parent WHERE commit_id = found.id ORDER BY position))), '[]')::text
  FROM (SELECT * FROM reach LIMIT %(limit)s) found
"""
_ALONG_A_BRANCH = """
SELECT
  FROM branch_commit one
  JOIN branch_commit other ON other.branch_id = one.branch_id
 WHERE one.commit_id = %(one)s AND other.commit_id = %(other)s
   AND NOT EXISTS (
     SELECT FROM branch_commit between_them
      WHERE between_them.branch_id = one.branch_id AND between_them.after_gap
        AND between_them.position > least(one.position, other.position)
        AND between_them.position <= greatest(one.position, other.position))
 LIMIT 1
"""


@dataclass(frozen=True, slots=True)
class CommitDescription:
    """The facts an upload or a job states of a commit; None is unknown."""

    sha: str
    parents: tuple[str, ...] = ()
    branch: str | None = None
    author: str | None = None
    authored_at: datetime | None = None
    title: str | None = None

    @classmethod
    def of(cls, statement: Any) -> "CommitDescription":
        """The facts in the statement of a log or a job, or in the document of a report."""
        parents = tuple(statement.parents)
        return cls(statement.sha, parents, statement.branch, statement.author, statement.authored_at, statement.title)


@dataclass(frozen=True, slots=True)
class CommitCounts:
    """Counts of commits that were new, and of those about which more became known."""

    new: int
    completed: int


@dataclass(frozen=True, slots=True)
class PlacedCommit:
    """A commit and its place in history, which cannot move until this transaction ends."""

    id: CommitId
    ordered_at: datetime


async def ensure_commit(session: AsyncSession, project_id: ProjectId, description: CommitDescription) -> PlacedCommit:
    """The commit of `ensure_told`, alone."""
    return (await ensure_told(session, project_id, [description]))[description.sha]


async def ensure_told(
    session: AsyncSession, project_id: ProjectId, descriptions: Sequence[CommitDescription]
) -> dict[str, PlacedCommit]:
    """Commits by their hashes, made where they are missing, with what is new about them filled in.

    Nothing that is known is overwritten. When its time or its parents become known, everything measured at a commit, and
    the commits that follow it, move along. Telling nothing new of one commit takes no lock but that on its place; whoever
    tells of several locks the graph, for two who lock one place after the other may wait for each other.
    Index: uq_commit_project_id_sha.
    """
    descriptions = list(dict.fromkeys(descriptions))
    if len(descriptions) == 1:
        placed = await _locked_in_place(session, project_id, descriptions[0])
        if placed is not None:
            return {descriptions[0].sha: placed}
    await lock_graph(session, project_id)
    stored = await _stored(session, project_id, descriptions)
    news = [commit for commit in descriptions if commit not in stored or not stored[commit].is_no_news]
    if not news:
        return {commit.sha: stored[commit].placed for commit in descriptions}
    forks = {commit.sha for commit, commit_row in stored.items() if commit_row.is_of_fork}
    # A fork names its branches as it likes: a log alone puts its commits on ours.
    news = [replace(commit, branch=None) if commit.sha in forks else commit for commit in news]
    for one_of_each in _rounds(news):
        await learn_commits(session, project_id, one_of_each)
    places = await _places(session, project_id, {commit.sha for commit in descriptions})
    for commit in sorted(news, key=lambda commit: places[commit.sha].ordered_at):
        if commit.branch is not None:
            await branches.add_commit(session, project_id, commit.branch, commit.sha)
    return places


def _rounds(descriptions: Sequence[CommitDescription]) -> Iterator[list[CommitDescription]]:
    """Statements in rounds, with no commit twice in a round: two callers may know different facts of it."""
    while descriptions:
        one_of_each = {commit.sha: commit for commit in reversed(descriptions)}
        yield list(one_of_each.values())
        descriptions = [commit for commit in descriptions if one_of_each[commit.sha] is not commit]


@dataclass(frozen=True, slots=True)
class _KnownCommit:
    """A commit that is stored, as seen by somebody who tells of it."""

    placed: PlacedCommit
    is_of_fork: bool
    is_no_news: bool


async def _stored(
    session: AsyncSession, project_id: ProjectId, descriptions: Sequence[CommitDescription]
) -> dict[CommitDescription, _KnownCommit]:
    rows = await statements.rows(session, _STORED, _told_values(project_id, descriptions))
    return {
        descriptions[place - 1]: _KnownCommit(PlacedCommit(CommitId(id_), ordered_at), is_of_fork, is_no_news)
        for place, id_, ordered_at, is_of_fork, is_no_news in rows
    }


def _told_values(project_id: ProjectId, descriptions: Sequence[CommitDescription]) -> dict[str, object]:
    return {
        "project": project_id,
        "shas": [commit.sha for commit in descriptions],
        "branches": [commit.branch for commit in descriptions],
        "authors": [commit.author for commit in descriptions],
        "titles": [commit.title for commit in descriptions],
        "authored_at": [commit.authored_at for commit in descriptions],
        "have_parents": [bool(commit.parents) for commit in descriptions],
    }


async def _places(session: AsyncSession, project_id: ProjectId, shas: Collection[str]) -> dict[str, PlacedCommit]:
    rows = await statements.rows(session, _PLACES, {"project": project_id, "shas": list(shas)})
    return {sha: PlacedCommit(CommitId(id_), ordered_at) for sha, id_, ordered_at in rows}


async def _locked_in_place(
    session: AsyncSession, project_id: ProjectId, description: CommitDescription
) -> PlacedCommit | None:
    """A commit of which nothing told is news, its place locked; None leaves nothing locked.

    The lock is shared: nobody moves the commit between this reading of its place and the points that repeat it. It is
    taken on what the condition lets through alone, for whoever held it and went on to learn the news would wait, with
    the graph locked, for another who does the same.
    """
    row = await statements.row(session, _IN_PLACE, _told_values(project_id, [description]))
    return None if row is None else PlacedCommit(CommitId(row[0]), row[1])


async def learn_commits(
    session: AsyncSession, project_id: ProjectId, descriptions: Sequence[CommitDescription]
) -> CommitCounts:
    """Make or complete commits and put them into their places. The graph must be locked."""
    # Rows are made and locked in one order for everybody, so that two uploads never wait for each other in a circle.
    in_order = sorted({commit.sha: commit for commit in descriptions}.values(), key=lambda commit: commit.sha)
    edges = [(commit.sha, *edge) for commit in in_order for edge in enumerate(commit.parents)]
    values = _told_values(project_id, in_order) | _columns(edges) | {"rule": RULE}
    ids = dict(await statements.rows(session, _MAKE_COMMITS, values))
    new = set(ids)
    by_sha = {commit.sha: commit for commit in in_order if commit.sha not in new}
    completed: set[int] = set()
    if by_sha:
        stored = await session.execute(
            select(Commit.id, Commit.sha, Commit.branch, Commit.author, Commit.title, Commit.authored_at).where(
                Commit.project_id == project_id, Commit.sha.in_(by_sha)
            )
        )
        for row in stored.all():
            ids[row.sha] = row.id
            if _has_news(by_sha[row.sha], row):
                completed.add(row.id)
                await _fill_in(session, (Commit.id == row.id,), by_sha[row.sha])
    of_known = [(ids[child], *edge) for child, *edge in edges if child not in new]
    told_parents: set[int] = set()
    if of_known:
        told_parents = {id_ for (id_,) in await statements.rows(session, _MAKE_EDGES, _columns(of_known))}
        completed |= told_parents
    moved, has_children = await settle(session, project_id, ids, new=new)
    if moved:
        await branches.place_again(session, project_id, moved)
    # A new commit without children is followed by nothing: what is measured there says so itself.
    told_of = ({ids[sha] for sha in new} if has_children else set()) | told_parents
    if told_of or moved:
        note_graph_change(session, reported=told_of, moved=await _ids_of(session, project_id, moved))
    return CommitCounts(len(new), len(completed))


async def _ids_of(session: AsyncSession, project_id: ProjectId, shas: Collection[str]) -> Collection[int]:
    return [placed.id for placed in (await _places(session, project_id, shas)).values()] if shas else ()


def _columns(edges: Sequence[tuple[object, ...]]) -> dict[str, object]:
    return {name: [edge[at] for edge in edges] for at, name in enumerate(("children", "positions", "parents"))}


def _has_news(description: CommitDescription, stored: object) -> bool:
    return any(
        getattr(description, fact) is not None and getattr(stored, fact) is None
        for fact in ("branch", "author", "title", "authored_at")
    )


async def _fill_in(
    session: AsyncSession, this: tuple[ColumnElement[bool], ...], description: CommitDescription
) -> None:
    news = {
        column: value
        for column, value in (
            (Commit.branch, description.branch),
            (Commit.author, description.author),
            (Commit.title, description.title),
            (Commit.authored_at, description.authored_at),
        )
        if value is not None
    }
    if news:
        await session.execute(
            update(Commit)
            .where(*this, or_(*(column.is_(None) for column in news)))
            .values({column: func.coalesce(column, value) for column, value in news.items()})
            .execution_options(synchronize_session=False)
        )


async def ensure_commits(session: AsyncSession, project_id: ProjectId, shas: Iterable[str]) -> dict[str, CommitId]:
    """Ids of commits of which only the hash is known, made where missing. Index: uq_commit_project_id_sha."""
    unique = list(set(shas))
    if not unique:
        return {}
    values = {"project": project_id, "shas": unique, "rule": RULE}
    # In one order for everybody, so that two uploads never wait for each other.
    made = await statements.rows(session, _MAKE_NAMED, values)
    note_graph_change(session, reported=[id_ for (id_,) in made])  # somebody may have told of them as parents
    rows = await session.execute(
        select(Commit.sha, Commit.id).where(Commit.project_id == project_id, Commit.sha.in_(unique))
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
    """Commits of a project, newest in history first.

    Index: ix_commit_history; on a branch, whose positions are in the order of history, pk_branch_commit.
    """
    statement = select(Commit).where(Commit.project_id == project_id)
    if before is not None:
        statement = statement.where(timeline.before(Commit, *before))
    if branch is None:
        return (await session.scalars(statement.order_by(*timeline.newest_first(Commit)).limit(limit))).all()
    branch_id = select(Branch.id).where(Branch.project_id == project_id, Branch.name == branch).scalar_subquery()
    statement = statement.join(BranchCommit, BranchCommit.commit_id == Commit.id).where(
        BranchCommit.branch_id == branch_id
    )
    if before is not None:
        # Where the page before ended; a commit that has left the branch since has no position, and its place must do.
        ended = select(BranchCommit.position).where(
            BranchCommit.branch_id == branch_id, BranchCommit.commit_id == before[1]
        )
        statement = statement.where(BranchCommit.position < func.coalesce(ended.scalar_subquery(), LAST_POSITION))
    return (await session.scalars(statement.order_by(BranchCommit.position.desc()).limit(limit))).all()


async def positions_on(
    session: AsyncSession, project_id: ProjectId, branch: str, commit_ids: Sequence[int]
) -> dict[int, tuple[int, bool]]:
    """The positions of commits on a branch, and whether their history is unknown. Index: uq_branch_commit_branch_id_commit_id."""
    rows = await session.execute(
        select(BranchCommit.commit_id, BranchCommit.position, BranchCommit.after_gap)
        .join(Branch, Branch.id == BranchCommit.branch_id)
        .where(Branch.project_id == project_id, Branch.name == branch, BranchCommit.commit_id.in_(commit_ids))
    )
    return {row.commit_id: (row.position, row.after_gap) for row in rows}


def parents_known(project_id: ProjectId, commit_id: int) -> Query[list[tuple[Any, ...]]]:
    """The parents of a commit, first parent first, each with whether anybody told of it. Index: pk_commit_parent, uq_commit_project_id_sha."""
    return Query(_PARENTS, {"project": project_id, "commit": commit_id}, list, width=2)


async def unknown_among(session: AsyncSession, project_id: ProjectId, shas: Sequence[str]) -> set[str]:
    """Those of some hashes that nobody told anything about. Index: uq_commit_project_id_sha."""
    known = await session.scalars(select(Commit.sha).where(Commit.project_id == project_id, Commit.sha.in_(shas)))
    return set(shas) - set(known)


async def commit_by_sha(session: AsyncSession, project_id: ProjectId, sha: str) -> Commit:
    """A commit of a project. Index: uq_commit_project_id_sha."""
    row = await session.scalar(select(Commit).where(Commit.project_id == project_id, Commit.sha == sha))
    if row is None:
        raise unknown_commit(sha)
    return row


def unknown_commit(sha: str) -> NotFoundError:
    """The error for a hash that no commit of the project has."""
    return NotFoundError(
        f"Unknown commit {sha}: send it with POST /api/v1/commits (`pullback log`), or measure it.",
        missing=MissingObject("commit", sha),
    )


async def find_merge_base(session: AsyncSession, project_id: ProjectId, one: str, other: str) -> MergeBase:
    """The newest commit that both descend from, and which parents nobody told about.

    Index: uq_commit_project_id_sha, uq_branch_commit_branch_id_commit_id and pk_branch_commit; where the two are not on
    one branch, pk_commit_parent and uq_commit_project_id_sha once for each of their ancestors.
    """
    first, second = [await commit_by_sha(session, project_id, sha) for sha in (one, other)]
    if await _is_along_a_branch(session, first.id, second.id):
        older = min(first, second, key=lambda commit: (commit.ordered_at, commit.id))
        return MergeBase(older.sha, ())
    row = await statements.row(
        session, _ANCESTORS, {"project": project_id, "shas": [one, other], "limit": MOST_ANCESTORS}
    )
    return await in_background(_merge_base_in, row[0] if row else "[]", one, other)


def _merge_base_in(written: str, one: str, other: str) -> MergeBase:
    """The merge base in a graph as it is written, which may have `MOST_ANCESTORS` commits: read and walked beside the event loop."""
    graph = orjson.loads(written)
    parents = {sha: known for sha, _, known in graph}
    return merge_base(parents, one, other, newest={sha: ordered_s for sha, ordered_s, _ in graph})


async def _is_along_a_branch(session: AsyncSession, one: int, other: int) -> bool:
    """True if first parents lead from one commit to the other. Index: ix_branch_commit_commit_id, pk_branch_commit."""
    return await statements.row(session, _ALONG_A_BRANCH, {"one": one, "other": other}) is not None


async def parents_of(session: AsyncSession, commit_ids: Sequence[int]) -> dict[int, list[str]]:
    """Hashes of the parents of some commits, first parents first. Index: pk_commit_parent."""
    rows = await session.execute(
        select(CommitParent.commit_id, CommitParent.parent_sha)
        .where(CommitParent.commit_id.in_(commit_ids))
        .order_by(CommitParent.commit_id, CommitParent.position)
    )
    results: dict[int, list[str]] = {}
    for row in rows:
        results.setdefault(row.commit_id, []).append(row.parent_sha)
    return results

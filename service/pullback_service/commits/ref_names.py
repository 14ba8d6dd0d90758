"""Names of commits: a hash, the beginning of one, or a branch."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, LiteralString

from sqlalchemy import Exists, exists, select
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.commits.queries import unknown_commit
from pullback_service.errors import MissingObject, NotFoundError, refuse
from pullback_service.ids import ProjectId
from pullback_service.models.commits import Branch, Commit
from pullback_service.models.reports import Report
from pullback_service.statements import Query, Rows

FULL_HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
BEGINNING_OF_HASH = re.compile(r"[0-9a-f]{7,63}")
LAST_DIGIT, LONGEST_HASH = "f", 64
FARTHEST_ANCESTOR = 500

_FIELDS: Final = tuple(Commit.__table__.columns.keys())
_COLUMNS: Final[LiteralString] = ", ".join(f"commit.{name}" for name in _FIELDS)
_HAS_RESULTS: LiteralString = "EXISTS (SELECT FROM report WHERE report.commit_id = {commit} AND report.points > 0)"
# A range and not LIKE: the index serves it in whatever order the database sorts text.
_NAMED: Final[LiteralString] = f"""
SELECT wanted.place, found.*
  FROM unnest(%(firsts)s::text[], %(lasts)s::text[], %(branches)s::text[], %(measured)s::boolean[])
       WITH ORDINALITY wanted (first, last, branch, measured, place), LATERAL (
       (SELECT false AS is_branch, true AS has_commits, true AS is_newest, {_COLUMNS}
          FROM commit
         WHERE commit.project_id = %(project)s AND commit.sha >= wanted.first AND commit.sha <= wanted.last
         ORDER BY commit.sha
         LIMIT 2)
        UNION ALL
        SELECT true, tip.commit_id IS NOT NULL, coalesce(tip.commit_id = chosen.commit_id, false), {_COLUMNS}
          FROM branch
          LEFT JOIN LATERAL (
               SELECT commit_id FROM branch_commit WHERE branch_id = branch.id ORDER BY position DESC LIMIT 1) tip ON true
          LEFT JOIN LATERAL (
               SELECT commit_id
                 FROM branch_commit
                WHERE branch_id = branch.id AND (NOT wanted.measured OR {_HAS_RESULTS.replace("{commit}", "branch_commit.commit_id")})
                ORDER BY position DESC
                LIMIT 1) chosen ON true
          LEFT JOIN commit ON commit.id = chosen.commit_id
         WHERE branch.project_id = %(project)s AND branch.name = wanted.branch) found
 ORDER BY wanted.place, found.is_branch
"""  # noqa: S608 - our own words
_CHAIN: Final[LiteralString] = f"""
  WITH RECURSIVE chain AS (
       SELECT commit.id, 0 AS steps, false AS measured FROM commit WHERE commit.id = %(commit)s
        UNION ALL
       SELECT parent.id, chain.steps + 1, {_HAS_RESULTS.replace("{commit}", "parent.id")}
         FROM chain
         JOIN commit_parent told ON told.commit_id = chain.id AND told.position = 0
         JOIN commit parent ON parent.project_id = %(project)s AND parent.sha = told.parent_sha
        WHERE NOT chain.measured AND chain.steps < %(farthest)s),
       nearest AS (SELECT id, steps FROM chain WHERE measured LIMIT 1)
"""  # noqa: S608 - our own words
_NEAREST: Final[LiteralString] = f"{_CHAIN} SELECT commit.sha FROM nearest JOIN commit USING (id)"  # noqa: S608 - as above
_BEFORE: Final[LiteralString] = f"""
{_CHAIN}
SELECT candidate.sha, nearest.steps, {_COLUMNS}
  FROM commit candidate, nearest JOIN commit ON commit.id = nearest.id
 WHERE candidate.id = %(commit)s
 UNION ALL
SELECT candidate.sha, NULL, {_COLUMNS}
  FROM commit candidate LEFT JOIN commit ON commit.id = (
       SELECT earlier.id
         FROM commit earlier
        WHERE earlier.project_id = %(project)s AND {_HAS_RESULTS.replace("{commit}", "earlier.id")}
          AND (earlier.ordered_at, earlier.id) < (candidate.ordered_at, candidate.id)
        ORDER BY earlier.ordered_at DESC, earlier.id DESC
        LIMIT 1)
 WHERE candidate.id = %(commit)s AND NOT EXISTS (SELECT FROM nearest)
"""  # noqa: S608 - our own words


@dataclass(frozen=True, slots=True)
class NamedCommit:
    """A commit and, where a branch was named, that branch; `newest` is false when the branch goes on unmeasured."""

    commit: Commit
    branch: str | None = None
    newest: bool = True


@dataclass(frozen=True, slots=True)
class CommitName:
    """A hash, the beginning of one (7 digits or more) or a branch, and the parameter that holds it.

    A branch stands for its newest commit, or for the newest with results where only `measured` ones are of use.
    """

    name: str
    where: str
    measured: bool = True

    @property
    def hashes(self) -> tuple[str | None, str | None]:
        """The first and the last hash that it may be the beginning of."""
        if FULL_HASH.fullmatch(self.name):
            return self.name, self.name
        is_beginning = BEGINNING_OF_HASH.fullmatch(self.name)
        return (self.name, self.name.ljust(LONGEST_HASH, LAST_DIGIT)) if is_beginning else (None, None)

    @property
    def branch(self) -> str | None:
        """The branch that it may be."""
        return None if FULL_HASH.fullmatch(self.name) else self.name


def named_commits(project_id: ProjectId, names: Sequence[CommitName]) -> Query[list[NamedCommit]]:
    """The commits of these names.

    Index: uq_commit_project_id_sha, uq_branch_project_id_name, pk_branch_commit, ix_report_commit_id.
    """
    firsts, lasts = zip(*(each.hashes for each in names), strict=True)
    values = {
        "project": project_id,
        "firsts": [*firsts],
        "lasts": [*lasts],
        "branches": [each.branch for each in names],
        "measured": [each.measured for each in names],
    }

    def read(rows: Rows) -> list[NamedCommit]:
        found = [*rows]
        return [_named(each, [row[1:] for row in found if row[0] == place]) for place, each in enumerate(names, 1)]

    return Query(_NAMED, values, read)


FIRST_NAMED: Final[LiteralString] = "(SELECT id FROM named ORDER BY place, is_branch LIMIT 1)"
"""The id of the first commit of `named_commits`, where these are given as `named`."""


async def named_commit(
    session: AsyncSession, project_id: ProjectId, name: str, *, where: str, measured: bool = True
) -> NamedCommit:
    """The commit of this name. Index: as `named_commits`."""
    (result,) = await statements.answer(session, named_commits(project_id, [CommitName(name, where, measured)]))
    return result


def _named(name: CommitName, rows: Sequence[tuple[Any, ...]]) -> NamedCommit:
    by_hash = [row for row in rows if not row[0]]
    if len(by_hash) > 1:
        refuse(name.where, f"More than one commit begins with {name.name}: give more digits.")
    if by_hash:
        return NamedCommit(_commit(by_hash[0][3:]))
    if name.branch is None:
        raise unknown_commit(name.name)
    if not rows:
        raise _unknown_branch(name.name)
    ((_, has_commits, is_newest, *commit),) = rows
    if not has_commits:
        raise NotFoundError(
            f"Branch {name.name!r} has no commits yet: measure one, or send its history with `pullback log`.",
            missing=MissingObject("results", name.name),
        )
    if commit[0] is None:
        raise NotFoundError(
            f"No commit of branch {name.name!r} has results yet: measure one, or name another branch.",
            missing=MissingObject("results", name.name),
        )
    return NamedCommit(_commit(commit), name.name, newest=is_newest)


def _commit(columns: Sequence[Any]) -> Commit:
    return Commit(**dict(zip(_FIELDS, columns, strict=True)))


async def branch_by_name(session: AsyncSession, project_id: ProjectId, name: str) -> Branch:
    """A branch of a project. Index: uq_branch_project_id_name."""
    row = await session.scalar(select(Branch).where(Branch.project_id == project_id, Branch.name == name))
    if row is None:
        raise _unknown_branch(name)
    return row


def _unknown_branch(name: str) -> NotFoundError:
    return NotFoundError(
        f"There is neither a commit nor a branch {name!r} in this project: give a hash, of 7 digits or more, "
        f"or a branch that GET /api/v1/branches lists.",
        missing=MissingObject("branch", name),
    )


def commit_before(project_id: ProjectId, commit_id: int) -> Query[tuple[Commit, str | None]]:
    """The default reference of a commit, and a word where that is not its first parent.

    It is the nearest ancestor by first parents with results, up to 500 commits back; behind what is known of them, whatever
    has results before it in history. Index: pk_commit_parent, uq_commit_project_id_sha, ix_report_commit_id, ix_commit_history.
    """
    return Query(_BEFORE, _chain(project_id, commit_id), _before)


def _before(rows: Rows) -> tuple[Commit, str | None]:
    (sha, steps, *columns), *_ = rows
    if columns[0] is None:
        raise NotFoundError(
            f"Nothing was measured before commit {sha}: name the commit to compare with in `base`, or measure its parent.",
            missing=MissingObject("results", sha),
        )
    earlier = _commit(columns)
    if steps is None:
        return earlier, (
            f"The ancestry of {sha} is not known: {earlier.sha} is the newest commit with results before it in "
            "history; send its parents with `pullback log`."
        )
    if steps == 1:
        return earlier, None
    return earlier, f"The first parent of {sha} has no results: {earlier.sha} is its nearest ancestor with results."


async def nearest_measured(session: AsyncSession, project_id: ProjectId, commit: Commit) -> str | None:
    """Hash of the nearest ancestor by first parents with results, up to 500 commits back.

    Index: pk_commit_parent, uq_commit_project_id_sha, ix_report_commit_id.
    """
    row = await statements.row(session, _NEAREST, _chain(project_id, commit.id))
    return None if row is None else row[0]


def _chain(project_id: ProjectId, commit_id: int) -> dict[str, object]:
    return {"project": project_id, "commit": commit_id, "farthest": FARTHEST_ANCESTOR}


_TO_CHOOSE: Final[LiteralString] = """
(SELECT branch.name, 'branch'
   FROM branch
  WHERE branch.project_id = %(project)s AND EXISTS (SELECT FROM branch_commit WHERE branch_id = branch.id)
  ORDER BY branch.name
  LIMIT %(limit)s)
 UNION ALL
(SELECT left(commit.sha, 12), coalesce(commit.title, '')
   FROM commit
  WHERE commit.project_id = %(project)s
  ORDER BY commit.ordered_at DESC, commit.id DESC
  LIMIT %(limit)s)
"""


def names_to_choose(project_id: ProjectId, *, limit: int) -> Query[tuple[tuple[str, str], ...]]:
    """Names of branches, then of the newest commits, each with what it is.

    Index: uq_branch_project_id_name, pk_branch_commit, ix_commit_history.
    """
    return Query(_TO_CHOOSE, {"project": project_id, "limit": limit}, tuple, width=2)


def has_results() -> Exists:
    """True if a commit of the statement has points. Index: ix_report_commit_id."""
    return exists().where(Report.commit_id == Commit.id, Report.points > 0)

"""The two commits of a comparison."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, LiteralString

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.commits.ancestry import MergeBase
from pullback_service.commits.queries import commit_by_sha, find_merge_base
from pullback_service.commits.ref_names import (
    FIRST_NAMED,
    CommitName,
    NamedCommit,
    commit_before,
    named_commits,
    nearest_measured,
)
from pullback_service.comparisons.judgements import Outcomes
from pullback_service.errors import InvalidInputError, refuse
from pullback_service.ids import ProjectId
from pullback_service.statements import Query

MANY_POINTS: Final = 40_000
"""Points of the named commits from which Postgres takes half a second for a comparison: these run one at a time."""
_POINTS: Final[LiteralString] = "SELECT points::bigint FROM report WHERE commit_id IN (SELECT id FROM named)"
_POINTS_AT: Final[LiteralString] = """
SELECT coalesce(sum(points), 0)::bigint FROM report WHERE commit_id = ANY (%(commits)s::bigint[])
"""


@dataclass(frozen=True, slots=True)
class ComparedCommits:
    """The two commits of a comparison, and what to know about how they were found; `points` are those of the commits that were named."""

    reference: NamedCommit
    candidate: NamedCommit
    notes: Sequence[str]
    points: int = 0


async def find_compared_commits(
    session: AsyncSession,
    project_id: ProjectId,
    base: str | None,
    head: str,
    *,
    merge_base: bool,
    two_machines: bool = False,
) -> ComparedCommits:
    """The commits that are named: `base` may be left out for the first parent of `head`, or whatever has results before it.

    Two machines may be compared with each other at one commit, and are where no `base` is named.

    Index: as `named_commits` and `commit_before`, ix_report_commit_id, and for a merge base as `find_merge_base`.
    """
    if base is None and merge_base:
        refuse("merge_base", "A merge base needs two commits: give `base` too.")
    names = [CommitName(head, "head"), *([CommitName(base, "base", not merge_base)] if base is not None else [])]
    query = named_commits(project_id, names)
    async with statements.together(session, named=query) as ask:
        named = ask(query.given_as("named"))
        points = ask(Query(_POINTS, {}, lambda rows: sum(counted for (counted,) in rows), width=1))
        before = (
            ask(commit_before(project_id, 0).where(commit=FIRST_NAMED)) if base is None and not two_machines else None
        )
    candidate, other = named.value[0], named.value[-1]
    notes: list[str] = []
    reference = other
    if before is not None:
        earlier, word = before.value
        reference = NamedCommit(earlier)
        notes += [word] if word is not None else []
    elif merge_base:
        found = await find_merge_base(session, project_id, other.commit.sha, candidate.commit.sha)
        if found.sha is None:
            raise InvalidInputError(
                f"No common ancestor of {base!r} and {head!r} is known: send their history with "
                "`pullback log`, or leave out merge_base."
            )
        reference = NamedCommit(await commit_by_sha(session, project_id, found.sha), other.branch)
        notes += uncertainty(found)
    if reference.commit.id == candidate.commit.id and not two_machines:
        message = f"Both are commit {candidate.commit.sha}: there is nothing to compare; give another `base`."
        refuse("base", message)
    notes += [
        f"{named.commit.sha} is the newest commit of branch {named.branch!r} with results, not its newest one."
        for named in dict.fromkeys((reference, candidate))
        if not named.newest
    ]
    return ComparedCommits(reference, candidate, notes, points.value)


def uncertainty(merge_base: MergeBase) -> Sequence[str]:
    """A note about a merge base that may not be the newest one."""
    note = (
        f"This is the newest known merge base; the parents of {len(merge_base.unknown)} commits are unknown, and there "
        "may be a newer one: send their history with `pullback log`."
    )
    return [note] if merge_base.unknown else []


async def points_at(session: AsyncSession, commits: Sequence[int]) -> int:
    """The number of points at commits. Index: ix_report_commit_id."""
    ((points,),) = await statements.rows(session, _POINTS_AT, {"commits": list(commits)})
    return int(points)


async def missing_series(
    session: AsyncSession, project_id: ProjectId, pair: ComparedCommits, outcomes: Outcomes
) -> Sequence[str]:
    """The remedy for a commit that has none of the chosen series. Index: as `nearest_measured`."""
    notes = []
    for commit, measured in (
        (pair.reference.commit, outcomes.has_reference.any()),
        (pair.candidate.commit, outcomes.has_candidate.any()),
    ):
        if measured:
            continue
        nearest = await nearest_measured(session, project_id, commit)
        instead = "" if nearest is None else f", or name {nearest}, its nearest ancestor with results"
        notes.append(f"Commit {commit.sha} has none of these series: queue it with POST /api/v1/jobs{instead}.")
    return notes

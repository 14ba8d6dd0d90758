"""Sources of the news: the series that changed at some commits, failures there, and comparisons."""

from collections.abc import Mapping, Sequence

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_dashboards import sources
from pullback_dashboards.history import History
from pullback_dashboards.news.view import LATELY
from pullback_service.commits.following import Placed, followed_on, places_followed
from pullback_service.ids import MachineId, ProjectId
from pullback_service.series import overviewing
from pullback_service.series.queries import CommitFacts, commits_of_ids
from pullback_service.steps.queries import KnownStep, news_at

LOOKED_AT = LATELY.commits + 1
"""Commits. As many for the news of one alone: of a case that a machine measures in turn with others, the reading before may
be a few commits back."""


async def lately(
    session: AsyncSession, project_id: ProjectId, machine_id: MachineId, *, until: CommitFacts | None = None
) -> History:
    """The changes at the newest commits of a project that a machine measured, or at those up to one of them."""
    commits = await overviewing.measured_commits(session, project_id, machine_id, limit=LOOKED_AT, until=until)
    return await changes_among(session, project_id, machine_id, commits)


async def changes_among(
    session: AsyncSession, project_id: ProjectId, machine_id: MachineId, commits: Sequence[CommitFacts]
) -> History:
    """The last of these commits, which follow each other, with the series that changed at them.

    Before them may stand others that some of them were made from, or are judged against.
    """
    newest = commits[-LOOKED_AT:]
    if not newest:
        return History()
    steps = await news_at(session, machine_id, [commit.id for commit in newest])
    recent, follows = await _with_those_before(session, project_id, machine_id, newest, steps)
    ids = [commit.id for commit in recent]
    failed = await overviewing.failures_at(session, machine_id, ids)
    measured: Sequence[overviewing.LineReading] = ()
    if failed:
        speaking = await overviewing.speaking_series(session, machine_id, {failure.case.id for failure in failed})
        measured = await overviewing.lines_of(session, speaking, ids)
    places = {id_: place for place, id_ in enumerate(ids)}
    history = History(
        tuple(map(sources.commit_of, recent)), sources.lines_of_news(steps, measured, failed, places), follows=follows
    )
    return sources.with_steps(history, steps)


async def _with_those_before(
    session: AsyncSession,
    project_id: ProjectId,
    machine_id: MachineId,
    commits: Sequence[CommitFacts],
    steps: Sequence[KnownStep],
) -> tuple[Sequence[CommitFacts], Mapping[int, int]]:
    """Commits with those that they were made from, and by place which one that is where it is not the one before."""
    followed = await followed_on(session, project_id, machine_id, [commit.id for commit in commits])
    recent = {commit.id for commit in commits}
    # What the oldest one followed is no news, but on another branch it may be what a later one is made from.
    farther = {
        reached.id
        for start, reached in followed.items()
        if reached.counts and reached.id not in recent and start != commits[0].id
    }
    others = {one.reference.id: CommitFacts(*one.reference) for one in steps if one.reference.id not in recent}
    farther -= others.keys()
    others |= {commit.id: commit for commit in (await commits_of_ids(session, farther) if farther else ())}
    known = sorted([*others.values(), *commits], key=_place)
    known = known[: known.index(commits[-1]) + 1]
    follows = places_followed([_place(one) for one in known], followed)
    # Of those brought in from before nobody asked what they follow: the way ends there, not at whatever stands beside them.
    ends = {place: -1 for place, one in enumerate(known) if one.id not in recent}
    return known, {**follows, **ends}


def _place(commit: CommitFacts) -> Placed:
    return commit.ordered_at, commit.id

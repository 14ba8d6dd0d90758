"""Sources of the news: the series that changed at some commits, failures there, and comparisons."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, LiteralString

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_dashboards import sources
from pullback_dashboards.history import History
from pullback_dashboards.news.incidents import said_in
from pullback_dashboards.news.view import LATELY
from pullback_service import statements
from pullback_service.commits.predecessors import CommitPlace, NearestAncestor, followed_on, places_followed
from pullback_service.ids import MachineId, ProjectId
from pullback_service.incidents.queries import incident_changes_at
from pullback_service.series import overview_data
from pullback_service.series.queries import CommitFacts, commits_called
from pullback_service.statements import Query, QueryBatch
from pullback_service.steps.queries import StepWithReadings, commits_referred_to, news_at

LOOKED_AT = LATELY.commits + 1
"""Commits. As many for the news of one alone: of a case that a machine measures in turn with others, the reading before may
be a few commits back."""


_RECENT: Final[LiteralString] = "ARRAY (SELECT id FROM recent)"
_AROUND: Final[LiteralString] = (
    "ARRAY (SELECT id FROM recent UNION SELECT id FROM walked WHERE counts UNION SELECT id FROM referred)"
)


async def lately(session: AsyncSession, project_id: ProjectId, machine_id: MachineId) -> History:
    """The changes at the newest commits of a project that a machine measured."""
    recent = overview_data.measured_last(project_id, machine_id, limit=LOOKED_AT)
    async with statements.together(session) as ask:
        changes = changes_at(ask, project_id, machine_id, recent)
    return changes()


def changes_at(
    ask: QueryBatch, project_id: ProjectId, machine_id: MachineId, recent: Query[Sequence[CommitFacts]]
) -> Callable[[], History]:
    """Recent commits, which follow each other, with the series that changed at them and what incidents say of these.

    Before them may stand others that some of them were made from, or are judged against.
    """
    ask.give(
        recent=recent,
        walked=followed_on(project_id, machine_id, ()).where(commits=_RECENT),
        referred=commits_referred_to(machine_id, ()).where(commits=_RECENT),
        speaking=overview_data.speaking_series(machine_id, _AROUND),
    )
    newest = ask(recent.given_as("recent"))
    followed = ask(followed_on(project_id, machine_id, ()).given_as("walked"))
    before = ask(commits_called(()).where(ids="ARRAY (SELECT id FROM walked WHERE counts)"))
    news = ask(news_at(machine_id, ()).where(commits=_RECENT))
    failures = ask(overview_data.failures_at(machine_id, ()).where(commits=_AROUND))
    speaking = ask(overview_data.lines_at((), ()).where(series="ARRAY (SELECT id FROM speaking)", commits=_AROUND))

    incident_changes = ask(incident_changes_at(project_id, machine_id, ()).where(commits=_RECENT))

    def read() -> History:
        steps = news.value
        commits, follows = _with_those_before(sorted(newest.value, key=_place), followed.value, before.value, steps)
        places = {commit.id: place for place, commit in enumerate(commits)}
        failed = [failure for failure in failures.value if failure.commit.id in places]
        struck = {failure.case.id for failure in failed}
        measured = [line for line in speaking.value if line.case.id in struck]
        history = History(
            tuple(map(sources.commit_of, commits)),
            sources.lines_of_news(steps, measured, failed, places),
            follows=follows,
        )
        return replace(
            sources.with_steps(history, steps),
            incident_changes=tuple(said_in(incident_changes.value, places, len(commits))),
        )

    return read


def _with_those_before(
    commits: Sequence[CommitFacts],
    followed: Mapping[int, NearestAncestor],
    before: Sequence[CommitFacts],
    steps: Sequence[StepWithReadings],
) -> tuple[Sequence[CommitFacts], Mapping[int, int]]:
    """Commits with those that they were made from, and by place which one that is where it is not the one before it."""
    if not commits:
        return (), {}
    recent = {commit.id for commit in commits}
    # What the oldest one followed is no news, but on another branch it may be what a later one is made from.
    farther = {reached.id for start, reached in followed.items() if reached.counts and start != commits[0].id}
    others = {commit.id: commit for commit in before if commit.id in farther}
    others |= {one.reference.id: CommitFacts(*one.reference) for one in steps}
    known = sorted([*(others[id_] for id_ in others.keys() - recent), *commits], key=_place)
    known = known[: known.index(commits[-1]) + 1]
    follows = places_followed([_place(one) for one in known], followed)
    # Of those brought in from before nobody asked what they follow: the way ends there, not at whatever stands beside them.
    ends = {place: -1 for place, one in enumerate(known) if one.id not in recent}
    return known, {**follows, **ends}


def _place(commit: CommitFacts) -> CommitPlace:
    return commit.ordered_at, commit.id

"""What the news are made of: the series that changed at some commits, what failed there, and what comparisons say of them."""

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_dashboards import sources
from pullback_dashboards.history import History
from pullback_dashboards.news.view import LATELY
from pullback_dashboards.wording.factors import FLOOR
from pullback_service.ids import MachineId, ProjectId
from pullback_service.series import overviewing
from pullback_service.series.queries import CommitFacts, FailedCase

LOOKED_AT = LATELY.commits + 1
"""Commits. As many for the news of one alone: of a case that a machine measures in turn with others, the reading before may
be a few commits back."""


async def lately(
    session: AsyncSession, project_id: ProjectId, machine_id: MachineId, *, until: CommitFacts | None = None
) -> History:
    """What changed at the newest commits of a project that a machine measured, or at those up to one of them."""
    commits = await overviewing.measured_commits(session, project_id, machine_id, limit=LOOKED_AT, until=until)
    failures = await overviewing.failures_at(session, machine_id, [commit.id for commit in commits])
    return await changes_among(session, machine_id, commits, failures)


async def changes_among(
    session: AsyncSession, machine_id: MachineId, commits: Sequence[CommitFacts], failures: Sequence[FailedCase]
) -> History:
    """The last of these commits, which follow each other, with the series that changed at them."""
    recent = commits[-LOOKED_AT:]
    ids = [commit.id for commit in recent]
    if not ids:
        return History()
    series = set(await overviewing.changed_series(session, machine_id, ids, floor=FLOOR))
    failed = [failure for failure in failures if failure.commit.id in ids]
    if failed:
        series |= set(
            await overviewing.series_named(session, machine_id, {failure.case.id for failure in failed}, "time")
        )
    cells = await overviewing.lines_of(session, series, recent[0], recent[-1])
    history = sources.as_history(recent, cells, failed)
    stated = await overviewing.comparisons_at(session, machine_id, ids)
    places = {commit.id: place for place, commit in enumerate(recent)}
    claims = tuple(sources.claim_of(one, places[one.candidate_id]) for one in stated)
    return await sources.with_software(session, replace(history, claims=claims))

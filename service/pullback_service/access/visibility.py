"""What a session sees: the rows of the projects its caller may touch, as if there were no others.

The rule is put on every statement of the session, here and nowhere else, so that no query of an endpoint or a page can
forget it. Points, failures, attempts and logs are reached through rows that are limited.
"""

from typing import Any

from sqlalchemy import event, or_
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import ORMExecuteState, Session, with_loader_criteria

from pullback_service.access.caller import Caller
from pullback_service.boards.models import Board, BoardChart
from pullback_service.commits.models import Commit
from pullback_service.jobs.models import Job
from pullback_service.projects.models import Project
from pullback_service.reports.models import Report
from pullback_service.series.models import Case, Series

CALLER = "caller"
_OWNED = (Commit, Job, Report, Case, Series, BoardChart)


class LimitedSession(Session):
    """A session that belongs to a caller, or to nobody in particular, who sees everything."""


def belongs_to(session: AsyncSession, caller: Caller) -> None:
    """Let a session see only what its caller may."""
    session.info[CALLER] = caller


def caller_of(session: AsyncSession) -> Caller | None:
    """Whose session this is; None for chores."""
    found = session.info.get(CALLER)
    assert found is None or isinstance(found, Caller)  # noqa: S101 - `belongs_to` alone writes it
    return found


def name_of_caller(session: AsyncSession) -> str | None:
    """Whose session this is, as the audit log names callers; None for chores."""
    caller = caller_of(session)
    return None if caller is None else caller.name


def own_projects(session: AsyncSession) -> list[int] | None:
    """The projects a session may see, None for all of them: for statements that are no ORM's, which nobody else limits."""
    caller = caller_of(session)
    return None if caller is None or caller.projects is None else sorted(caller.projects)


@event.listens_for(LimitedSession, "do_orm_execute")
def _limit(state: ORMExecuteState) -> None:
    caller = state.session.info.get(CALLER)
    if caller is None or caller.projects is None or not (state.is_select or state.is_update or state.is_delete):
        return
    own: list[Any] = sorted(caller.projects)
    state.statement = state.statement.options(
        with_loader_criteria(Project, Project.id.in_(own), include_aliases=True),
        # A board of somebody's own is of no project, and found by who was told its address; its charts are as above.
        with_loader_criteria(Board, or_(Board.project_id.is_(None), Board.project_id.in_(own)), include_aliases=True),
        *(with_loader_criteria(table, table.project_id.in_(own), include_aliases=True) for table in _OWNED),
    )

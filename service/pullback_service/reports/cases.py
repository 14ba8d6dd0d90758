"""The reports that hold a case at a commit, and at the commits measured before and after it."""

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import case as sql_case
from sqlalchemy import func, lateral, literal, select, true, tuple_, union_all
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.commits import history
from pullback_service.commits.following import Placed, followed_of_case
from pullback_service.errors import Missing, NotFoundError
from pullback_service.ids import MachineId, ProjectId
from pullback_service.models.commits import Commit
from pullback_service.models.machines import Machine
from pullback_service.models.readings import StoredReading
from pullback_service.models.reports import WRONG_GRADIENT, Failure, Report
from pullback_service.models.series import Case, Point, Series


@dataclass(frozen=True, slots=True)
class CaseReport:
    """The newest clean upload that measured a case at a commit on a machine; a contaminated one where none is clean.

    One in which it failed speaks where none measured it, and before all others one that found its gradient wrong.
    """

    report_id: UUID
    machine: Machine
    commit: Commit


@dataclass(frozen=True, slots=True)
class CasePlace:
    """A case at a commit, with its neighbours in history on the same machine; a commit at which it failed is none."""

    case: Case
    here: CaseReport
    before: CaseReport | None
    after: CaseReport | None


async def place_of_case(
    session: AsyncSession,
    project_id: ProjectId,
    label: str,
    commit: Commit,
    *,
    machine: str | None = None,
    without: Collection[UUID] = (),
) -> CasePlace:
    """A case at a commit, on the machine of that name or else on the one whose report came last; `without` some reports.

    Index: ix_case_workload, then one probe of ix_point_commit_id_series_id and of ix_reading_series_history for each series
    of the case; ix_failure_case_history; for the commit before as `followed_of_case`.
    """
    case = await session.scalar(select(Case).where(Case.project_id == project_id, Case.label == label).limit(1))
    if case is None:
        raise NotFoundError(f"No upload of this project has a case {label!r}.", missing=Missing("case", label))
    here = await _speaking_report(session, case, (commit.ordered_at, commit.id), machine=machine, without=without)
    if here is None:
        on, missing = "", Missing("case", label)
        if machine is not None:
            on, missing = f" on machine {machine!r}", Missing("machine", machine)
        raise NotFoundError(f"No upload measured {label!r} at {commit.sha[:9]}{on}.", missing=missing)
    return CasePlace(
        case,
        here,
        before=await _before(session, project_id, case, here),
        after=await _neighbour(session, case, here, (here.commit.ordered_at, here.commit.id), later=True),
    )


_WRONG, _MEASURED, _FAILED = range(3)
"""What a report says of a case, the first of which counts: whatever others measured, a wrong gradient is none."""


async def _speaking_report(
    session: AsyncSession, case: Case, at: Placed, *, machine: str | None, without: Collection[UUID] = ()
) -> CaseReport | None:
    series = select(Series.id).where(Series.case_id == case.id).subquery("series_of_case")
    point = lateral(select(Point.report_id).where(Point.series_id == series.c.id, Point.commit_id == at[1]).offset(0))
    says = sql_case((Failure.kind == WRONG_GRADIENT, _WRONG), else_=_FAILED)
    told = union_all(
        select(point.c.report_id, literal(_MEASURED).label("says")).join_from(series, point, true()),
        select(Failure.report_id, says).where(
            Failure.case_id == case.id, tuple_(*history.place(Failure)) == tuple_(*at)
        ),
    ).subquery("told")
    speaking = (
        select(told.c.report_id, func.min(told.c.says).label("says"), func.count().label("parts"))
        .where(told.c.report_id.not_in(without))
        .group_by(told.c.report_id)
        .subquery("speaking")
    )
    last_came = func.max(Report.received_at).over(partition_by=Report.machine_id)
    statement = (
        select(Report.id, Machine, Commit)
        .join(speaking, speaking.c.report_id == Report.id)
        .join(Commit, Commit.id == Report.commit_id)
        .join(Machine, Machine.id == Report.machine_id)
        .order_by(
            last_came.desc(),
            Machine.id,
            speaking.c.says != _WRONG,
            speaking.c.says,
            speaking.c.parts.desc(),  # a newer report of one variant hides nothing of a fuller one
            Report.quality == "contaminated",
            Report.received_at.desc(),
            Report.id.desc(),
        )
        .limit(1)
    )
    if machine is not None:
        statement = statement.where(Machine.name == machine)
    row = (await session.execute(statement)).one_or_none()
    return CaseReport(*row) if row else None


async def _before(session: AsyncSession, project_id: ProjectId, case: Case, here: CaseReport) -> CaseReport | None:
    """The nearest ancestor at which the machine measured the case; behind the last that is known, what lies before that."""
    on = MachineId(here.machine.id)
    reached = (await followed_of_case(session, project_id, case.id, on, here.commit.id)).get(here.commit.id)
    if reached is None or not reached.counts:
        # An ancestor of which nobody told a date stands where it was first heard of, which may be behind its children.
        place = here.commit.ordered_at, here.commit.id
        place = place if reached is None else min(place, (reached.ordered_at, reached.id))
        found = await _neighbour(session, case, here, place, later=False)
        onward = await followed_of_case(session, project_id, case.id, on, found.commit.id) if found else {}
        is_child = any(there.counts and there.id == here.commit.id for there in onward.values())
        return None if is_child else found
    return await _speaking_report(session, case, (reached.ordered_at, reached.id), machine=here.machine.name)


async def _neighbour(
    session: AsyncSession, case: Case, here: CaseReport, place: Placed, *, later: bool
) -> CaseReport | None:
    """The nearest commit on that side of a place in history at which the machine measured any variant of the case."""
    order = history.oldest_first if later else history.newest_first
    series = (
        select(Series.id)
        .where(Series.case_id == case.id, Series.machine_id == here.machine.id)
        .subquery("series_of_case")
    )
    nearest = lateral(
        select(StoredReading.commit_id)
        .where(
            StoredReading.series_id == series.c.id,
            history.after(StoredReading, *place) if later else history.before(StoredReading, *place),
        )
        .order_by(*order(StoredReading))
        .limit(1)
    )
    found = await session.execute(
        select(*history.place(Commit))
        .select_from(series)
        .join(nearest, true())
        .join(Commit, Commit.id == nearest.c.commit_id)
        .order_by(*order(Commit))
        .limit(1)
    )
    at = found.one_or_none()
    return None if at is None else await _speaking_report(session, case, (at[0], at[1]), machine=here.machine.name)

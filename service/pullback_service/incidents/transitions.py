"""State transitions of incidents, by their changes, jobs and verdicts; each is stored as an event and announced."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, Final

from sqlalchemy import Select, cast, func, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.sql.functions import now
from sqlalchemy.types import Date

from pullback_service.ids import ProjectId
from pullback_service.incidents.announcements import (
    BEGINNINGS,
    announce,
    announce_first,
    announce_growth,
    announce_held_back,
    announce_parts,
    announced_state,
    note_event,
)
from pullback_service.incidents.bisection_jobs import search
from pullback_service.incidents.changes import Change, Places, supporting
from pullback_service.incidents.confirmation import (
    GIVEN_UP_AFTER_DAYS,
    MINUTES_A_DAY,
    Budget,
    MeasurementMethod,
    budget_of,
    chosen_to_measure,
    effort_for,
    measuring_pairs,
    queue_confirmation,
)
from pullback_service.incidents.detection_inputs import Pair, Trunk
from pullback_service.incidents.lifecycle import (
    MOST_ASKED,
    Control,
    State,
    is_caused_by_machine,
    is_left_open,
    state_of,
)
from pullback_service.incidents.queries import changes_of_incidents, verdicts_of
from pullback_service.jobs.queries import UNFINISHED
from pullback_service.models.incidents import Bisection, Incident, IncidentEvent, IncidentJob, Verdict
from pullback_service.models.jobs import Job
from pullback_service.models.reports import Comparison, Report

WAITING: Final = ("suspected", "confirming")
BY_MACHINE: Final = "An unaffected case moved as well: the machine changed, not the code."
LEFT_OPEN: Final = (
    "An unaffected case moved in one measurement and not in another: it may be the machine, and not the code."
)
SEEN_BY: Final = "seen_by_detector"
"""A detail of the event with which an incident begins that is `seen` because its results are older than the detector."""
OUT_OF_TIME: Final = "The machine had no time left to measure it on the day it was found."
MOST_LATE: Final = 50
"""The number of suspicions of earlier days for which one transaction looks for time; the next one takes the next ones."""
ALL_MOVED: Final = "Unrelated cases on the machine moved alike: the machine changed, or something that all of them use."


@dataclass(frozen=True, slots=True)
class _IncidentInputs:
    """The inputs that decide the states of some incidents."""

    changes: Mapping[int, Sequence[Change]]
    verdicts: Mapping[int, Verdict]
    controls: Mapping[int, Sequence[Control]]
    bisections: Mapping[int, Bisection]
    waiting: Collection[int]
    """Jobs that wait or run."""
    measured: Collection[int]
    """Incidents that an agent measured again."""
    measuring: Mapping[Pair, MeasurementMethod]
    today: date


async def settle(
    session: AsyncSession,
    project_id: ProjectId,
    trunk: Trunk,
    touched: Collection[int],
    *,
    minutes_a_day: float = MINUTES_A_DAY,
) -> None:
    """Bring the states of touched incidents up to date, and of those that wait for a measurement.

    Machines measure the largest suspicions first, those in new results before those in old ones, then continue bisections, then measure what had no
    turn on an earlier day, newest first, for so many minutes a day. A verdict that is given meanwhile comes before or after: giving one locks the incident as well.
    Index: pk_incident, ix_incident_waiting, ix_incident_project_id, ix_bisection_running, ix_change_incident_id, ix_verdict_incident_id, pk_job.
    """
    of_project = select(Incident).where(Incident.project_id == project_id, Incident.state != "merged")
    bisected = select(Bisection.incident_id).where(
        Bisection.state == "running"
    )  # a bisection pauses while its incident is not confirmed
    late = (await session.scalars(_had_no_turn(project_id))).all()
    results = (
        await session.scalars(
            of_project.where(
                Incident.id.in_({*touched, *late}) | Incident.state.in_(WAITING) | Incident.id.in_(bisected)
            )
            .order_by(Incident.id)
            .with_for_update(key_share=True)
            .execution_options(populate_existing=True)
        )
    ).all()
    known = await _read_inputs(session, project_id, results)
    budget = await budget_of(session, {by.machine_id for by in known.measuring.values()}, minutes_a_day)
    for incident in sorted(results, key=lambda incident: (incident.seen, -_size(known.changes.get(incident.id, ())))):
        await _settle(session, incident, known, trunk.places, budget)
    for incident in results:
        if incident.state == "confirmed":
            bisection = known.bisections.get(incident.id)
            changes = known.changes.get(incident.id, ())
            await search(session, incident, bisection, changes, trunk.places, known.measuring, budget)
    for incident in sorted(
        (incident for incident in results if incident.id in late), key=lambda incident: -incident.id
    ):
        await _measure_late(session, incident, known, trunk.places, budget)


def _had_no_turn(project_id: ProjectId) -> Select[int]:
    """The newest incidents of some days that no machine had time to measure, and that were not looked at today."""
    return (
        select(Incident.id)
        .where(
            Incident.project_id == project_id,
            Incident.state == "unconfirmed",
            Incident.out_of_time_on < cast(func.timezone("UTC", now()), Date),
            Incident.found_at > now() - timedelta(days=GIVEN_UP_AFTER_DAYS),
            Incident.ended_id.is_(None),
        )
        .order_by(Incident.id.desc())
        .limit(MOST_LATE)
    )


async def _measure_late(
    session: AsyncSession, incident: Incident, known: _IncidentInputs, places: Places, budget: Budget
) -> None:
    """Measure an incident that had no turn on an earlier day if there is time, of the share for old results; else look again tomorrow."""
    if incident.state != "unconfirmed" or incident.ended_id is not None:
        return
    if await _take_turn(session, incident, known, places, budget, of_old_results=True):
        await move(session, incident, "confirming")
    else:
        incident.out_of_time_on = known.today


async def _take_turn(
    session: AsyncSession,
    incident: Incident,
    known: _IncidentInputs,
    places: Places,
    budget: Budget,
    *,
    of_old_results: bool,
) -> bool:
    """Queue the measurement of an incident if an agent can measure it and its machine has time left; false otherwise."""
    chosen = _chosen(incident, known)
    if not chosen:
        return False
    by = known.measuring[chosen[0].pair]
    cases, variants = ({getattr(change, name) for change in chosen} for name in ("case_id", "variant"))
    if not budget.take(by.machine_id, len(cases) + 1, len(variants), effort_for(chosen), of_old_results=of_old_results):
        return False
    await queue_confirmation(session, incident, chosen, places, by, of_old_results=of_old_results)
    incident.out_of_time_on = None
    return True


async def _read_inputs(session: AsyncSession, project_id: ProjectId, incidents: Sequence[Incident]) -> _IncidentInputs:
    ids = [incident.id for incident in incidents]
    changes = await changes_of_incidents(session, ids)
    jobs = [incident.job_id for incident in incidents if incident.job_id is not None]
    bisections = (await session.scalars(_bisections_of(ids))).all()
    pairs = {change.pair for of_one in changes.values() for change in of_one}
    pairs |= {(bisection.case_id, bisection.machine_id) for bisection in bisections}
    return _IncidentInputs(
        changes,
        await verdicts_of(session, ids),
        await controls_of(session, ids),
        {bisection.incident_id: bisection for bisection in bisections},
        set(await session.scalars(select(Job.id).where(Job.id.in_(jobs), Job.state.in_(UNFINISHED)))),
        await measured_again(session, ids),
        await measuring_pairs(session, project_id, pairs),
        (await session.execute(select(cast(func.timezone("UTC", now()), Date)))).scalar_one(),
    )


def _bisections_of(ids: Collection[int]) -> Select[Bisection]:
    return select(Bisection).where(Bisection.incident_id.in_(ids)).execution_options(populate_existing=True)


async def measured_again(session: AsyncSession, ids: Collection[int]) -> set[int]:
    """The incidents that an agent measured again. Index: ix_incident_job_incident_id, pk_job."""
    statement = (
        select(IncidentJob.incident_id)
        .join(Job, Job.id == IncidentJob.job_id)
        .where(IncidentJob.incident_id.in_(ids), Job.state == "done")
    )
    return set(await session.scalars(statement))


async def controls_of(session: AsyncSession, ids: Collection[int]) -> Mapping[int, Sequence[Control]]:
    """The unaffected cases that jobs of incidents measured.

    Index: ix_incident_job_incident_id, pk_job, ix_comparison_candidate, pk_report.
    """
    controls: dict[int, list[Control]] = defaultdict(list)
    slower = (
        select(func.max(func.abs(Comparison.log_ratio)))
        .join(Report, Report.id == Comparison.report_id)
        .where(
            Comparison.candidate_id == Job.commit_id,
            Comparison.reference_id == Job.reference_id,
            Comparison.case_id == IncidentJob.control_id,
            Comparison.outcome == "slower",
            Report.job_id == Job.id,
            Report.status != "withdrawn",  # a late one may be the only result of its job
        )
        .correlate(Job, IncidentJob)
        .scalar_subquery()
    )
    measured = (
        select(IncidentJob.incident_id, IncidentJob.control_id, Job.reference_id, Job.commit_id, slower)
        .join(Job, Job.id == IncidentJob.job_id)
        .where(IncidentJob.incident_id.in_(ids), IncidentJob.control_id.is_not(None))
    )
    for incident_id, case_id, reference_id, commit_id, by in await session.execute(measured):
        if case_id is not None and reference_id is not None:
            controls[incident_id].append(Control(case_id, reference_id, commit_id, by or 0.0))
    return controls


def _size(changes: Sequence[Change]) -> float:
    return max((abs(change.log_ratio or 0.0) for change in changes), default=0.0)


async def decide(session: AsyncSession, incident: Incident, *, by: str) -> None:
    """Move an incident to the state that follows from its evidence and verdict, for a person; jobs are left to detection.

    What was announced stands until it is measured again. Index: as `settle`.
    """
    await session.flush()
    known = await _read_inputs(session, ProjectId(incident.project_id), [incident])
    is_announced = await announced_state(session, incident) == "told"
    state = _state_of(incident, known, may_be_measured=not is_announced and bool(_chosen(incident, known)))
    await move(session, incident, state, actor=by)


def _chosen(incident: Incident, known: _IncidentInputs) -> Sequence[Change]:
    """The suspicions of an incident that an agent could measure again; none if it was measured as often as it may be."""
    if incident.asked >= MOST_ASKED:
        return []
    return chosen_to_measure(known.changes.get(incident.id, ()), known.measuring)


def _ran_out_of_time(incident: Incident, known: _IncidentInputs) -> bool:
    is_decided = incident.state == "unconfirmed"  # and was looked at again today, in vain
    return incident.out_of_time_on is not None and (is_decided or incident.out_of_time_on < known.today)


def _state_of(incident: Incident, known: _IncidentInputs, *, may_be_measured: bool) -> State:
    verdict = known.verdicts.get(incident.id)
    return state_of(
        known.changes.get(incident.id, ()),
        was=incident.state,  # type: ignore[arg-type] # the table has no others
        verdict=None if verdict is None else verdict.verdict,  # type: ignore[arg-type]
        is_measured_again=incident.job_id in known.waiting,
        may_be_measured=may_be_measured,
        was_measured=incident.id in known.measured,
        controls=known.controls.get(incident.id, ()),
        ran_out_of_time=_ran_out_of_time(incident, known),
        may_be_machine=incident.cause == "machine",
    )


async def _settle(
    session: AsyncSession, incident: Incident, known: _IncidentInputs, places: Places, budget: Budget
) -> None:
    changes = known.changes.get(incident.id, ())
    controls = known.controls.get(incident.id, ())
    chosen = _chosen(incident, known)
    state = _state_of(incident, known, may_be_measured=bool(chosen))
    if state == "suspected" and chosen:
        if await _take_turn(session, incident, known, places, budget, of_old_results=incident.seen):
            state = "confirming"
        elif await announced_state(session, incident) == "told":  # the announcement stands until it is measured
            state = _state_of(incident, known, may_be_measured=False)
        else:
            incident.out_of_time_on = known.today
    if state == "likely":
        incident.out_of_time_on = None  # it waits for no turn, and stands if an agent comes back
    locate(incident, changes, places)
    because = BY_MACHINE if state == "refuted" and is_caused_by_machine(changes, controls) else None
    if state == "unconfirmed" and is_left_open(changes, controls):
        because = LEFT_OPEN
    elif state == "unconfirmed" and _ran_out_of_time(incident, known):
        because = OUT_OF_TIME
    elif state == "unconfirmed" and incident.cause == "machine" and not incident.asked:
        because = ALL_MOVED
    await move(session, incident, state, because=because)


def locate(incident: Incident, changes: Sequence[Change], places: Places) -> None:
    """Set the kind of an incident and the range that its changes have in common; without changes it stays as it was.

    If some are claimed, suspicions of other cases and variants do not narrow the range.
    """
    speaking = [change for change in changes if change.standing == "claimed"] or supporting(changes)
    if not speaking:
        return
    subjects = {(change.case_id, change.variant) for change in speaking}
    narrowing = [change for change in supporting(changes) if (change.case_id, change.variant) in subjects]
    incident.kind = speaking[0].incident_kind
    incident.reference_id = max((change.reference_id for change in narrowing), key=places.__getitem__)
    incident.commit_id = min((change.commit_id for change in narrowing), key=places.__getitem__)
    ends = [change.ended_id for change in speaking if change.ended_id is not None]
    incident.ended_id = max(ends, key=places.__getitem__) if len(ends) == len(speaking) else None


async def move(
    session: AsyncSession, incident: Incident, state: State, *, actor: str | None = None, because: str | None = None
) -> None:
    """Move an incident to another state, store that as an event, and announce it if its kind is announced."""
    was = incident.state
    if state == was:
        await session.flush()
        await announce_held_back(session, incident)
        await announce_growth(session, incident)
        return
    incident.state = state
    incident.changed_at = now()
    if state == "confirmed" and incident.seen:
        incident.seen = not await _is_seen_by_detector_alone(session, incident.id)
    await session.flush()
    told = await announced_state(session, incident)
    is_asked_for = was == "likely" and state == "confirming"  # the announcement stands until the answer is there
    if state in {"refuted", "unconfirmed", "suspected", "confirming"} and told == "told" and not is_asked_for:
        await announce(session, incident, "withdrawn", actor=actor)
    elif state in {"confirmed", "likely"} and told != "told":
        await announce_first(session, incident, state, actor=actor)
    elif state == "resolved" and told == "told":
        await announce(session, incident, "resolved", actor=actor)
    else:
        details: dict[str, Any] = {} if because is None else {"because": because}
        note_event(session, incident, state, actor=actor, details=details)
    if told == "told" and state not in BEGINNINGS and not is_asked_for:
        await session.flush()
        await announce_parts(session, incident)


async def _is_seen_by_detector_alone(session: AsyncSession, incident_id: int) -> bool:
    """True if an incident was `seen` only because its results are older than the detector. Index: ix_incident_event_incident_id."""
    begun = select(IncidentEvent.id).where(
        IncidentEvent.incident_id == incident_id, IncidentEvent.details.has_key(SEEN_BY)
    )
    return await session.scalar(begun) is not None

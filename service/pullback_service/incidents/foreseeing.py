"""Incidents of the last 90 days, as other rules would have told them."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.incidents.announcing import BEGINNINGS, TOLD_OF
from pullback_service.incidents.queries import NamedChange, details_of
from pullback_service.incidents.ruling import decision_on, subject_of
from pullback_service.incidents.sentences import sentence
from pullback_service.models.incidents import Incident, IncidentEvent
from pullback_service.models.projects import Project
from pullback_service.rules.matching import Rule, rule_for
from pullback_service.rules.schemas import ForeseenIncident

DAYS: Final = 90
MOST: Final = 1000


async def foresee(session: AsyncSession, project: Project, rules: Sequence[Rule]) -> list[ForeseenIncident]:
    """The incidents that were told, or would have been, newest first. Budgets are not looked for in the past.

    Index: ix_incident_project_id, ix_incident_event_incident_id; as `details_of`.
    """
    since = func.now() - func.make_interval(0, 0, 0, DAYS)
    of_project = select(Incident).where(Incident.project_id == project.id, Incident.found_at >= since)
    may_be_told = of_project.where(~Incident.seen, Incident.kind.in_(TOLD_OF), Incident.state != "merged")
    incidents = (await session.scalars(may_be_told.order_by(Incident.id.desc()).limit(MOST))).all()
    rows = await session.execute(
        select(IncidentEvent.incident_id, IncidentEvent.told).where(
            IncidentEvent.incident_id.in_([incident.id for incident in incidents]), IncidentEvent.event.in_(BEGINNINGS)
        )
    )
    began: dict[int, list[bool]] = defaultdict(list)
    for incident_id, told in rows:
        began[incident_id].append(told)
    found = []
    for detail in await details_of(session, [incident for incident in incidents if incident.id in began]):
        watched = [each for each in detail.changes if _is_watched(rules, each)]
        would = (bool(watched) or not detail.changes) and decision_on(rules, watched).tells
        told = any(began[detail.incident.id])
        if told or would:
            found.append(
                ForeseenIncident(
                    id=detail.incident.id,
                    url=f"/api/v1/incidents/{detail.incident.id}",
                    sentence=sentence(detail),
                    told=told,
                    would_be_told=would,
                )
            )
    return found


def _is_watched(rules: Sequence[Rule], each: NamedChange) -> bool:
    rule = rule_for(rules, subject_of(each), "watch")
    return rule is None or rule.watch is not False

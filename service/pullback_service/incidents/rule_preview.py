"""Preview of rules: the incidents of the last 90 days as they would have been announced."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final, LiteralString

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.ids import ProjectId
from pullback_service.incidents.announcements import ANNOUNCED_KINDS, BEGINNINGS
from pullback_service.incidents.budget_inputs import every_budget_change
from pullback_service.incidents.changes import Places
from pullback_service.incidents.detection_inputs import read_trunk
from pullback_service.incidents.grouping import LocatedChange, group
from pullback_service.incidents.queries import Detail, NamedChange, details_of, named_changes
from pullback_service.incidents.rule_decisions import decision_on, subject_of
from pullback_service.incidents.sentences import sentence
from pullback_service.models.incidents import Incident, IncidentEvent
from pullback_service.models.projects import Project
from pullback_service.rules.matching import Rule, rule_for
from pullback_service.rules.queries import threads_for
from pullback_service.rules.schemas import ForeseenIncident

DAYS: Final = 90
MOST: Final = 1000

_LATELY: Final[LiteralString] = """
SELECT report.commit_id
  FROM report
  JOIN project ON project.id = report.project_id
 WHERE report.project_id = %(project)s AND report.commit_id = ANY (%(commits)s::bigint[])
 GROUP BY report.commit_id, project.detected_from
HAVING min(report.received_at) >= greatest(project.detected_from, now() - make_interval(days => %(days)s))
"""


async def preview_incidents(session: AsyncSession, project: Project, rules: Sequence[Rule]) -> list[ForeseenIncident]:
    """Incidents that were or would have been announced, newest first; those that only budgets would have made come last.

    Index: ix_incident_project_id, ix_incident_event_incident_id, ix_report_commit_id; as `details_of` and `every_budget_change`.
    """
    since = func.now() - func.make_interval(0, 0, 0, DAYS)
    of_project = select(Incident).where(Incident.project_id == project.id, Incident.found_at >= since)
    may_be_told = of_project.where(~Incident.seen, Incident.kind.in_(ANNOUNCED_KINDS), Incident.state != "merged")
    incidents = (await session.scalars(may_be_told.order_by(Incident.id.desc()).limit(MOST))).all()
    rows = await session.execute(
        select(IncidentEvent.incident_id, IncidentEvent.told).where(
            IncidentEvent.incident_id.in_([incident.id for incident in incidents]), IncidentEvent.event.in_(BEGINNINGS)
        )
    )
    began: dict[int, list[bool]] = defaultdict(list)
    for incident_id, told in rows:
        began[incident_id].append(told)
    over, places = await _over_budget(session, project, rules)
    details = await details_of(session, [incident for incident in incidents if incident.id in began])
    threads = threads_for(rules, sum(len(detail.changes) for detail in details))
    return await threads(_foreseen, project.name, rules, details, began, over, places)


def _foreseen(
    project: str,
    rules: Sequence[Rule],
    details: Sequence[Detail],
    began: Mapping[int, Sequence[bool]],
    over: Sequence[Sequence[NamedChange]],
    places: Places,
) -> list[ForeseenIncident]:
    results = []
    for detail in details:
        others = [each for each in detail.changes if each.change.evidence != "budget"]
        broken = [part for part in over if _meets(part, detail, places)]
        over = [part for part in over if part not in broken]
        watched = [*filter(lambda each: _is_watched(rules, each), others), *(each for part in broken for each in part)]
        would = (bool(watched) or not detail.changes) and decision_on(rules, watched).tells
        told = any(began[detail.incident.id])
        if told or would:
            results.append(
                ForeseenIncident(
                    id=detail.incident.id,
                    url=f"/api/v1/incidents/{detail.incident.id}",
                    sentence=sentence(detail),
                    told=told,
                    would_be_told=would,
                )
            )
    new = [ForeseenIncident(sentence=_sentence(project, part), told=False, would_be_told=True) for part in over]
    return [*results, *new]


async def _over_budget(
    session: AsyncSession, project: Project, rules: Sequence[Rule]
) -> tuple[list[list[NamedChange]], Places]:
    """The changes that budgets would have shown and announced in the last 90 days, by incident."""
    project_id = ProjectId(project.id)
    trunk = await read_trunk(session, project_id) if any(rule.budget is not None for rule in rules) else None
    if trunk is None or trunk.branch_id is None:
        return [], {}
    changes = await every_budget_change(session, project_id, trunk, rules)
    values = {
        "project": project_id, "commits": statements.array_of({change.commit_id for change in changes}), "days": DAYS,
    }  # fmt: skip
    lately = {row[0] for row in await statements.rows(session, _LATELY, values)} if changes else set()
    named = await named_changes(session, [change for change in changes if change.commit_id in lately])
    return await threads_for(rules, len(named))(_announced, rules, named, trunk.places), trunk.places


def _announced(rules: Sequence[Rule], named: Sequence[NamedChange], places: Places) -> list[list[NamedChange]]:
    by_change = {each.change: each for each in named}
    located = [LocatedChange(each.change, each.workload) for each in named if _is_watched(rules, each)]
    parts = [[by_change[each.change] for each in part] for part in group(located, places)]
    return [part for part in parts if decision_on(rules, part).tells]


def _meets(part: Sequence[NamedChange], detail: Detail, places: Places) -> bool:
    """True if the change that breaks a budget belongs to an incident already: they are one incident."""
    changes_within = [
        each for each in detail.changes if each.change.reference_id in places and each.change.commit_id in places
    ]
    return any(
        (one.workload == other.workload or one.change.variant == other.change.variant)
        and one.change.incident_kind == other.change.incident_kind
        and one.change.meets(other.change, places)
        for one in part
        for other in changes_within
    )


def _sentence(project: str, part: Sequence[NamedChange]) -> str:
    first = part[0]
    made = Incident(kind="worse", state="confirmed")
    return sentence(Detail(made, project, first.reference, first.commit, None, part, None))


def _is_watched(rules: Sequence[Rule], each: NamedChange) -> bool:
    rule = rule_for(rules, subject_of(each), "watch")
    return rule is None or rule.watch is not False

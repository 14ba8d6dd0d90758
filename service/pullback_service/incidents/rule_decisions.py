"""Decisions of the rules of a project about its incidents."""

from collections.abc import Collection, Sequence

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.ids import ProjectId
from pullback_service.incidents.changes import Change
from pullback_service.incidents.queries import NamedChange, details_of, subjects_of
from pullback_service.models.incidents import Incident
from pullback_service.rules.announcement import Decision, SizedChange, decide
from pullback_service.rules.matching import Rule, Subject, rule_for
from pullback_service.rules.queries import rules_of

TO_ALL = Decision(None, ())


async def decide_for(session: AsyncSession, incident: Incident) -> Decision:
    """Decide if an incident is announced, and on which channels. Index: uq_rule_project_id_place; as `details_of`."""
    rules = await rules_of(session, incident.project_id)
    if not rules:
        return TO_ALL
    (detail,) = await details_of(session, [incident])
    return decision_on(rules, detail.changes)


def decision_on(rules: Sequence[Rule], changes: Sequence[NamedChange]) -> Decision:
    """Decide the announcement of changes, without refuted ones."""
    unrefuted = [each for each in changes if each.change.standing != "refuted"]
    return decide(
        rules,
        [SizedChange(subject_of(each), each.change.log_ratio, each.change.evidence == "budget") for each in unrefuted],
    )


def subject_of(each: NamedChange) -> Subject:
    """The names of a change, as rules match them."""
    return Subject(each.workload, each.case, each.change.variant, each.metric, each.machine)


async def unwatched(session: AsyncSession, project_id: ProjectId, changes: Collection[Change]) -> set[Change]:
    """The changes of series that rules do not watch. Index: uq_rule_project_id_place, pk_case, pk_machine, pk_series."""
    rules = [rule for rule in await rules_of(session, project_id) if rule.watch is not None] if changes else []
    if not rules:
        return set()
    names = await subjects_of(session, changes)
    deciding = {change: rule_for(rules, names[change], "watch") for change in changes}
    return {change for change, rule in deciding.items() if rule is not None and not rule.watch}

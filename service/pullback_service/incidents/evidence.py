"""Queries of the evidence for and against an incident: observations around it, paired comparisons, and series that did not change."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final, LiteralString, NamedTuple

import orjson

from pullback_service.commits.trunk import TRUNK
from pullback_service.ids import MachineId, ProjectId
from pullback_service.incidents.queries import OPEN, NamedChange
from pullback_service.models.incidents import Incident
from pullback_service.ratio import Ratio
from pullback_service.statements import Query, Rows, array_of

AROUND: Final = 40
"""The number of commits of the trunk before an incident, and after it."""
MOST_COMPARED: Final = 60
MOST_UNMOVED: Final = 30

_OBSERVED: Final[LiteralString] = """
  WITH trunk AS (
       SELECT branch.id
         FROM (SELECT id, {TRUNK} AS name FROM project WHERE id = %(project)s) watched
         JOIN branch ON branch.project_id = watched.id AND branch.name = watched.name),
       ends AS (
       SELECT min(position) AS low, max(position) AS high
         FROM branch_commit WHERE branch_id = (SELECT id FROM trunk) AND commit_id = ANY (%(ends)s::bigint[]))
SELECT point.series_id, branch_commit.position, commit.id, commit.sha, point.value, point.log_ratio, point.low, point.high,
       point.quality <> 'clean'
  FROM ends
  JOIN branch_commit ON branch_commit.branch_id = (SELECT id FROM trunk)
       AND branch_commit.position BETWEEN ends.low - %(around)s AND ends.high + %(around)s
  JOIN commit ON commit.id = branch_commit.commit_id
  JOIN point ON point.commit_id = branch_commit.commit_id AND point.series_id = ANY (%(series)s::bigint[])
  JOIN report ON report.id = point.report_id AND report.status = 'accepted'
 ORDER BY point.series_id, branch_commit.position, report.started_at, point.report_id, point.id
""".replace("{TRUNK}", TRUNK)
_COMPARED: Final[LiteralString] = """
SELECT "case".label, machine.name, comparison.variant, comparison.metric, comparison.outcome, comparison.log_ratio, comparison.low,
       comparison.high, comparison.n, to_json(comparison.group_log_ratios)::text, older.sha, newer.sha, report.job_id,
       comparison.case_id = ANY (%(cases)s::bigint[])
  FROM comparison
  JOIN "case" ON "case".id = comparison.case_id
  JOIN machine ON machine.id = comparison.machine_id
  JOIN report ON report.id = comparison.report_id AND report.status = 'accepted'
  JOIN commit older ON older.id = comparison.reference_id
  JOIN commit newer ON newer.id = comparison.candidate_id
 WHERE comparison.candidate_id = ANY (%(commits)s::bigint[]) AND comparison.reference_id = ANY (%(references)s::bigint[])
   AND comparison.case_id = ANY (%(cases)s::bigint[] || ARRAY (
       SELECT control_id FROM incident_job WHERE incident_id = %(incident)s AND control_id IS NOT NULL))
 ORDER BY report.started_at, report.id, comparison.id
 LIMIT %(most)s
"""
_UNMOVED: Final[LiteralString] = """
SELECT "case".label, machine.name, series.variant, series.metric, step.outcome, step.log_ratio, step.low, step.high, step.n
  FROM "case"
  JOIN series ON series.case_id = "case".id AND series.variant = ANY (%(variants)s::text[]) AND series.metric = ANY (%(metrics)s::text[])
  JOIN step ON step.series_id = series.id AND step.commit_id = %(commit)s AND step.via = 'parent' AND NOT step.news AND NOT step.stale
  JOIN machine ON machine.id = series.machine_id
 WHERE "case".project_id = %(project)s AND "case".workload = ANY (%(workloads)s::text[])
   AND step.outcome IN ('same', 'equal')
 ORDER BY machine.name, "case".natural_label, series.variant, series.metric
 LIMIT %(most)s
"""
_DELIVERED: Final[LiteralString] = """
SELECT channel.name, channel.kind, notification.event, delivery.state, delivery.created_at, delivery.sent_at, delivery.attempts,
       delivery.answer
  FROM notification
  JOIN delivery ON delivery.notification_id = notification.id
  JOIN channel ON channel.id = delivery.channel_id
 WHERE notification.project_id = %(project)s AND notification.facts ->> 'thread' = %(thread)s
 ORDER BY delivery.created_at DESC, delivery.id
 LIMIT %(most)s
"""


_OF_CASE: Final[LiteralString] = """
SELECT DISTINCT ON (incident.id) incident.id, incident.kind, incident.state, change.commit_id, change.ended_id,
       EXISTS (SELECT FROM incident_event WHERE incident_event.incident_id = incident.id AND told)
  FROM change
  JOIN incident ON incident.id = change.incident_id AND incident.state = ANY (%(states)s::text[])
  JOIN commit ON commit.id = change.commit_id
 WHERE change.project_id = %(project)s AND change.case_id = %(case)s AND change.machine_id = %(machine)s
 ORDER BY incident.id, commit.ordered_at, commit.id, change.ended_id
 LIMIT %(most)s
"""


_OF_SERIES: Final[LiteralString] = """
SELECT DISTINCT ON (incident.id, change.series_id) change.series_id, incident.id, incident.kind, incident.state, commit.sha
  FROM change
  JOIN incident ON incident.id = change.incident_id AND incident.state = ANY (%(states)s::text[])
  JOIN commit ON commit.id = change.commit_id
 WHERE change.project_id = %(project)s AND change.series_id = ANY (%(series)s::bigint[])
 ORDER BY incident.id, change.series_id, commit.ordered_at, commit.id
"""


class SeriesIncident(NamedTuple):
    """An incident of a series: the first commit that shows it there."""

    series_id: int
    id: int
    kind: str
    state: str
    sha: str


class CaseIncident(NamedTuple):
    """An incident of a case on a machine: the first commit that shows it there, and the one at which the level was back."""

    id: int
    kind: str
    state: str
    commit_id: int
    ended_id: int | None
    told: bool


class Observation(NamedTuple):
    """A series as one report measured it at a commit of the trunk; `position` is the commit's place there."""

    series_id: int
    position: int
    commit_id: int
    sha: str
    value: float
    ratio: Ratio
    busy: bool


class PairedComparison(NamedTuple):
    """Both ends of a change measured in the same groups. `is_affected`: the case belongs to the incident; otherwise it is a control."""

    case: str
    machine: str
    variant: str
    metric: str
    outcome: str
    ratio: Ratio
    groups: tuple[float, ...]
    reference: str
    commit: str
    job_id: int | None
    is_affected: bool


class UnchangedSeries(NamedTuple):
    """A series of a workload of the incident that was measured at its commit and did not change."""

    case: str
    machine: str
    variant: str
    metric: str
    outcome: str
    ratio: Ratio


class Message(NamedTuple):
    """A message about an incident on a channel."""

    channel: str
    kind: str
    event: str
    state: str
    created_at: datetime
    sent_at: datetime | None
    attempts: int
    answer: str | None


def observations(incident: Incident, series_ids: Collection[int]) -> Query[Sequence[Observation]]:
    """Every observation around an incident along the trunk, series by series, oldest first.

    Index: pk_project, uq_branch_project_id_name, ix_branch_commit_commit_id, pk_branch_commit, ix_point_commit_id_series_id.
    """
    ends = array_of(id_ for id_ in (incident.reference_id, incident.commit_id, incident.ended_id) if id_ is not None)
    values = {"project": incident.project_id, "ends": ends, "series": array_of(series_ids), "around": AROUND}
    return Query(_OBSERVED, values, _observations, width=9)


def measured_in_turns(
    incident: Incident, case_ids: Collection[int], ranges: Collection[tuple[int, int]]
) -> Query[Sequence[PairedComparison]]:
    """The comparisons of the ends of some changes in some cases, and in their controls.

    Index: ix_comparison_candidate, ix_incident_job_incident_id.
    """
    values = {
        "incident": incident.id,
        "cases": array_of(case_ids),
        "references": array_of({reference for reference, _ in ranges}),
        "commits": array_of({commit for _, commit in ranges}),
        "most": MOST_COMPARED,
    }
    return Query(_COMPARED, values, _in_turns, width=14)


def unmoved(incident: Incident, changes: Collection[NamedChange]) -> Query[Sequence[UnchangedSeries]]:
    """Series of the changed workloads, variants and metrics, of any case and machine, that did not change at this commit.

    Index: ix_case_workload, uq_series_case_id_variant_metric_machine_id, pk_step.
    """
    values = {
        "project": incident.project_id,
        "commit": incident.commit_id,
        "workloads": sorted({each.workload for each in changes}),
        "variants": sorted({each.change.variant for each in changes if each.change.variant is not None}),
        "metrics": sorted({each.metric for each in changes if each.metric is not None}),
        "most": MOST_UNMOVED,
    }
    return Query(_UNMOVED, values, _unmoved, width=9)


def incidents_of_case(project_id: ProjectId, case_id: int, machine_id: MachineId) -> Query[Sequence[CaseIncident]]:
    """Incidents of a case on a machine that are open or were resolved. Index: ix_change_project_id, pk_incident, ix_incident_event_incident_id."""
    values = {
        "project": project_id, "case": case_id, "machine": machine_id, "states": [*OPEN, "resolved"], "most": MOST_COMPARED,
    }  # fmt: skip
    return Query(_OF_CASE, values, lambda rows: [*map(CaseIncident._make, rows)], width=len(CaseIncident._fields))


def incidents_of_series(project_id: ProjectId, series: Collection[int]) -> Query[Sequence[SeriesIncident]]:
    """Incidents of series that are open or were resolved. Index: ix_change_project_id, pk_incident, pk_commit."""
    values = {"project": project_id, "series": array_of(series), "states": [*OPEN, "resolved"]}
    return Query(_OF_SERIES, values, lambda rows: [*map(SeriesIncident._make, rows)], width=len(SeriesIncident._fields))


def messages_about(incident: Incident, *, most: int) -> Query[Sequence[Message]]:
    """Messages about an incident, the newest first. Index: uq_notification_project_id_event_key."""
    values = {"project": incident.project_id, "thread": f"incident {incident.id}", "most": most}
    return Query(_DELIVERED, values, lambda rows: [Message._make(row) for row in rows], width=len(Message._fields))


def _observations(rows: Rows) -> Sequence[Observation]:
    return [Observation._make((*row[:5], Ratio(*row[5:8]), row[8])) for row in rows]


def _in_turns(rows: Rows) -> Sequence[PairedComparison]:
    return [
        PairedComparison._make((*row[:5], Ratio(*row[5:9]), tuple(orjson.loads(row[9] or "null") or ()), *row[10:]))
        for row in rows
    ]


def _unmoved(rows: Rows) -> Sequence[UnchangedSeries]:
    return [UnchangedSeries._make((*row[:5], Ratio(*row[5:]))) for row in rows]

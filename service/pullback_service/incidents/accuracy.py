"""Accuracy of detection: how many incidents were right by people's verdicts, and the smallest step that a series would show."""

from typing import Any, Final, LiteralString, NamedTuple

from pullback_service.ids import MachineId, ProjectId
from pullback_service.statements import Query, Rows

_JUDGED: Final[LiteralString] = """
  WITH said AS (
       SELECT incident.id, first.event, verdict.verdict,
              EXISTS (SELECT FROM incident_event taken
                       WHERE taken.incident_id = incident.id AND taken.event = 'withdrawn') AS withdrawn
         FROM incident
         JOIN LATERAL (
              SELECT event FROM incident_event
               WHERE incident_id = incident.id AND event IN ('confirmed', 'likely')
               ORDER BY id LIMIT 1) first ON true
         LEFT JOIN LATERAL (
              SELECT verdict FROM verdict
               WHERE incident_id = incident.id AND revoked_at IS NULL
               ORDER BY id DESC LIMIT 1) verdict ON true
        WHERE incident.project_id = %(project)s AND incident.kind <> 'better' AND incident.state <> 'merged'),
       named AS (
       SELECT said.*, 'all' AS part, '' AS name FROM said
        UNION ALL
       SELECT said.*, 'evidence', event FROM said
        UNION
       SELECT said.*, 'machine', machine.name
         FROM said JOIN change ON change.incident_id = said.id JOIN machine ON machine.id = change.machine_id
        UNION
       SELECT said.*, 'workload', "case".workload
         FROM said JOIN change ON change.incident_id = said.id JOIN "case" ON "case".id = change.case_id)
SELECT part, name, count(*)::int, count(*) FILTER (WHERE verdict IN ('real', 'expected', 'fixed'))::int,
       count(*) FILTER (WHERE verdict = 'noise')::int, count(*) FILTER (WHERE withdrawn)::int
  FROM named
 GROUP BY part, name
 ORDER BY part, name
"""
_NOTICED: Final[LiteralString] = """
SELECT machine.name, series.metric, count(*)::int,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY series_state.resolution),
       percentile_cont(0.9) WITHIN GROUP (ORDER BY series_state.resolution)
  FROM series
  JOIN series_state ON series_state.series_id = series.id AND series_state.resolution IS NOT NULL
  JOIN machine ON machine.id = series.machine_id
 WHERE series.project_id = %(project)s AND NOT series.exact
 GROUP BY machine.name, series.metric
 ORDER BY machine.name, count(*) DESC, series.metric
"""
_OF_CASE: Final[LiteralString] = """
SELECT series.variant, series.metric, series_state.resolution
  FROM series
  JOIN series_state ON series_state.series_id = series.id AND series_state.resolution IS NOT NULL
 WHERE series.case_id = %(case)s AND series.machine_id = %(machine)s AND NOT series.exact
"""


class JudgedIncidents(NamedTuple):
    """Counts of announced incidents (confirmed or likely) of one `part`: `all`, or an `evidence`, `machine` or `workload` by name.

    `right`: people called them real, expected or fixed; `noise`: they called them noise; `withdrawn`: the announcement was withdrawn.
    """

    part: str
    name: str
    said: int
    right: int
    noise: int
    withdrawn: int


class NoticeableStep(NamedTuple):
    """The smallest step that would be noticed within three commits, as natural log: in half of the series (`half`) and in 90 % (`most`)."""

    machine: str
    metric: str
    series: int
    half: float
    most: float


def judged_incidents(project_id: ProjectId) -> Query[list[JudgedIncidents]]:
    """Incidents of a project by how people judged them. Index: ix_incident_project_id, ix_incident_event_incident_id, ix_change_incident_id."""
    return Query(
        _JUDGED,
        {"project": project_id},
        lambda rows: [*map(JudgedIncidents._make, rows)],
        width=len(JudgedIncidents._fields),
    )


def noticed_steps(project_id: ProjectId) -> Query[list[NoticeableStep]]:
    """The smallest steps that would be noticed, by machine and metric. Index: ix_series_project_id, pk_series_state."""
    return Query(
        _NOTICED,
        {"project": project_id},
        lambda rows: [*map(NoticeableStep._make, rows)],
        width=len(NoticeableStep._fields),
    )


def resolutions_of(case_id: int, machine_id: MachineId) -> Query[dict[tuple[str, str], float]]:
    """The smallest step that would be noticed in each series of a case, by variant and metric, as natural log.

    Index: uq_series_case_id_variant_metric_machine_id, pk_series_state.
    """

    def read(rows: Rows) -> dict[tuple[str, str], float]:
        return {(variant, metric): resolution for variant, metric, resolution in rows}

    values: dict[str, Any] = {"case": case_id, "machine": machine_id}
    return Query(_OF_CASE, values, read, width=3)

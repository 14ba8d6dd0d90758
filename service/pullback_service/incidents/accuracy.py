"""Accuracy of detection: how many incidents were right by people's verdicts, and the smallest step that a series would show."""

from math import sqrt
from typing import Any, Final, LiteralString, NamedTuple

from pullback_service.ids import MachineId, ProjectId
from pullback_service.regression.changes import NORMAL_95
from pullback_service.statements import Query, Rows

# Events and verdicts are read once, not looked up for each incident: a fortieth of the buffers. Each incident counts once for each machine and
# workload, whatever of it changed there, by ids, to which names are joined in the end.
_JUDGED: Final[LiteralString] = """
  WITH told AS (
       SELECT incident.id, min(event.id) FILTER (WHERE event.event = 'confirmed') AS confirmed,
              min(event.id) FILTER (WHERE event.event = 'likely') AS likely, bool_or(event.event = 'withdrawn') AS withdrawn
         FROM incident
         JOIN incident_event event ON event.incident_id = incident.id AND event.event IN ('confirmed', 'likely', 'withdrawn')
        WHERE incident.project_id = %(project)s AND incident.kind <> 'better' AND incident.state <> 'merged'
        GROUP BY incident.id),
       given AS (
       SELECT DISTINCT ON (verdict.incident_id) verdict.incident_id, verdict.verdict
         FROM incident
         JOIN verdict ON verdict.incident_id = incident.id AND verdict.revoked_at IS NULL
        WHERE incident.project_id = %(project)s
        ORDER BY verdict.incident_id, verdict.id DESC),
       said AS MATERIALIZED (
       SELECT told.id, coalesce(told.confirmed < told.likely, told.likely IS NULL) AS is_confirmed, (given.verdict <> 'noise')::int AS is_right,
              (given.verdict = 'noise')::int AS is_noise, told.withdrawn::int AS withdrawn
         FROM told
         LEFT JOIN given ON given.incident_id = told.id
        WHERE told.confirmed IS NOT NULL OR told.likely IS NOT NULL),
       changed AS MATERIALIZED (
       SELECT DISTINCT change.incident_id, named.id AS machine_id, workload.id AS workload_id
         FROM change
         JOIN (SELECT id AS case_id, min(id) OVER (PARTITION BY workload) AS id FROM "case" WHERE project_id = %(project)s) workload
              USING (case_id)
         JOIN (SELECT id AS machine_id, min(id) OVER (PARTITION BY name) AS id FROM machine) named USING (machine_id)
        WHERE change.project_id = %(project)s),
       counted AS (
       SELECT is_confirmed, NULL::bigint AS machine_id, NULL::bigint AS workload_id, count(*) AS said, sum(is_right) AS is_right,
              sum(is_noise) AS is_noise, sum(withdrawn) AS withdrawn
         FROM said
        GROUP BY GROUPING SETS ((), (is_confirmed))
        UNION ALL
       SELECT NULL, machine_id, NULL, count(*), sum(is_right), sum(is_noise), sum(withdrawn)
         FROM (SELECT DISTINCT incident_id, machine_id FROM changed) there
         JOIN said ON said.id = incident_id
        GROUP BY machine_id
        UNION ALL
       SELECT NULL, NULL, workload_id, count(*), sum(is_right), sum(is_noise), sum(withdrawn)
         FROM (SELECT DISTINCT incident_id, workload_id FROM changed) there
         JOIN said ON said.id = incident_id
        GROUP BY workload_id)
SELECT CASE WHEN machine.id IS NOT NULL THEN 'machine' WHEN "case".id IS NOT NULL THEN 'workload'
            WHEN is_confirmed IS NOT NULL THEN 'evidence' ELSE 'all' END AS part,
       coalesce(machine.name, "case".workload, CASE WHEN is_confirmed THEN 'confirmed' WHEN NOT is_confirmed THEN 'likely' ELSE '' END) AS name,
       said::int, coalesce(is_right, 0)::int, coalesce(is_noise, 0)::int, coalesce(counted.withdrawn, 0)::int
  FROM counted
  LEFT JOIN machine ON machine.id = counted.machine_id
  LEFT JOIN "case" ON "case".id = counted.workload_id
 WHERE said > 0
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

    @property
    def judged(self) -> int:
        """The number of those that people judged."""
        return self.right + self.noise

    @property
    def precision(self) -> float | None:
        """The share of judged incidents that people called right; None while nobody judged."""
        return self.right / self.judged if self.judged else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of that share (Wilson)."""
        if self.precision is None:
            return None
        n, z = self.judged, NORMAL_95
        middle = (self.precision + z * z / (2 * n)) / (1 + z * z / n)
        half = z / (1 + z * z / n) * sqrt(self.precision * (1 - self.precision) / n + z * z / (4 * n * n))
        return max(0.0, middle - half), min(1.0, middle + half)


NONE_JUDGED: Final = JudgedIncidents("all", "", 0, 0, 0, 0)


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

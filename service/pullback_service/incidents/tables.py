"""Incidents as a table to export."""

from pullback_service.exports.tables import Column, Table
from pullback_service.incidents.schemas import IncidentSummary

INCIDENTS: Table[IncidentSummary] = Table(
    "incidents",
    [
        Column("incident_id", "integer", lambda row: row.id),
        Column("project", "text", lambda row: row.project),
        Column("kind", "text", lambda row: row.kind),
        Column("state", "text", lambda row: row.state),
        Column("sentence", "text", lambda row: row.sentence),
        Column("reference", "text", lambda row: row.reference.sha),
        Column("commit", "text", lambda row: row.commit.sha),
        Column("title", "text", lambda row: row.commit.title),
        Column("ended", "text", lambda row: row.ended.sha if row.ended else None),
        Column("cases", "integer", lambda row: row.cases),
        Column("machines", "integer", lambda row: row.machines),
        Column("changes", "integer", lambda row: row.changes),
        Column("seen", "flag", lambda row: row.seen),
        Column("verdict", "text", lambda row: row.verdict.verdict if row.verdict else None),
        Column("assignee", "text", lambda row: row.assignee),
        Column("merged_into", "integer", lambda row: row.merged_into),
        Column("job_id", "integer", lambda row: row.job_id),
        Column("found_at", "time", lambda row: row.found_at),
        Column("changed_at", "time", lambda row: row.changed_at),
    ],
)

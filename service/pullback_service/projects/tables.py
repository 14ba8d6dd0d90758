"""Projects as a table to export."""

from pullback_service.exports.tables import Column, Table, written
from pullback_service.projects.schemas import ProjectSummary

PROJECTS: Table[ProjectSummary] = Table(
    "projects",
    [
        Column("project", "text", lambda row: row.name),
        Column("reports", "integer", lambda row: row.reports),
        Column("commits", "integer", lambda row: row.commits),
        Column("points", "integer", lambda row: row.points),
        Column("last_report_at", "time", lambda row: row.last_report_at),
        Column("created_at", "time", lambda row: row.created_at),
        Column("public_read", "flag", lambda row: row.public_read),
        Column("raw_days", "integer", lambda row: row.raw_days),
        Column("body_days", "integer", lambda row: row.body_days),
        Column("repository", "text", lambda row: row.repository),
        Column("backfill", "text", lambda row: written(row.backfill.model_dump() if row.backfill else None)),
        Column("trunk", "text", lambda row: row.trunk),
    ],
)

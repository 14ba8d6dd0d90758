"""Reports as a table to export."""

from pullback_service.exports.tables import Column, Table
from pullback_service.reports.schemas import ReportSummary

REPORTS: Table[ReportSummary] = Table(
    "reports",
    [
        Column("report_id", "text", lambda row: str(row.id)),
        Column("project", "text", lambda row: row.project),
        Column("commit", "text", lambda row: row.commit),
        Column("machine", "text", lambda row: row.machine),
        Column("format", "text", lambda row: row.format),
        Column("suite", "text", lambda row: row.suite),
        Column("status", "text", lambda row: row.status),
        Column("quality", "text", lambda row: row.quality),
        Column("dirty", "flag", lambda row: row.dirty),
        Column("cases", "integer", lambda row: row.cases),
        Column("points", "integer", lambda row: row.points),
        Column("failures", "integer", lambda row: row.failures),
        Column("job_id", "integer", lambda row: row.job_id),
        Column("attempt", "integer", lambda row: row.attempt),
        Column("body_bytes", "integer", lambda row: row.body_bytes),
        Column("started_at", "time", lambda row: row.started_at),
        Column("duration_s", "number", lambda row: row.duration_s),
        Column("received_at", "time", lambda row: row.received_at),
    ],
)

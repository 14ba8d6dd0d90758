"""Jobs as a table to export."""

from pullback_service.exports.tables import Column, Table, written
from pullback_service.jobs.schemas import JobSummary

JOBS: Table[JobSummary] = Table(
    "jobs",
    [
        Column("job_id", "integer", lambda row: row.id),
        Column("project", "text", lambda row: row.project),
        Column("commit", "text", lambda row: row.commit.sha),
        Column("title", "text", lambda row: row.commit.title),
        Column("branch", "text", lambda row: row.commit.branch),
        Column("reference", "text", lambda row: row.reference),
        Column("suite", "text", lambda row: row.suite),
        Column("kind", "text", lambda row: row.kind),
        Column("state", "text", lambda row: row.state),
        Column("priority", "integer", lambda row: row.priority),
        Column("requires", "text", lambda row: written(row.requires)),
        Column("machine_id", "integer", lambda row: row.machine_id),
        Column("timeout_s", "number", lambda row: row.timeout_s),
        Column("attempts", "integer", lambda row: row.attempts),
        Column("max_attempts", "integer", lambda row: row.max_attempts),
        Column("cancel_requested", "flag", lambda row: row.cancel_requested),
        Column("failure_kind", "text", lambda row: row.failure_kind),
        Column("failure_message", "text", lambda row: row.failure_message),
        Column("origin", "text", lambda row: row.origin),
        Column("asked_by", "text", lambda row: row.asked_by),
        Column("trust", "text", lambda row: row.trust),
        Column("awaits_approval", "flag", lambda row: row.awaits_approval),
        Column("approved_at", "time", lambda row: row.approved_at),
        Column("approved_by", "text", lambda row: row.approved_by),
        Column("created_at", "time", lambda row: row.created_at),
        Column("finished_at", "time", lambda row: row.finished_at),
        Column("not_before", "time", lambda row: row.not_before),
        Column("cases", "text", lambda row: written(row.cases)),
        Column("variants", "text", lambda row: written(row.variants)),
        Column("effort", "integer", lambda row: row.effort),
    ],
)

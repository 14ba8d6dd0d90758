"""Agents as a table to export."""

from pullback_service.agents.schemas import AgentSummary
from pullback_service.exports.tables import Column, Table, written

AGENTS: Table[AgentSummary] = Table(
    "agents",
    [
        Column("agent_id", "integer", lambda row: row.id),
        Column("agent", "text", lambda row: row.name),
        Column("machine_id", "integer", lambda row: row.machine_id),
        Column("machine", "text", lambda row: row.machine),
        Column("labels", "text", lambda row: written(row.labels)),
        Column("enrolled_at", "time", lambda row: row.enrolled_at),
        Column("last_seen_at", "time", lambda row: row.last_seen_at),
        Column("present", "flag", lambda row: row.present),
        Column("job_id", "integer", lambda row: row.job_id),
        Column("job_since", "time", lambda row: row.job_since),
        Column("phase", "text", lambda row: row.phase),
        Column("progress", "text", lambda row: written(row.progress)),
        Column("spool_waiting", "integer", lambda row: row.spool.waiting if row.spool else None),
        Column("spool_bytes", "integer", lambda row: row.spool.bytes if row.spool else None),
        Column("refuses", "text", lambda row: row.refuses),
    ],
)

"""The audit log as a table to export."""

from pullback_service.audit.schemas import AuditLine
from pullback_service.exports.tables import Column, Table, written

AUDIT: Table[AuditLine] = Table(
    "audit",
    [
        Column("line_id", "integer", lambda row: row.id),
        Column("at", "time", lambda row: row.at),
        Column("actor", "text", lambda row: row.actor),
        Column("token_id", "integer", lambda row: row.token_id),
        Column("action", "text", lambda row: row.action),
        Column("subject", "text", lambda row: row.subject),
        Column("project", "text", lambda row: row.project),
        Column("address", "text", lambda row: row.address),
        Column("request_id", "text", lambda row: row.request_id),
        Column("details", "text", lambda row: written(row.details)),
    ],
)

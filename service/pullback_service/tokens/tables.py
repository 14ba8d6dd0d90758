"""Tokens as a table to export, without their secrets."""

from pullback_service.exports.tables import Column, Table
from pullback_service.tokens.schemas import TokenSummary

TOKENS: Table[TokenSummary] = Table(
    "tokens",
    [
        Column("token_id", "integer", lambda row: row.id),
        Column("token", "text", lambda row: row.name),
        Column("prefix", "text", lambda row: row.prefix),
        Column("scopes", "text", lambda row: " ".join(row.scopes)),
        Column("project", "text", lambda row: row.project),
        Column("agent_id", "integer", lambda row: row.agent_id),
        Column("created_at", "time", lambda row: row.created_at),
        Column("created_by", "text", lambda row: row.created_by),
        Column("expires_at", "time", lambda row: row.expires_at),
        Column("last_used_at", "time", lambda row: row.last_used_at),
        Column("revoked_at", "time", lambda row: row.revoked_at),
    ],
)

"""Boards as a table to export."""

from pullback_service.boards.schemas import BoardSummary
from pullback_service.exports.tables import Column, Table

BOARDS: Table[BoardSummary] = Table(
    "boards",
    [
        Column("board_id", "text", lambda row: str(row.id)),
        Column("board", "text", lambda row: row.name),
        Column("project", "text", lambda row: row.project),
        Column("owner", "text", lambda row: row.owner),
        Column("own", "flag", lambda row: row.own),
        Column("may_change", "flag", lambda row: row.may_change),
        Column("charts", "integer", lambda row: row.charts),
        Column("created_at", "time", lambda row: row.created_at),
        Column("changed_at", "time", lambda row: row.changed_at),
    ],
)

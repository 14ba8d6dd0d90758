"""Channels and deliveries as tables to export, without secrets."""

from pullback_service.exports.tables import Column, Table
from pullback_service.notifications.schemas import ChannelSummary, DeliverySummary

CHANNELS: Table[ChannelSummary] = Table(
    "channels",
    [
        Column("channel_id", "integer", lambda row: row.id),
        Column("project", "text", lambda row: row.project),
        Column("channel", "text", lambda row: row.name),
        Column("kind", "text", lambda row: row.kind),
        Column("target", "text", lambda row: row.target),
        Column("events", "text", lambda row: None if row.events is None else " ".join(row.events)),
        Column("state", "text", lambda row: row.state),
        Column("created_at", "time", lambda row: row.created_at),
        Column("created_by", "text", lambda row: row.created_by),
        Column("failing_since", "time", lambda row: row.failing_since),
        Column("switched_off_at", "time", lambda row: row.switched_off_at),
        Column("switched_off_because", "text", lambda row: row.switched_off_because),
        Column("last_sent_at", "time", lambda row: row.last_sent_at),
        Column("waiting", "integer", lambda row: row.waiting),
    ],
)
DELIVERIES: Table[DeliverySummary] = Table(
    "deliveries",
    [
        Column("delivery_id", "text", lambda row: str(row.id)),
        Column("channel_id", "integer", lambda row: row.channel_id),
        Column("event", "text", lambda row: row.event),
        Column("key", "text", lambda row: row.key),
        Column("title", "text", lambda row: row.title),
        Column("state", "text", lambda row: row.state),
        Column("created_at", "time", lambda row: row.created_at),
        Column("attempts", "integer", lambda row: row.attempts),
        Column("attempted_at", "time", lambda row: row.attempted_at),
        Column("sent_at", "time", lambda row: row.sent_at),
        Column("answer", "text", lambda row: row.answer),
        Column("digest_id", "text", lambda row: None if row.digest_id is None else str(row.digest_id)),
    ],
)

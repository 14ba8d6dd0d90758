"""Tables `channel`, `notification` and `delivery`."""

from uuid import UUID

from sqlalchemy import ARRAY, CheckConstraint, ForeignKey, Index, Text, UniqueConstraint, func, text
from sqlalchemy.orm import Mapped, mapped_column

from pullback_service.base import Base, Instant, Json, RowId, StampedNow

OPEN_DELIVERY = "state = 'waiting'"


class Channel(Base):
    """A place that notifications of a project are sent to.

    `target` is the address of a webhook, or mail addresses with blanks between them; addresses of webhooks hold secrets, and no
    answer shows more of them than the host. `secret` is the key that messages of a webhook are signed with. Without
    `events` the usual ones are sent. `failing_since`, `failures` and `retry_at` are of the failures since the last success,
    `limited_until` says when the channel may have another message in the hour. A channel that is `switched_off_at` is sent
    tests only.
    """

    __tablename__ = "channel"
    __table_args__ = (
        UniqueConstraint("project_id", "name"),
        CheckConstraint("kind IN ('webhook', 'slack', 'email')", name="kind"),
        CheckConstraint("(kind = 'webhook') = (secret IS NOT NULL)", name="secret"),
        CheckConstraint("name <> ''", name="named"),
    )

    id: Mapped[RowId]
    project_id: Mapped[int] = mapped_column(ForeignKey("project.id", ondelete="CASCADE"))
    name: Mapped[str]
    kind: Mapped[str]
    target: Mapped[str]
    secret: Mapped[str | None]
    events: Mapped[list[str] | None] = mapped_column(ARRAY(Text))
    created_at: Mapped[StampedNow]
    created_by: Mapped[str]
    failing_since: Mapped[Instant | None]
    failures: Mapped[int] = mapped_column(server_default="0")
    retry_at: Mapped[Instant | None]
    limited_until: Mapped[Instant | None]
    switched_off_at: Mapped[Instant | None]
    switched_off_because: Mapped[str | None]


class Notification(Base):
    """Something that happened in a project, once for each event and key; written in the transaction that found it."""

    __tablename__ = "notification"
    __table_args__ = (UniqueConstraint("project_id", "event", "key"),)

    id: Mapped[RowId]
    project_id: Mapped[int] = mapped_column(ForeignKey("project.id", ondelete="CASCADE"))
    event: Mapped[str]
    key: Mapped[str]
    facts: Mapped[Json]
    created_at: Mapped[StampedNow]


class Delivery(Base):
    """One message to a channel: of a notification, or a digest of the deliveries that name it as their `digest_id`.

    Its id goes with the message, the same on every attempt. waiting → sent | failed | digested.
    """

    __tablename__ = "delivery"
    __table_args__ = (
        UniqueConstraint("channel_id", "notification_id"),
        Index("ix_delivery_open", "channel_id", postgresql_where=text(OPEN_DELIVERY)),
        Index("ix_delivery_channel_id", "channel_id", "created_at", "id"),
        Index("ix_delivery_sent", "channel_id", "sent_at", postgresql_where=text("sent_at IS NOT NULL")),
        Index("ix_delivery_digest_id", "digest_id", postgresql_where=text("digest_id IS NOT NULL")),
        Index("ix_delivery_notification_id", "notification_id"),
        CheckConstraint("state IN ('waiting', 'sent', 'failed', 'digested')", name="state"),
        CheckConstraint("(state = 'sent') = (sent_at IS NOT NULL)", name="sent"),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True, server_default=func.gen_random_uuid())
    channel_id: Mapped[int] = mapped_column(ForeignKey("channel.id", ondelete="CASCADE"))
    notification_id: Mapped[int | None] = mapped_column(ForeignKey("notification.id", ondelete="CASCADE"))
    digest_id: Mapped[UUID | None] = mapped_column(ForeignKey("delivery.id", ondelete="CASCADE"))
    state: Mapped[str] = mapped_column(server_default="waiting")
    created_at: Mapped[StampedNow]
    attempts: Mapped[int] = mapped_column(server_default="0")
    attempted_at: Mapped[Instant | None]
    sent_at: Mapped[Instant | None]
    answer: Mapped[str | None]
    """The answer to the last attempt, in a line, or why there was none."""

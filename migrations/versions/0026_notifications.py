"""channel, notification and delivery: what projects tell, to whom, and what became of it.

Step: expand (old release unaffected: it tells nobody). Locks: of project, for a moment, by the foreign keys. Rows rewritten:
none. Back: drop the tables.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from pullback_service.row_security import OWN, guard, through

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "channel",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("project_id", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("secret", sa.Text(), nullable=True),
        sa.Column("events", postgresql.ARRAY(sa.Text()), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("failing_since", sa.DateTime(timezone=True), nullable=True),
        sa.Column("failures", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("retry_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("limited_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("switched_off_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("switched_off_because", sa.Text(), nullable=True),
        sa.CheckConstraint("kind IN ('webhook', 'slack', 'email')", name=op.f("ck_channel_kind")),
        sa.CheckConstraint("(kind = 'webhook') = (secret IS NOT NULL)", name=op.f("ck_channel_secret")),
        sa.CheckConstraint("name <> ''", name=op.f("ck_channel_named")),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name=op.f("fk_channel_project_id_project"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_channel")),
        sa.UniqueConstraint("project_id", "name", name=op.f("uq_channel_project_id_name")),
    )
    op.create_table(
        "notification",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("project_id", sa.BigInteger(), nullable=False),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("facts", postgresql.JSONB(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name=op.f("fk_notification_project_id_project"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_notification")),
        sa.UniqueConstraint("project_id", "event", "key", name=op.f("uq_notification_project_id_event_key")),
    )
    op.create_table(
        "delivery",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("channel_id", sa.BigInteger(), nullable=False),
        sa.Column("notification_id", sa.BigInteger(), nullable=True),
        sa.Column("digest_id", sa.Uuid(), nullable=True),
        sa.Column("state", sa.Text(), server_default="waiting", nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("attempts", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("attempted_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("sent_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("answer", sa.Text(), nullable=True),
        sa.CheckConstraint("state IN ('waiting', 'sent', 'failed', 'digested')", name=op.f("ck_delivery_state")),
        sa.CheckConstraint("(state = 'sent') = (sent_at IS NOT NULL)", name=op.f("ck_delivery_sent")),
        sa.ForeignKeyConstraint(
            ["channel_id"], ["channel.id"], name=op.f("fk_delivery_channel_id_channel"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["notification_id"],
            ["notification.id"],
            name=op.f("fk_delivery_notification_id_notification"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["digest_id"], ["delivery.id"], name=op.f("fk_delivery_digest_id_delivery"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_delivery")),
        sa.UniqueConstraint("channel_id", "notification_id", name=op.f("uq_delivery_channel_id_notification_id")),
    )
    for name, columns, where in (
        ("ix_delivery_open", ["channel_id"], "state = 'waiting'"),
        ("ix_delivery_channel_id", ["channel_id", "created_at", "id"], None),
        ("ix_delivery_sent", ["channel_id", "sent_at"], "sent_at IS NOT NULL"),
        ("ix_delivery_digest_id", ["digest_id"], "digest_id IS NOT NULL"),
        ("ix_delivery_notification_id", ["notification_id"], None),
    ):
        op.create_index(name, "delivery", columns, postgresql_where=sa.text(where) if where else None)
    op.execute(guard("channel", OWN))
    op.execute(guard("notification", OWN))
    op.execute(guard("delivery", through("channel", "delivery.channel_id")))


def downgrade() -> None:
    """Drop the tables: nobody is told anything any more."""
    for table in ("delivery", "notification", "channel"):
        op.drop_table(table)

"""Tokens, enrolment codes, logins and the audit log; projects that anybody may read.

Step: expand (the previous release neither reads nor writes any of it, and goes on with its one secret).
Locks: none on existing tables but a moment of `project` for a column with a constant default. Rows rewritten: 0.
Back: drop them; every token, login and line of the audit log is lost, and no project is public any more.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the tables and the column."""
    op.add_column("project", sa.Column("public_read", sa.Boolean(), server_default="false", nullable=False))
    op.create_table(
        "token",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("prefix", sa.Text(), nullable=False),
        sa.Column("scopes", sa.ARRAY(sa.Text()), nullable=False),
        sa.Column("project_id", sa.BigInteger(), nullable=True),
        sa.Column("agent_id", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "scopes <@ ARRAY['read', 'upload', 'agent', 'admin'] AND cardinality(scopes) > 0",
            name=op.f("ck_token_scopes"),
        ),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_token_project_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["agent_id"], ["agent.id"], name=op.f("fk_token_agent_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_token")),
        sa.UniqueConstraint("digest", name=op.f("uq_token_digest")),
    )
    op.create_index(
        "uq_token_name_valid", "token", ["name"], unique=True, postgresql_where=sa.text("revoked_at IS NULL")
    )
    op.create_table(
        "enrolment_code",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("project_id", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("used_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("agent_id", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name=op.f("fk_enrolment_code_project_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["agent_id"], ["agent.id"], name=op.f("fk_enrolment_code_agent_id"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_enrolment_code")),
        sa.UniqueConstraint("digest", name=op.f("uq_enrolment_code_digest")),
    )
    op.create_table(
        "login",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("token_id", sa.BigInteger(), nullable=True),
        sa.Column("bootstrap_digest", sa.LargeBinary(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("(token_id IS NULL) <> (bootstrap_digest IS NULL)", name=op.f("ck_login_whose")),
        sa.ForeignKeyConstraint(["token_id"], ["token.id"], name=op.f("fk_login_token_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_login")),
        sa.UniqueConstraint("digest", name=op.f("uq_login_digest")),
    )
    op.create_index("ix_login_expires_at", "login", ["expires_at"])
    op.create_table(
        "audit",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("token_id", sa.BigInteger(), nullable=True),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("project", sa.Text(), nullable=True),
        sa.Column("address", sa.Text(), nullable=True),
        sa.Column("request_id", sa.Text(), nullable=True),
        sa.Column("details", postgresql.JSONB(astext_type=sa.Text()), server_default="{}", nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit")),
    )
    op.create_index("ix_audit_project", "audit", ["project", "id"])


def downgrade() -> None:
    """Remove them again."""
    op.drop_table("audit")
    op.drop_table("login")
    op.drop_table("enrolment_code")
    op.drop_table("token")
    op.drop_column("project", "public_read")

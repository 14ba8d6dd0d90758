"""Boards: pages of pinned charts.

Step: expand (the previous release neither reads nor writes them). Locks: a moment of `project` for the foreign keys.
Rows rewritten: 0. Back: drop them; every board is lost.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0011"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "board",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("project_id", sa.BigInteger(), nullable=True),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("owner_name", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("changed_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("name <> ''", name=op.f("ck_board_named")),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_board_project_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_board")),
    )
    op.create_index(
        "uq_board_owner_name", "board", ["owner", "name"], unique=True, postgresql_where=sa.text("project_id IS NULL")
    )
    op.create_index(
        "uq_board_project_name",
        "board",
        ["project_id", "name"],
        unique=True,
        postgresql_where=sa.text("project_id IS NOT NULL"),
    )
    op.create_table(
        "board_chart",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("board_id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.BigInteger(), nullable=False),
        sa.Column("place", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("workload", sa.Text(), nullable=True),
        sa.Column("title", sa.Text(), nullable=True),
        sa.Column("query", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("kind IN ('explore', 'workload', 'compare')", name=op.f("ck_board_chart_kind")),
        sa.CheckConstraint("(kind = 'workload') = (workload IS NOT NULL)", name=op.f("ck_board_chart_workload")),
        sa.ForeignKeyConstraint(["board_id"], ["board.id"], name=op.f("fk_board_chart_board_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name=op.f("fk_board_chart_project_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_board_chart")),
    )
    op.create_index("ix_board_chart_board_id", "board_chart", ["board_id", "place", "id"])


def downgrade() -> None:
    """Remove them again."""
    op.drop_table("board_chart")
    op.drop_table("board")

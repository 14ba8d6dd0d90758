"""reading: series at commits, pooled over their reports.

Step: migrate, then the worker fills the table from the points, newest commits first, while uploads go on: about ten thousand
points a second, and commits say whether theirs are there (`commit.projected`). Locks: of `commit`, for a moment. Rows
rewritten: none. The old release goes on beside the new one; what it stores meanwhile is found missing by `pullback db check`
and made by `pullback db rebuild`. Back: the table goes, and nothing else was changed.
"""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table, empty, and note that no commit is in it yet."""
    op.add_column("commit", sa.Column("projected", sa.Boolean(), server_default=sa.false(), nullable=False))
    op.create_index("ix_commit_unprojected", "commit", ["id"], postgresql_where=sa.text("NOT projected"))
    op.create_table(
        "reading",
        sa.Column("commit_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("series_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("ordered_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("report_id", sa.Uuid(), nullable=False),
        sa.Column("reports", sa.BigInteger(), nullable=False),
        sa.Column("quality", sa.Text(), nullable=False),
        sa.Column("dirty", sa.Boolean(), nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.Column("process_count", sa.BigInteger(), nullable=True),
        sa.Column("process_low", sa.Double(), nullable=True),
        sa.Column("process_q25", sa.Double(), nullable=True),
        sa.Column("process_q75", sa.Double(), nullable=True),
        sa.Column("process_high", sa.Double(), nullable=True),
        sa.Column("baseline", sa.Text(), nullable=True),
        sa.Column("log_ratio", sa.Double(), nullable=True),
        sa.Column("low", sa.Double(), nullable=True),
        sa.Column("high", sa.Double(), nullable=True),
        sa.Column("n", sa.BigInteger(), nullable=True),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.Column("consistent", sa.Boolean(), nullable=False),
        sa.Column("method", sa.Text(), nullable=True),
        sa.Column("program_hash", sa.Text(), nullable=True),
        sa.CheckConstraint("quality IN ('clean', 'busy')", name=op.f("ck_reading_quality")),
        sa.ForeignKeyConstraint(
            ["series_id"], ["series.id"], name=op.f("fk_reading_series_id_series"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("commit_id", "series_id", name=op.f("pk_reading")),
    )
    op.create_index(
        "ix_reading_series_history",
        "reading",
        ["series_id", "ordered_at", "commit_id"],
        postgresql_include=["value", "log_ratio", "low", "high", "outcome"],
    )


def downgrade() -> None:
    """Drop the table; everything in it can be computed again."""
    op.drop_table("reading")
    op.drop_index("ix_commit_unprojected", table_name="commit")
    op.drop_column("commit", "projected")

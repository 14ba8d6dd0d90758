"""step: readings judged against the commit they were made from.

Step: migrate, then the worker judges what is stored, newest commits first, while uploads go on; commits say by which version of
the rule everything measured there was judged (`commit.judged_by`, 0 for none). Locks: of `commit` and `comparison`, for a
moment; the indexes of `comparison` are made while others write. Rows rewritten: none. The old release goes on beside the new
one; what it stores meanwhile is found missing by `pullback db check` and made by `pullback db rebuild`. Back: the table
goes, and nothing else was changed.
"""

import sqlalchemy as sa
from alembic import op

from pullback_service.row_security import guard, through

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table, empty, and note that no commit is in it yet."""
    with op.get_context().autocommit_block():  # CONCURRENTLY cannot run in a transaction
        for column in ("reference_id", "case_id"):
            name = f"ix_comparison_{column}"
            op.drop_index(name, table_name="comparison", postgresql_concurrently=True, if_exists=True)
            op.create_index(name, "comparison", [column], postgresql_concurrently=True)
    op.add_column("commit", sa.Column("judged_by", sa.SmallInteger(), server_default="0", nullable=False))
    op.create_index("ix_commit_judged_by", "commit", ["judged_by", "id"])
    op.create_table(
        "step",
        sa.Column("series_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("commit_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("reference_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("log_ratio", sa.Double(), nullable=True),
        sa.Column("low", sa.Double(), nullable=True),
        sa.Column("high", sa.Double(), nullable=True),
        sa.Column("threshold", sa.Double(), nullable=True),
        sa.Column("n", sa.BigInteger(), nullable=True),
        sa.Column("rule", sa.SmallInteger(), nullable=False),
        sa.Column("news", sa.Boolean(), nullable=False),
        sa.Column("stale", sa.Boolean(), nullable=False),
        sa.Column("provisional", sa.Boolean(), nullable=False),
        sa.Column("via", sa.Text(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.Column("evidence", sa.Text(), nullable=True),
        sa.Column("doubt", sa.Text(), nullable=True),
        sa.Column("detail", sa.Text(), nullable=True),
        sa.CheckConstraint("via IN ('parent', 'history', 'none', 'compared')", name=op.f("ck_step_via")),
        sa.ForeignKeyConstraint(
            ["series_id"], ["series.id"], name=op.f("fk_step_series_id_series"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("series_id", "commit_id", "reference_id", name=op.f("pk_step")),
    )
    op.create_index("ix_step_reference_id_series_id", "step", ["reference_id", "series_id"])
    for name, columns, where in (
        ("ix_step_not_by_parent", ["commit_id"], "via <> 'parent'"),
        ("ix_step_first", ["series_id"], "via = 'none'"),
        ("ix_step_news_at", ["commit_id", "series_id"], "news"),
        ("ix_step_news_of", ["series_id", "commit_id"], "news"),
        ("ix_step_stale", ["commit_id"], "stale"),
    ):
        op.create_index(name, "step", columns, postgresql_where=sa.text(where))
    op.execute(guard("step", through("series", "step.series_id")))


def downgrade() -> None:
    """Drop the table; everything in it can be computed again."""
    op.drop_index("ix_comparison_case_id", table_name="comparison")
    op.drop_index("ix_comparison_reference_id", table_name="comparison")
    op.drop_index("ix_commit_judged_by", table_name="commit")
    op.drop_table("step")
    op.drop_column("commit", "judged_by")

"""rule, and what rules decided of incidents; incidents of missing results and of budgets; reports that are withdrawn or partial.

Step: expand (the old release reads none of it). Locks: ACCESS EXCLUSIVE on project, incident, change and report for a moment;
checks are validated while others write. Rows rewritten: none. Back: rules go, missing results and budgets are no incidents any
more, and withdrawn reports, whose measurements are gone, are accepted ones.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from pullback_service.row_security import OWN, guard

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None

CHECKS = {
    ("incident", "kind"): (
        "kind IN ('worse', 'better', 'unsteady', 'wrong_gradient', 'failed')",
        "kind IN ('worse', 'better', 'unsteady', 'wrong_gradient', 'failed', 'missing')",
    ),
    ("change", "kind"): (
        "kind IN ('step', 'unsteady', 'wrong_gradient', 'failed')",
        "kind IN ('step', 'unsteady', 'wrong_gradient', 'failed', 'missing')",
    ),
    ("change", "evidence"): (
        "evidence IN ('exact', 'paired', 'levels', 'failure')",
        "evidence IN ('exact', 'paired', 'levels', 'failure', 'budget', 'absence')",
    ),
    ("report", "status"): ("status IN ('accepted', 'late')", "status IN ('accepted', 'late', 'withdrawn')"),
}


def upgrade() -> None:
    """Make the table, add the columns, and let the checks take more."""
    op.create_table(
        "rule",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("project_id", sa.BigInteger(), nullable=False),
        sa.Column("place", sa.BigInteger(), nullable=False),
        *(sa.Column(name, sa.Text(), nullable=True) for name in ("workload", "case", "variant", "metric", "machine")),
        sa.Column("at_least", sa.Double(), nullable=True),
        sa.Column("budget", sa.Double(), nullable=True),
        sa.Column("watch", sa.Boolean(), nullable=True),
        sa.Column("tell", postgresql.ARRAY(sa.Text()), nullable=True),
        sa.Column("held_since", sa.DateTime(timezone=True), server_default=sa.func.now(), nullable=False),
        sa.Column("commit_sha", sa.Text(), nullable=True),
        sa.CheckConstraint("at_least > 0 AND at_least < 1", name=op.f("ck_rule_at_least")),
        sa.CheckConstraint("budget IS NULL OR (budget >= 0 AND metric IS NOT NULL)", name=op.f("ck_rule_budget")),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name=op.f("fk_rule_project_id_project"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rule")),
        sa.UniqueConstraint("project_id", "place", name=op.f("uq_rule_project_id_place")),
    )
    op.execute(guard("rule", OWN))
    for column in ("file_trunk", "rules_sha"):
        op.add_column("project", sa.Column(column, sa.Text(), nullable=True))
    op.add_column("incident", sa.Column("told_to", postgresql.ARRAY(sa.Text()), nullable=True))
    op.add_column("incident", sa.Column("rules", postgresql.JSONB(), nullable=True))
    op.add_column("report", sa.Column("partial", sa.Boolean(), server_default=sa.text("false"), nullable=False))
    for (table, name), (_, condition) in CHECKS.items():
        op.execute(f"ALTER TABLE {table} DROP CONSTRAINT ck_{table}_{name}")
        op.execute(f"ALTER TABLE {table} ADD CONSTRAINT ck_{table}_{name} CHECK ({condition}) NOT VALID")
    with op.get_context().autocommit_block():  # while others write
        for table, name in CHECKS:
            op.execute(f"ALTER TABLE {table} VALIDATE CONSTRAINT ck_{table}_{name}")


def downgrade() -> None:
    """Take away what the old checks do not allow, then the columns and the table."""
    op.execute("DELETE FROM incident WHERE kind = 'missing'")
    op.execute("DELETE FROM change WHERE kind = 'missing' OR evidence IN ('budget', 'absence')")
    op.execute("UPDATE report SET status = 'accepted' WHERE status = 'withdrawn'")
    for (table, name), (condition, _) in CHECKS.items():
        op.execute(f"ALTER TABLE {table} DROP CONSTRAINT ck_{table}_{name}")
        op.execute(f"ALTER TABLE {table} ADD CONSTRAINT ck_{table}_{name} CHECK ({condition})")
    op.drop_column("report", "partial")
    for column in ("rules", "told_to"):
        op.drop_column("incident", column)
    for column in ("rules_sha", "file_trunk"):
        op.drop_column("project", column)
    op.drop_table("rule")

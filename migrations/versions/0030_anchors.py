"""project.anchor, jobs of the origin anchor, and changes that such jobs show.

Step: expand (the old release reads none of it). Locks: ACCESS EXCLUSIVE on project, job and change for a moment; checks are validated
and the index is built while others write. Rows rewritten: none. Back: jobs and changes of anchors go, and with them what only they
showed.
"""

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None

CHECKS = {
    ("job", "origin"): (
        "origin IN ('asked', 'backfill', 'idle', 'confirm', 'bisect')",
        "origin IN ('asked', 'backfill', 'idle', 'confirm', 'bisect', 'anchor')",
    ),
    ("change", "evidence"): (
        "evidence IN ('exact', 'paired', 'levels', 'failure', 'budget', 'absence')",
        "evidence IN ('exact', 'paired', 'levels', 'failure', 'budget', 'absence', 'anchor')",
    ),
}


def upgrade() -> None:
    """Add the columns, let the checks take more, and build the index."""
    for column in ("anchor", "anchor_sha"):
        op.add_column("project", sa.Column(column, sa.Text(), nullable=True))
    for (table, name), (_, condition) in CHECKS.items():
        op.execute(f"ALTER TABLE {table} DROP CONSTRAINT ck_{table}_{name}")
        op.execute(f"ALTER TABLE {table} ADD CONSTRAINT ck_{table}_{name} CHECK ({condition}) NOT VALID")
    with op.get_context().autocommit_block():  # while others write
        for table, name in CHECKS:
            op.execute(f"ALTER TABLE {table} VALIDATE CONSTRAINT ck_{table}_{name}")
        op.execute("DROP INDEX CONCURRENTLY IF EXISTS ix_job_anchor")  # what a broken run left
        op.execute("CREATE INDEX CONCURRENTLY ix_job_anchor ON job (project_id, machine_id) WHERE origin = 'anchor'")


def downgrade() -> None:
    """Take away what the old checks do not allow, then the index and the columns."""
    op.execute("DELETE FROM change WHERE evidence = 'anchor'")
    op.execute("DELETE FROM job WHERE origin = 'anchor'")
    op.drop_index("ix_job_anchor", table_name="job")
    for (table, name), (condition, _) in CHECKS.items():
        op.execute(f"ALTER TABLE {table} DROP CONSTRAINT ck_{table}_{name}")
        op.execute(f"ALTER TABLE {table} ADD CONSTRAINT ck_{table}_{name} CHECK ({condition})")
    for column in ("anchor_sha", "anchor"):
        op.drop_column("project", column)

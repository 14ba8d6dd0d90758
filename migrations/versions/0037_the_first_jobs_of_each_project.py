"""job: index the queue of each project.

Step: expand (old release unaffected). Locks: none on writes, the index is built concurrently. Rows rewritten: 0. Back: drop the index.
"""

from alembic import op

revision = "0037"
down_revision = "0036"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Build the index."""
    with op.get_context().autocommit_block():
        op.execute("DROP INDEX CONCURRENTLY IF EXISTS ix_job_project_queue")  # what a broken run left
        op.execute(
            "CREATE INDEX CONCURRENTLY ix_job_project_queue ON job (project_id, priority DESC, attempts, id) "
            "WHERE state = 'queued' AND (trust = 'trusted' OR approved_at IS NOT NULL)"
        )


def downgrade() -> None:
    """Drop the index."""
    op.drop_index("ix_job_project_queue", table_name="job")

"""report: the last uploads of a machine to a project.

Step: expand (the old release keeps the index up to date and does not use it). Locks: none on writes, it is built
concurrently; an interrupted build leaves an index that is not valid, which `pullback db check` tells: the next upgrade
replaces it. Rows rewritten: 0. Back: drop the index.

Built in 20 ms beside 20,000 reports and 10 million points; point and series get no new index, because those that they have
answer (docs/decisions/0046).
"""

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Build the index."""
    with op.get_context().autocommit_block():  # CONCURRENTLY cannot run in a transaction
        op.drop_index("ix_report_machine", table_name="report", postgresql_concurrently=True, if_exists=True)
        op.create_index(
            "ix_report_machine", "report", ["machine_id", "project_id", "received_at"], postgresql_concurrently=True
        )


def downgrade() -> None:
    """Drop the index."""
    op.drop_index("ix_report_machine", table_name="report")

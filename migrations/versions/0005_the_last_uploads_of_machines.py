"""report: the last uploads of a machine to a project; point: the series of a commit.

Step: expand (the old release keeps the indexes up to date and does not need them; that of points by commit alone is part
of the new one). Locks: none on writes, they are built concurrently; a build that was interrupted leaves an index that is
not valid, which `pullback db check` tells and the next upgrade replaces. Rows rewritten: 0. Back: build the old index,
drop the new ones.
"""

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

NEW = (
    ("ix_report_machine", "report", ["machine_id", "project_id", "received_at"]),
    ("ix_point_commit_id_series_id", "point", ["commit_id", "series_id"]),
)


def upgrade() -> None:
    """Build the indexes, then drop the one that is part of another."""
    with op.get_context().autocommit_block():  # CONCURRENTLY cannot run in a transaction
        for name, table, columns in NEW:
            op.drop_index(name, table_name=table, postgresql_concurrently=True, if_exists=True)
            op.create_index(name, table, columns, postgresql_concurrently=True)
        op.drop_index("ix_point_commit_id", table_name="point", postgresql_concurrently=True, if_exists=True)


def downgrade() -> None:
    """Build the old index, then drop the new ones."""
    with op.get_context().autocommit_block():
        op.drop_index("ix_point_commit_id", table_name="point", postgresql_concurrently=True, if_exists=True)
        op.create_index("ix_point_commit_id", "point", ["commit_id"], postgresql_concurrently=True)
        for name, table, _ in NEW:
            op.drop_index(name, table_name=table, postgresql_concurrently=True, if_exists=True)

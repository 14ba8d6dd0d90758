"""point: the index of a series' history holds the numbers that charts draw, so that these are read from it alone.

Step: expand (the old release uses the index as before). Locks: none on writes, it is built concurrently, about a minute for
ten million points; the old one is dropped when the new one stands. What was interrupted leaves an index that is not valid,
which `pullback db check` tells and the next upgrade replaces. Rows rewritten: 0. The table's rows are marked as visible to
all, which reading from the index alone needs, after so many new ones and no longer after a fifth of the table. Back: build
the narrow index.
"""

from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

NAME = "ix_point_series_history"
MADE = "ix_point_series_history_made"
COLUMNS = ["series_id", "ordered_at", "commit_id", "id"]
NUMBERS = ["value", "log_ratio", "low", "high", "outcome"]


def upgrade() -> None:
    """Build the wide index, and give it the name of the narrow one."""
    _replace(NUMBERS)
    op.execute(
        "ALTER TABLE point SET (autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 100000)"
    )


def downgrade() -> None:
    """Build the narrow index, and give it the name of the wide one."""
    op.execute("ALTER TABLE point RESET (autovacuum_vacuum_insert_scale_factor, autovacuum_vacuum_insert_threshold)")
    _replace([])


def _replace(numbers: list[str]) -> None:
    with op.get_context().autocommit_block():  # CONCURRENTLY cannot run in a transaction
        op.drop_index(MADE, table_name="point", postgresql_concurrently=True, if_exists=True)
        op.create_index(MADE, "point", COLUMNS, postgresql_concurrently=True, postgresql_include=numbers)
        op.drop_index(NAME, table_name="point", postgresql_concurrently=True, if_exists=True)
        op.execute(f"ALTER INDEX {MADE} RENAME TO {NAME}")

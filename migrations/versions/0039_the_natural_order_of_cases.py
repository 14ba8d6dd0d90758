"""case.natural_label: labels that sort with numbers by size; ix_case_workload orders the cases of a workload by it.

Step: expand (the old release neither reads nor writes the column, and finds workloads by the new index). Locks: ACCESS EXCLUSIVE on "case" while
its rows are rewritten, 0.3 s for 20,000 cases; if it is not free within a second it is tried again, so that nobody waits longer for us. The
index is built concurrently. Rows rewritten: all cases. Back: the index as it was, and the column goes.
"""

import time

import psycopg
from alembic import op

revision = "0039"
down_revision = "0038"
branch_labels = None
depends_on = None

_PADDED = r"regexp_replace(left(label, 300), '([0-9]+)', '000000000000\1', 'g')"
_NATURAL = rf"left(regexp_replace({_PADDED}, '[0-9]*([0-9]{{12}})', '\1', 'g'), 300) || ' ' || md5(label)"


def upgrade() -> None:
    """Add the column, then replace the index."""
    with op.get_context().autocommit_block():
        _alter(f"ADD COLUMN IF NOT EXISTS natural_label text NOT NULL GENERATED ALWAYS AS ({_NATURAL}) STORED")
        _replace_index("project_id, workload, natural_label, id")


def downgrade() -> None:
    """Bring the index back, then drop the column."""
    with op.get_context().autocommit_block():
        _replace_index("project_id, workload, id")
        _alter("DROP COLUMN natural_label")


def _replace_index(columns: str) -> None:
    op.execute("DROP INDEX CONCURRENTLY IF EXISTS ix_case_workload_new")  # what a broken run left
    op.execute(f'CREATE INDEX CONCURRENTLY ix_case_workload_new ON "case" ({columns})')
    op.execute("DROP INDEX CONCURRENTLY IF EXISTS ix_case_workload")
    op.execute("ALTER INDEX ix_case_workload_new RENAME TO ix_case_workload")


def _alter(change: str) -> None:
    driver = op.get_bind().connection.driver_connection
    assert isinstance(driver, psycopg.Connection)  # noqa: S101 - the engine names its driver
    while True:
        try:
            # One message is one transaction.
            driver.execute(f"SET LOCAL lock_timeout = '1s'; ALTER TABLE \"case\" {change}", prepare=False)
        except psycopg.errors.LockNotAvailable:
            time.sleep(0.2)
        else:
            return

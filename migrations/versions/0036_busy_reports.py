"""report.quality and point.quality: `busy`, which earlier releases wrote as `contaminated`.

Step: expand (the old release writes and reads on, and takes what is not clean for busy). Locks: ACCESS EXCLUSIVE on one table after the
other, for a moment; a table that is not free within a second is tried again, so that nobody waits longer for us. The checks are validated
while others write. Rows rewritten: none, `contaminated` is read as busy. Back: `busy` is refused from then on, then rows are rewritten to
the old word.
"""

import time

import psycopg
from alembic import op

revision = "0036"
down_revision = "0035"
branch_labels = None
depends_on = None

_TABLES = ("report", "point")


def upgrade() -> None:
    """Let both words stand."""
    with op.get_context().autocommit_block():
        for table in _TABLES:
            _check(table, "'clean', 'busy', 'contaminated'")
            op.execute(f"ALTER TABLE {table} VALIDATE CONSTRAINT ck_{table}_quality")


def downgrade() -> None:
    """Write the old word again."""
    with op.get_context().autocommit_block():
        for table in _TABLES:
            _check(table, "'clean', 'contaminated'")
            op.execute(f"UPDATE {table} SET quality = 'contaminated' WHERE quality = 'busy'")  # noqa: S608 - our own words
            op.execute(f"ALTER TABLE {table} VALIDATE CONSTRAINT ck_{table}_quality")


def _check(table: str, words: str) -> None:
    """Let further rows hold these words alone."""
    driver = op.get_bind().connection.driver_connection
    assert isinstance(driver, psycopg.Connection)  # noqa: S101 - the engine names its driver
    while True:
        try:
            # One message is one transaction.
            driver.execute(
                f"SET LOCAL lock_timeout = '1s'; ALTER TABLE {table} DROP CONSTRAINT ck_{table}_quality, "
                f"ADD CONSTRAINT ck_{table}_quality CHECK (quality IN ({words})) NOT VALID",
                prepare=False,
            )
        except psycopg.errors.LockNotAvailable:
            time.sleep(0.2)
        else:
            return

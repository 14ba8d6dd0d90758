"""report.quality and point.quality: `busy`, which earlier releases wrote as `contaminated`.

Step: expand (the old release writes and reads on, and takes what is not clean for busy). Locks: ACCESS EXCLUSIVE on report and point for
a moment each; the checks are validated while others write. Rows rewritten: none, `contaminated` is read as busy. Back: rows are rewritten
to the old word, then the old checks stand.
"""

from alembic import op

revision = "0036"
down_revision = "0035"
branch_labels = None
depends_on = None

_TABLES = ("report", "point")


def upgrade() -> None:
    """Let both words stand."""
    _check("'clean', 'busy', 'contaminated'")


def downgrade() -> None:
    """Write the old word again."""
    for table in _TABLES:
        op.execute(f"UPDATE {table} SET quality = 'contaminated' WHERE quality = 'busy'")  # noqa: S608 - our own words
    _check("'clean', 'contaminated'")


def _check(words: str) -> None:
    for table in _TABLES:
        op.execute(
            f"ALTER TABLE {table} DROP CONSTRAINT ck_{table}_quality, "
            f"ADD CONSTRAINT ck_{table}_quality CHECK (quality IN ({words})) NOT VALID"
        )
    with op.get_context().autocommit_block():  # while others write
        for table in _TABLES:
            op.execute(f"ALTER TABLE {table} VALIDATE CONSTRAINT ck_{table}_quality")

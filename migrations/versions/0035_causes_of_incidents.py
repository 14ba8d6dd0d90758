"""incident.cause: the machine, the baseline or one tier, where the series around an incident show it.

Step: expand (the old release reads none of it). Locks: ACCESS EXCLUSIVE on incident for a moment; the check is validated while others
write. Rows rewritten: none, stored incidents have no cause until a detection touches them. Back: the column goes.
"""

import sqlalchemy as sa
from alembic import op

revision = "0035"
down_revision = "0034"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column."""
    op.add_column("incident", sa.Column("cause", sa.Text(), nullable=True))
    op.execute(
        "ALTER TABLE incident ADD CONSTRAINT ck_incident_cause CHECK (cause IN ('machine', 'baseline', 'tier')) NOT VALID"
    )
    with op.get_context().autocommit_block():  # while others write
        op.execute("ALTER TABLE incident VALIDATE CONSTRAINT ck_incident_cause")


def downgrade() -> None:
    """Take it away."""
    op.drop_column("incident", "cause")

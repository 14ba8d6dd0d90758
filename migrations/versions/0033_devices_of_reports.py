"""report.device: the device of all cases of a report, where that is not the CPU.

Step: expand (the old release reads none of it). Locks: ACCESS EXCLUSIVE on report for a moment. Rows rewritten: none. Back: the column goes.
"""

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column."""
    op.add_column("report", sa.Column("device", sa.Text(), nullable=True))


def downgrade() -> None:
    """Take it away."""
    op.drop_column("report", "device")

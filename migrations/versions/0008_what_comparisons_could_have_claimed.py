"""comparison: the least it would have claimed, the most it would have called the same, and how sure that is.

Step: expand (old release unaffected, it leaves them null). Locks: ACCESS EXCLUSIVE on comparison for a moment; the columns
are null, so no row is rewritten. Back: drop the columns; reports keep what they said.
"""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns."""
    op.add_column("comparison", sa.Column("claim", sa.Double(), nullable=True))
    op.add_column("comparison", sa.Column("margin", sa.Double(), nullable=True))
    op.add_column("comparison", sa.Column("provisional", sa.Boolean(), nullable=True))


def downgrade() -> None:
    """Drop the columns."""
    for column in ("provisional", "margin", "claim"):
        op.drop_column("comparison", column)

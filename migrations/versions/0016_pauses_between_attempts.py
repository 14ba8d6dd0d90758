"""When a job that failed may be given out again.

Step: expand (old release unaffected: it leaves the column null, and gives such jobs out at once). Locks: ACCESS EXCLUSIVE on job
for a moment; the column is null, so no row is rewritten. Back: drop the column; what pauses then pauses no longer.
"""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column."""
    op.add_column("job", sa.Column("not_before", sa.DateTime(timezone=True), nullable=True))


def downgrade() -> None:
    """Remove it again."""
    op.drop_column("job", "not_before")

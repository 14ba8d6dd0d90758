"""report: the document made from another tool's file.

Step: expand (old release unaffected, it writes no such files). Locks: ACCESS EXCLUSIVE on report for a moment; the
column is null, so no row is rewritten. Back: drop the column; reports made from other tools' files keep their file.
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column."""
    op.add_column("report", sa.Column("document", sa.LargeBinary(), nullable=True))


def downgrade() -> None:
    """Drop the column."""
    op.drop_column("report", "document")

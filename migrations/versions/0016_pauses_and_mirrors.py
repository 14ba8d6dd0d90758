"""When a job that failed may be given out again; since when a project's mirror cannot be read.

Step: expand (old release unaffected: it leaves both null, and gives such jobs out at once). Locks: ACCESS EXCLUSIVE on job and
project for a moment; the columns are null, so no row is rewritten. Back: drop the columns; what pauses pauses no longer.
"""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns."""
    op.add_column("job", sa.Column("not_before", sa.DateTime(timezone=True), nullable=True))
    op.add_column("project", sa.Column("mirror_unread_since", sa.DateTime(timezone=True), nullable=True))


def downgrade() -> None:
    """Remove them again."""
    op.drop_column("project", "mirror_unread_since")
    op.drop_column("job", "not_before")

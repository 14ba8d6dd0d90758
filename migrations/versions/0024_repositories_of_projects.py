"""Where agents fetch the commits of a project from.

Step: expand (old release unaffected: it leaves it null, and agents take commits out of their own clone). Locks: ACCESS
EXCLUSIVE on project for a moment; the column is null, so no row is rewritten. Back: drop the column.
"""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column."""
    op.add_column("project", sa.Column("repository", sa.Text, nullable=True))


def downgrade() -> None:
    """Remove it again."""
    op.drop_column("project", "repository")

"""project.detector and detector_from: the version of the detector that a project hears.

Step: expand (the old release reads none of it). Locks: ACCESS EXCLUSIVE on project for a moment. Rows rewritten: none. Back: the columns go.
"""

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns."""
    op.add_column("project", sa.Column("detector", sa.Text(), nullable=True))
    op.add_column("project", sa.Column("detector_from", sa.DateTime(timezone=True), nullable=True))


def downgrade() -> None:
    """Take them away."""
    for column in ("detector_from", "detector"):
        op.drop_column("project", column)

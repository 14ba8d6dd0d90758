"""report: the counts of points and failures of withdrawn reports are zero, as those of their rows.

Step: data. Locks: ROW EXCLUSIVE on report. Rows rewritten: withdrawn reports. Back: none needed; the old release counts them as measured.
"""

from alembic import op

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Zero the counts."""
    op.execute("UPDATE report SET points = 0, failures = 0 WHERE status = 'withdrawn'")


def downgrade() -> None:
    """Leave them."""

"""agent.token_id: the token that enrolled an agent without one of its own.

Step: expand (the old release reads none of it). Locks: ACCESS EXCLUSIVE on agent for a moment. Rows rewritten: none; an
agent that a plain token enrolled is told 404 at its next claim, and enrols again. Back: the column goes.
"""

import sqlalchemy as sa
from alembic import op

revision = "0038"
down_revision = "0037"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column."""
    op.add_column("agent", sa.Column("token_id", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    """Take it away."""
    op.drop_column("agent", "token_id")

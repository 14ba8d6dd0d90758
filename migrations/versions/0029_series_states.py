"""series_state: what the detector knows of a series between uploads.

Step: migrate; the next upload of a series makes its row. Locks: none but on the new table. Rows rewritten: none. The old release goes on
beside the new one: it looks at all readings of what it is sent, and a state goes on with every reading behind its end, whoever took it.
Back: the table goes; all of it can be computed again.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from pullback_service.row_security import guard, through

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table, empty."""
    op.create_table(
        "series_state",
        sa.Column("series_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("state", sa.LargeBinary(), server_default="", nullable=False),
        sa.Column("resolution", sa.Double(), nullable=True),
        sa.Column("suspects", postgresql.JSONB(), server_default="[]", nullable=False),
        sa.ForeignKeyConstraint(
            ["series_id"], ["series.id"], name=op.f("fk_series_state_series_id_series"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("series_id", name=op.f("pk_series_state")),
    )
    suspected = sa.text("suspects <> '[]'::jsonb")
    op.create_index("ix_series_state_suspects", "series_state", ["series_id"], postgresql_where=suspected)
    op.execute(guard("series_state", through("series", "series_state.series_id")))


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("series_state")

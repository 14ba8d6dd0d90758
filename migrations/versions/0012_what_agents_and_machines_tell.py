"""What agents tell of their spool and why they take no jobs, who asked for a job, how the facts of machines changed.

Step: expand (old release unaffected, it leaves all of it null and notes no changes). Locks: ACCESS EXCLUSIVE on agent and
job for a moment; the columns are null, so no row is rewritten. Back: drop the columns and the table; the changes of facts
that were noted are lost.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns and the table."""
    op.add_column("agent", sa.Column("spool_waiting", sa.BigInteger(), nullable=True))
    op.add_column("agent", sa.Column("spool_bytes", sa.BigInteger(), nullable=True))
    op.add_column("agent", sa.Column("refuses", sa.Text(), nullable=True))
    op.add_column("job", sa.Column("asked_by", sa.Text(), nullable=True))
    op.create_table(
        "facts_change",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("machine_id", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("before", postgresql.JSONB(), nullable=False),
        sa.Column("after", postgresql.JSONB(), nullable=False),
        sa.ForeignKeyConstraint(["machine_id"], ["machine.id"], name="fk_facts_change_machine_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_facts_change"),
    )
    op.create_index("ix_facts_change_machine_id", "facts_change", ["machine_id", "id"])


def downgrade() -> None:
    """Remove them again."""
    op.drop_table("facts_change")
    op.drop_column("job", "asked_by")
    for column in ("refuses", "spool_bytes", "spool_waiting"):
        op.drop_column("agent", column)

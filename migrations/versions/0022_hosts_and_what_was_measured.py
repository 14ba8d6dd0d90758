"""machine: its host beside its class. point, reading: which text, files and harness were measured. agent: its project.

Step: migrate. Machines that are there have no host until their computer tells one, and keep their series then; the other
columns are null for what is stored already. Locks: of `machine`, `agent`, `point` and `reading`, exclusive, for a moment each;
no row of the last two is rewritten. Rows rewritten: agents whose tokens are all for one project. The old release goes on
beside the new one as long as no class has two machines; it refuses to store what one of them measures, which agents send
again. Back: of machines of one class all but the oldest get a class of their own; hosts and digests go, and stay in the
reports.
"""

import sqlalchemy as sa
from alembic import op

from pullback_service.row_security import OWN, guard

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns and the table."""
    op.add_column("machine", sa.Column("host", sa.Text(), nullable=True))
    op.drop_constraint("uq_machine_fingerprint", "machine")
    op.create_unique_constraint(
        "uq_machine_fingerprint_host", "machine", ["fingerprint", "host"], postgresql_nulls_not_distinct=True
    )
    op.add_column("agent", sa.Column("project_id", sa.BigInteger(), nullable=True))
    op.create_foreign_key(
        op.f("fk_agent_project_id_project"), "agent", "project", ["project_id"], ["id"], ondelete="SET NULL"
    )
    op.execute("""
        UPDATE agent SET project_id = limited.project_id
          FROM (SELECT agent_id, min(project_id) AS project_id
                  FROM token
                 WHERE revoked_at IS NULL
                 GROUP BY agent_id
                HAVING count(DISTINCT project_id) = 1 AND bool_and(project_id IS NOT NULL)) limited
         WHERE limited.agent_id = agent.id
    """)
    op.create_table(
        "measured",
        sa.Column("id", sa.Integer(), sa.Identity(always=True), nullable=False),
        sa.Column("project_id", sa.BigInteger(), nullable=False),
        sa.Column("workload", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("harness", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name=op.f("fk_measured_project_id_project"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_measured")),
        sa.UniqueConstraint(
            *("project_id", "workload", "subject", "harness"),
            name=op.f("uq_measured_project_id_workload_subject_harness"),
        ),
    )
    op.execute(guard("measured", OWN))
    for table in ("point", "reading"):
        op.add_column(table, sa.Column("measured_id", sa.Integer(), nullable=True))


def downgrade() -> None:
    """Remove them again; machines of one class must differ in their class then."""
    for table in ("reading", "point"):
        op.drop_column(table, "measured_id")
    op.drop_table("measured")
    op.drop_column("agent", "project_id")
    op.execute("""
        UPDATE machine SET fingerprint = fingerprint || ' ' || id
         WHERE EXISTS (SELECT FROM machine older WHERE older.fingerprint = machine.fingerprint AND older.id < machine.id)
    """)
    op.drop_constraint("uq_machine_fingerprint_host", "machine")
    op.create_unique_constraint("uq_machine_fingerprint", "machine", ["fingerprint"])
    op.drop_column("machine", "host")

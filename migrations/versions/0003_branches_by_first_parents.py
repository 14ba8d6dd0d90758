"""Branches, mirrors to learn them from, and the place of each commit among their first parents.

Step: expand (the previous release does not read it; branches it hears of meanwhile are placed by the next log).
Locks: a moment of `project` for a column without a default. Rows rewritten: 0; one is inserted for every commit whose branch is known, in the order
of history. Back: drop them; logs and uploads fill them again.
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column and the tables."""
    op.add_column("project", sa.Column("mirror", sa.Text(), nullable=True))
    op.create_table(
        "branch",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("project_id", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("forced_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("forced_from", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_branch_project_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_branch")),
        sa.UniqueConstraint("project_id", "name", name=op.f("uq_branch_project_id_name")),
    )
    op.create_table(
        "branch_commit",
        sa.Column("branch_id", sa.BigInteger(), nullable=False),
        sa.Column("position", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("commit_id", sa.BigInteger(), nullable=False),
        sa.Column("after_gap", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["branch_id"], ["branch.id"], name=op.f("fk_branch_commit_branch_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["commit_id"], ["commit.id"], name=op.f("fk_branch_commit_commit_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("branch_id", "position", name=op.f("pk_branch_commit")),
        sa.UniqueConstraint("branch_id", "commit_id", name=op.f("uq_branch_commit_branch_id_commit_id")),
    )
    op.create_index("ix_branch_commit_commit_id", "branch_commit", ["commit_id"])
    op.execute(
        "INSERT INTO branch (project_id, name) SELECT DISTINCT project_id, branch FROM commit WHERE branch <> ''"
    )
    op.execute(
        """
        INSERT INTO branch_commit (branch_id, position, commit_id, after_gap)
        SELECT b.id, row_number() OVER history - 1, c.id,
               row_number() OVER history > 1 AND p.parent_sha IS DISTINCT FROM lag(c.sha) OVER history
        FROM branch b
        JOIN commit c ON c.project_id = b.project_id AND c.branch = b.name
        LEFT JOIN commit_parent p ON p.commit_id = c.id AND p.position = 0
        WINDOW history AS (PARTITION BY b.id ORDER BY c.ordered_at, c.id)
        """
    )


def downgrade() -> None:
    """Remove them again."""
    op.drop_table("branch_commit")
    op.drop_table("branch")
    op.drop_column("project", "mirror")

"""Tables `token` and `enrolment_code`."""

from sqlalchemy import ARRAY, CheckConstraint, ForeignKey, Index, Text, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from pullback_service.base import Base, Instant, RowId, StampedNow


class Token(Base):
    """A secret with rights. Only its digest is kept; `prefix` is enough to recognise it by, and to use for nothing.

    Rows are never removed, so that the audit log keeps its names; a name is free again once its token is revoked.
    """

    __tablename__ = "token"
    __table_args__ = (
        UniqueConstraint("digest"),
        Index("uq_token_name_valid", "name", unique=True, postgresql_where=text("revoked_at IS NULL")),
        CheckConstraint(
            "scopes <@ ARRAY['read', 'upload', 'agent', 'admin'] AND cardinality(scopes) > 0", name="scopes"
        ),
    )

    id: Mapped[RowId]
    name: Mapped[str]
    digest: Mapped[bytes]
    prefix: Mapped[str]
    scopes: Mapped[list[str]] = mapped_column(ARRAY(Text))
    project_id: Mapped[int | None] = mapped_column(ForeignKey("project.id", ondelete="CASCADE"))
    agent_id: Mapped[int | None] = mapped_column(ForeignKey("agent.id", ondelete="CASCADE"))
    created_at: Mapped[StampedNow]
    created_by: Mapped[str]
    expires_at: Mapped[Instant | None]
    last_used_at: Mapped[Instant | None]
    revoked_at: Mapped[Instant | None]


class EnrolmentCode(Base):
    """A secret with which one agent may introduce itself once, and gets a token of its own for it."""

    __tablename__ = "enrolment_code"
    __table_args__ = (UniqueConstraint("digest"),)

    id: Mapped[RowId]
    digest: Mapped[bytes]
    project_id: Mapped[int | None] = mapped_column(ForeignKey("project.id", ondelete="CASCADE"))
    created_at: Mapped[StampedNow]
    created_by: Mapped[str]
    expires_at: Mapped[Instant]
    used_at: Mapped[Instant | None]
    agent_id: Mapped[int | None] = mapped_column(ForeignKey("agent.id", ondelete="SET NULL"))

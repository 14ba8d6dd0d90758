"""Table `login`."""

from sqlalchemy import CheckConstraint, ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from pullback_service.base import Base, Instant, RowId, StampedNow


class Login(Base):
    """A browser's session: the digest of its cookie, and the token whose rights it has.

    The bootstrap token is no row, so a login with it keeps that token's digest: another secret ends it.
    """

    __tablename__ = "login"
    __table_args__ = (
        UniqueConstraint("digest"),
        Index("ix_login_expires_at", "expires_at"),
        CheckConstraint("(token_id IS NULL) <> (bootstrap_digest IS NULL)", name="whose"),
    )

    id: Mapped[RowId]
    digest: Mapped[bytes]
    token_id: Mapped[int | None] = mapped_column(ForeignKey("token.id", ondelete="CASCADE"))
    bootstrap_digest: Mapped[bytes | None]
    created_at: Mapped[StampedNow]
    expires_at: Mapped[Instant]

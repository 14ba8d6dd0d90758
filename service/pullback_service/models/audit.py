"""Table `audit`."""

from sqlalchemy import Index
from sqlalchemy.orm import Mapped, mapped_column

from pullback_service.base import Base, Json, RowId, StampedNow


class Audit(Base):
    """A write somebody made, stored in the transaction that made it. Names instead of keys: it outlives what it tells of."""

    __tablename__ = "audit"
    __table_args__ = (Index("ix_audit_project", "project", "id"),)

    id: Mapped[RowId]
    at: Mapped[StampedNow]
    actor: Mapped[str]
    token_id: Mapped[int | None]
    action: Mapped[str]
    subject: Mapped[str]
    project: Mapped[str | None]
    address: Mapped[str | None]
    request_id: Mapped[str | None]
    details: Mapped[Json] = mapped_column(server_default="{}")

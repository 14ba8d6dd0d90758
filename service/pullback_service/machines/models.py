"""Table `machine`."""

from sqlalchemy import UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from pullback_service.base import Base, Json, RowId, StampedNow


class Machine(Base):
    """A hardware fingerprint. Machines are shared by all projects."""

    __tablename__ = "machine"
    __table_args__ = (UniqueConstraint("fingerprint"),)

    id: Mapped[RowId]
    fingerprint: Mapped[str]
    name: Mapped[str]
    facts: Mapped[Json] = mapped_column(server_default="{}")
    first_seen_at: Mapped[StampedNow]
    last_seen_at: Mapped[StampedNow]

"""Table `machine`."""

from sqlalchemy import CheckConstraint, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from pullback_service.base import Base, Json, RowId, StampedNow


class Machine(Base):
    """A hardware fingerprint. Machines are shared by all projects.

    `accepts` is the lowest trust a job may have to be run here: a machine is `trusted` with what only it can reach, its
    network and what other jobs left, until an administrator says that it is for code of strangers too.
    """

    __tablename__ = "machine"
    __table_args__ = (
        UniqueConstraint("fingerprint"),
        CheckConstraint("accepts IN ('trusted', 'untrusted')", name="accepts"),
    )

    id: Mapped[RowId]
    fingerprint: Mapped[str]
    name: Mapped[str]
    facts: Mapped[Json] = mapped_column(server_default="{}")
    first_seen_at: Mapped[StampedNow]
    last_seen_at: Mapped[StampedNow]
    accepts: Mapped[str] = mapped_column(server_default="trusted")

"""Tables `machine` and `facts_change`."""

from sqlalchemy import CheckConstraint, ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from pullback_service.base import Base, Json, RowId, StampedNow


class Machine(Base):
    """A computer with its hardware: `host` is drawn by the computer, `fingerprint` is the class that equal ones share.

    Machines are shared by all projects. Nobody told the host of one that is null (`registration.py`).

    `accepts` is the lowest trust a job may have to be run here: a machine is `trusted` with what only it can reach, its
    network and what other jobs left, until an administrator says that it is for code of strangers too.
    """

    __tablename__ = "machine"
    __table_args__ = (
        UniqueConstraint("fingerprint", "host", postgresql_nulls_not_distinct=True),
        CheckConstraint("accepts IN ('trusted', 'untrusted')", name="accepts"),
    )

    id: Mapped[RowId]
    fingerprint: Mapped[str]
    host: Mapped[str | None]
    name: Mapped[str]
    facts: Mapped[Json] = mapped_column(server_default="{}")
    first_seen_at: Mapped[StampedNow]
    last_seen_at: Mapped[StampedNow]
    accepts: Mapped[str] = mapped_column(server_default="trusted")


class FactsChange(Base):
    """Facts of a machine that were told differently than before: another kernel, another NumPy, another name.

    `before` and `after` hold only what differs; what is missing on one side was not told there.
    """

    __tablename__ = "facts_change"
    __table_args__ = (Index("ix_facts_change_machine_id", "machine_id", "id"),)

    id: Mapped[RowId]
    machine_id: Mapped[int] = mapped_column(ForeignKey("machine.id", ondelete="CASCADE"))
    at: Mapped[StampedNow]
    before: Mapped[Json]
    after: Mapped[Json]

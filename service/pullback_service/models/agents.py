"""Table `agent`."""

from sqlalchemy import ForeignKey, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from pullback_service.base import Base, Json, RowId, StampedNow

# An agent asks for work every half minute and says every few seconds that it is at work.
SILENT_AFTER_S = 300


class Agent(Base):
    """A daemon on a machine. Enrolling again under the same name on the same machine is the same agent."""

    __tablename__ = "agent"
    __table_args__ = (UniqueConstraint("machine_id", "name"),)

    id: Mapped[RowId]
    machine_id: Mapped[int] = mapped_column(ForeignKey("machine.id", ondelete="RESTRICT"))
    name: Mapped[str]
    project_id: Mapped[int | None] = mapped_column(ForeignKey("project.id", ondelete="SET NULL"))
    """The one project that it was enrolled for; null where it serves all of them."""
    token_id: Mapped[int | None]
    """The token that enrolled it and speaks for it; null where it has one of its own, or an administrator enrolled it.

    No foreign key, as tokens refer to agents: whose token is gone nobody claims for before it is enrolled anew.
    """
    labels: Mapped[Json] = mapped_column(server_default="{}")
    enrolled_at: Mapped[StampedNow]
    last_seen_at: Mapped[StampedNow]
    spool_waiting: Mapped[int | None]
    """Reports and failures that it has measured and not yet delivered; null where it never told."""
    spool_bytes: Mapped[int | None]
    refuses: Mapped[str | None]
    """The agent's own reason for taking no jobs at present; null while it takes them."""

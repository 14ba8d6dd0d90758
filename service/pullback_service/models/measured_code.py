"""Table `measured`."""

from sqlalchemy import ForeignKey, Identity, Integer, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from pullback_service.base import Base


class StoredCodeIdentity(Base):
    """The code that many points were measured of; empty where their report does not tell.

    `workload` and `subject` are digests: of the workload's text, and of the files that make two commits differ. A point and a
    reading hold the id, four bytes; without a foreign key, for both go with their project.
    """

    __tablename__ = "measured"
    __table_args__ = (UniqueConstraint("project_id", "workload", "subject", "harness"),)

    id: Mapped[int] = mapped_column(Integer, Identity(always=True), primary_key=True)
    project_id: Mapped[int] = mapped_column(ForeignKey("project.id", ondelete="CASCADE"))
    workload: Mapped[str]
    subject: Mapped[str]
    harness: Mapped[str]

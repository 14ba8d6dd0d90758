"""A message to a channel, as renderers and senders see it."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from pullback_service.notifications.events import DIGEST, Facts


class Notice(NamedTuple):
    """A notification."""

    event: str
    key: str
    facts: Facts
    created_at: datetime


class Message(NamedTuple):
    """A message to a channel under the id of its delivery: one notification, or a digest of several."""

    delivery_id: UUID
    channel: str
    kind: str
    target: str
    secret: str | None
    project: str
    told: tuple[Notice, ...]
    left_out: int = 0
    """Notifications of a digest that are counted only."""
    is_digest: bool = False

    @property
    def event(self) -> str:
        """The event that the message is about."""
        return DIGEST if self.is_digest else self.told[0].event

    @property
    def title(self) -> str:
        """The message in a few words."""
        if not self.is_digest:
            return str(self.told[0].facts["title"])
        return f"{len(self.told) + self.left_out} more in {self.project}"

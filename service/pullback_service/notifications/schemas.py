"""Requests and answers about channels and deliveries."""

from datetime import datetime
from typing import Annotated, Literal, Self, TypeAlias
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from pullback_service.fields import MAIL_ADDRESS, Name
from pullback_service.name_characters import ChosenName
from pullback_service.notifications.events import EVENTS, Event
from pullback_service.notifications.queries import StoredChannel, StoredDelivery
from pullback_service.notifications.targets import LONGEST_TARGET, shown
from pullback_service.rows_to_models import filled

Kind: TypeAlias = Literal["webhook", "slack", "email"]
State: TypeAlias = Literal["on", "failing", "off"]
DeliveryState: TypeAlias = Literal["waiting", "sent", "failed", "digested"]
MOST_RECIPIENTS = 10
Url = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_TARGET, pattern=r"^[!-~]+$")]
MailAddress = Annotated[str, StringConstraints(max_length=254, pattern=MAIL_ADDRESS)]


class ChannelRequest(BaseModel):
    """A channel to be made."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"project": "demo", "name": "team", "kind": "webhook", "url": "https://hooks.example/pullback"}
            ]
        },
    )

    project: Name
    name: ChosenName
    kind: Kind
    url: Url | None = Field(None, description="Of a webhook or of an incoming webhook of Slack: https.")
    to: Annotated[list[MailAddress], Field(min_length=1, max_length=MOST_RECIPIENTS)] | None = Field(
        None, description="Recipients of e-mails."
    )
    events: Annotated[list[Event], Field(min_length=1, max_length=len(EVENTS))] | None = Field(
        None,
        description="Left out: all but `likely`, and that too while no agent can measure the project.",
    )

    @model_validator(mode="after")
    def _target_belongs_to_its_kind(self) -> Self:
        wants_url = self.kind != "email"
        if (self.url is not None) != wants_url or (self.to is not None) == wants_url:
            what = "`url` and no `to`" if wants_url else "`to` and no `url`"
            raise PydanticCustomError(
                "target", "A channel of the kind {kind} has {what}.", {"kind": self.kind, "what": what}
            )
        return self


class ChannelSummary(BaseModel):
    """A channel, without its secrets: of a webhook's address the host is shown.

    One that is `failing` is tried again, and one that failed for a day is `off`: a test that arrives switches it on.
    """

    id: int
    project: str
    name: str
    kind: Kind
    target: str = Field(examples=["https://hooks.example/…"])
    events: list[Event] | None = Field(description="Null: the usual ones.")
    state: State
    created_at: datetime
    created_by: str
    failing_since: datetime | None
    switched_off_at: datetime | None
    switched_off_because: str | None
    last_sent_at: datetime | None
    waiting: int = Field(description="Messages that are not sent yet.")

    @classmethod
    def of(cls, stored: StoredChannel) -> Self:
        """A stored channel."""
        channel = stored.channel
        state = "off" if channel.switched_off_at else "failing" if channel.failing_since else "on"
        return filled(cls, stored, channel, target=shown(channel.kind, channel.target), state=state)


class NewChannel(ChannelSummary):
    """A channel that was just made. Nothing shows the secret again."""

    secret: str | None = Field(description="The key of a webhook's signatures.")


class DeliverySummary(BaseModel):
    """A message to a channel. What is `digested` went with the digest of that id; `answer` is that to the last attempt."""

    id: UUID
    channel_id: int
    event: str = Field(description="`digest` for several notifications.")
    key: str | None
    title: str | None
    state: DeliveryState
    created_at: datetime
    attempts: int
    attempted_at: datetime | None
    sent_at: datetime | None
    answer: str | None
    digest_id: UUID | None

    @classmethod
    def of(cls, stored: StoredDelivery) -> Self:
        """A stored delivery."""
        return filled(cls, stored, stored.delivery)

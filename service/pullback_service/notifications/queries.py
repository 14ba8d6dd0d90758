"""Making, finding, testing and removing channels; what was delivered on them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID, uuid4

from sqlalchemy import Select, func, select, text, tuple_
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.deferred_chores import defer_deliveries
from pullback_service.errors import ConflictError, NotFoundError, TooManyRequestsError
from pullback_service.models.notifications import OPEN_DELIVERY, Channel, Delivery, Notification
from pullback_service.models.projects import Project
from pullback_service.notifications.events import DIGEST, TEST, tidied
from pullback_service.notifications.outbox import HOUR, MESSAGES_AN_HOUR
from pullback_service.projects.queries import id_of

MOST_CHANNELS: Final = 20
"""The most channels of one project."""


@dataclass(frozen=True, slots=True)
class StoredChannel:
    """A channel with the name of its project, when it was last sent something, and how many messages wait."""

    channel: Channel
    project: str
    last_sent_at: datetime | None
    waiting: int


@dataclass(frozen=True, slots=True)
class StoredDelivery:
    """A delivery with what it is about."""

    delivery: Delivery
    event: str
    key: str | None
    title: str | None


async def create_channel(
    session: AsyncSession,
    project: Project,
    *,
    name: str,
    kind: str,
    target: str,
    secret: str | None,
    events: Sequence[str] | None,
    created_by: str,
) -> StoredChannel:
    """Make a channel. Index: uq_channel_project_id_name."""
    of_project = select(func.count()).select_from(Channel).where(Channel.project_id == project.id)
    if (await session.scalars(of_project)).one() >= MOST_CHANNELS:
        raise ConflictError(f"Project {project.name!r} has {MOST_CHANNELS} channels, the limit: remove one first.")
    channel = Channel(
        project_id=project.id,
        name=name,
        kind=kind,
        target=target,
        secret=secret,
        events=None if events is None else list(dict.fromkeys(events)),
        created_by=created_by,
    )
    try:
        async with session.begin_nested():
            session.add(channel)
    except IntegrityError as error:
        raise ConflictError(
            f"Project {project.name!r} has a channel {name!r} already: remove it first, or choose another name."
        ) from error
    return await channel_by_id(session, channel.id)


async def list_channels(
    session: AsyncSession, *, project: str | None = None, after_id: int | None = None, limit: int
) -> Sequence[StoredChannel]:
    """Channels in the order of their making. Index: pk_channel; of a project uq_channel_project_id_name."""
    statement = _channels().order_by(Channel.id).limit(limit)
    if project is not None:
        statement = statement.where(Channel.project_id == id_of(project))
    if after_id is not None:
        statement = statement.where(Channel.id > after_id)
    return [StoredChannel(*row) for row in await session.execute(statement)]


async def channel_by_id(session: AsyncSession, channel_id: int) -> StoredChannel:
    """A channel. Index: pk_channel."""
    row = (await session.execute(_channels().where(Channel.id == channel_id))).one_or_none()
    if row is None:
        raise NotFoundError(f"There is no channel {channel_id}: GET /api/v1/channels lists them.")
    return StoredChannel(*row)


async def remove_channel(session: AsyncSession, channel_id: int) -> StoredChannel:
    """Remove a channel with its deliveries. Index: pk_channel."""
    stored = await channel_by_id(session, channel_id)
    await session.delete(stored.channel)
    await session.flush()
    return stored


async def test_channel(session: AsyncSession, channel_id: int, *, asked_by: str) -> StoredDelivery:
    """Send a test to a channel, be it switched off or limited, once this transaction is stored.

    Index: pk_channel, ix_delivery_channel_id.
    """
    stored = await channel_by_id(session, channel_id)
    lately = (
        select(func.count())
        .select_from(Delivery)
        .join(Notification, Notification.id == Delivery.notification_id)
        .where(Delivery.channel_id == channel_id, Delivery.created_at > func.now() - HOUR, Notification.event == TEST)
    )
    if (await session.scalars(lately)).one() >= MESSAGES_AN_HOUR:
        raise TooManyRequestsError(
            f"Channel {channel_id} was tested {MESSAGES_AN_HOUR} times within an hour: wait, then test it again.",
            retry_after_s=int(HOUR.total_seconds()),
            kind="tests-of-channel",
        )
    facts = tidied(
        {
            "title": f"Test of channel {stored.channel.name}",
            "sentence": f"This is a test of channel {stored.channel.name} of project {stored.project}, asked for by {asked_by}.",
            "url": "/",
            "project": stored.project,
            "severity": "info",
        }
    )
    notification = Notification(
        project_id=stored.channel.project_id, event=TEST, key=f"channel {channel_id} {uuid4()}", facts=facts
    )
    session.add(notification)
    await session.flush()
    delivery = Delivery(channel_id=channel_id, notification_id=notification.id)
    session.add(delivery)
    await session.flush()
    await defer_deliveries(session, channel_id)
    await session.refresh(delivery)
    return StoredDelivery(delivery, TEST, notification.key, str(facts["title"]))


async def list_deliveries(
    session: AsyncSession, channel_id: int, *, before: tuple[datetime, UUID] | None = None, limit: int
) -> Sequence[StoredDelivery]:
    """Messages of a channel, newest first. Index: ix_delivery_channel_id, pk_notification."""
    statement = (
        select(
            Delivery,
            func.coalesce(Notification.event, DIGEST),
            Notification.key,
            Notification.facts["title"].astext,
        )
        .join(Notification, Notification.id == Delivery.notification_id, isouter=True)
        .where(Delivery.channel_id == channel_id)
        .order_by(Delivery.created_at.desc(), Delivery.id.desc())
        .limit(limit)
    )
    if before is not None:
        statement = statement.where(tuple_(Delivery.created_at, Delivery.id) < before)
    return [StoredDelivery(*row) for row in await session.execute(statement)]


async def newest_deliveries(
    session: AsyncSession, channel_ids: Collection[int], *, each: int
) -> Mapping[int, Sequence[StoredDelivery]]:
    """The newest messages of some channels, of each a few. Index: ix_delivery_channel_id, pk_notification."""
    return {
        channel_id: result
        for channel_id in channel_ids
        if (result := await list_deliveries(session, channel_id, limit=each))
    }


def _channels() -> Select[Any]:
    last = select(func.max(Delivery.sent_at)).where(Delivery.channel_id == Channel.id).scalar_subquery()
    waiting = (
        select(func.count())
        .where(Delivery.channel_id == Channel.id, text(f"delivery.{OPEN_DELIVERY}"))
        .scalar_subquery()
    )
    return select(Channel, Project.name, last, waiting).join(Project, Project.id == Channel.project_id)

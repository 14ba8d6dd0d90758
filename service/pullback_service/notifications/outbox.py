"""The outbox: notifications are written in the transaction that finds something, and sent later, at least once.

The deliveries of a channel are sent one after the other (`delivery.py`), in a transaction that locks the channel and ends when the
answer is noted: a worker that is killed before leaves the delivery waiting, and the next attempt has the same id.
"""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import orjson
from sqlalchemy import and_, func, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.deferred_chores import defer_deliveries
from pullback_service.ids import ProjectId
from pullback_service.models.notifications import Channel, Delivery, Notification
from pullback_service.models.projects import Project
from pullback_service.notifications.events import CHANNEL_OFF, TEST, USUAL, Facts, tidied
from pullback_service.notifications.message import Message, Notice
from pullback_service.notifications.transport import DeliveryResult

MESSAGES_AN_HOUR: Final = 5
"""The most messages of a channel in an hour. Further ones wait, and are sent in one digest when the hour is over."""
HOUR: Final = timedelta(hours=1)
FIRST_PAUSE: Final = timedelta(seconds=30)
LONGEST_PAUSE: Final = timedelta(hours=1)
GIVEN_UP_AFTER: Final = timedelta(days=1)
FEWEST_FAILURES: Final = 5
"""The fewest failures before a channel is disabled: a worker that was stopped for a day has tried once."""
MOST_IN_DIGEST: Final = 50
MOST_SWEPT_AT_ONCE: Final = 500

KEPT_DAYS: Final = 90
"""Days after which notifications are deleted that wait for no channel, with their deliveries."""
DELETED_AT_ONCE: Final = 1000

# Digests are deliveries of no notification; those that they took in go with them.
_DELETE_OLD: Final = """
  WITH old AS (
       SELECT id FROM notification
        WHERE created_at < now() - make_interval(days => %(days)s)
          AND NOT EXISTS (SELECT FROM delivery WHERE notification_id = notification.id AND state = 'waiting')
          AND NOT EXISTS (
            SELECT FROM delivery
              JOIN delivery digest ON digest.id = delivery.digest_id
             WHERE delivery.notification_id = notification.id AND digest.state = 'waiting')
        ORDER BY id LIMIT %(most)s),
       gone AS (DELETE FROM notification WHERE id IN (SELECT id FROM old))
SELECT count(*) FROM old
"""
_DELETE_OLD_DIGESTS: Final = """
DELETE FROM delivery digest
 WHERE notification_id IS NULL AND state <> 'waiting' AND created_at < now() - make_interval(days => %(days)s)
   AND NOT EXISTS (SELECT FROM delivery WHERE digest_id = digest.id)
"""
_WRITE: Final = """
  WITH made AS (
       INSERT INTO notification (project_id, event, key, facts)
       VALUES (%(project)s, %(event)s::text, %(key)s, %(facts)s::jsonb)
           ON CONFLICT (project_id, event, key) DO NOTHING
    RETURNING id),
       sent AS (
       INSERT INTO delivery (channel_id, notification_id)
       SELECT channel.id, made.id
         FROM made, channel
        WHERE channel.project_id = %(project)s AND channel.switched_off_at IS NULL
          AND (%(only)s::text[] IS NULL OR channel.name = ANY (%(only)s::text[]))
          AND (%(event)s::text = %(to_all)s
               OR %(event)s::text = ANY (coalesce(channel.events, %(usual)s::text[])))
    RETURNING channel_id)
SELECT made.id, sent.channel_id FROM made LEFT JOIN sent ON true
"""


async def enqueue(
    session: AsyncSession,
    project_id: ProjectId,
    event: str,
    key: str,
    facts: Facts,
    *,
    only: Collection[str] | None = None,
    usual: Collection[str] = USUAL,
) -> bool:
    """Tell the channels of a project that want it of an event, once this transaction is stored; false where it was told before.

    `only` names the channels that may have it, `usual` are the events of those that chose none. `key` says what the event is about. `facts` has `title`, `sentence` and `url` at least: see `events.Facts`.
    Index: uq_notification_project_id_event_key, uq_channel_project_id_name.
    """
    values = {
        "project": project_id,
        "event": event,
        "key": key,
        "facts": orjson.dumps(tidied(facts)).decode(),
        "to_all": CHANNEL_OFF,
        "usual": list(usual),
        "only": None if only is None else list(only),
    }
    await session.flush()
    rows = await statements.rows(session, _WRITE, values)
    for _, channel_id in rows:
        if channel_id is not None:
            await defer_deliveries(session, channel_id)
    return bool(rows)


async def sweep(session: AsyncSession) -> int:
    """Defer chores for channels that may have a message now and wait for none; how many. Index: ix_delivery_open."""
    due = and_(
        Delivery.state == "waiting",
        Channel.switched_off_at.is_(None),
        func.coalesce(func.greatest(Channel.retry_at, Channel.limited_until), func.now()) <= func.now(),
    )
    is_test = select(Notification.id).where(Notification.id == Delivery.notification_id, Notification.event == TEST)
    channels = await session.scalars(
        select(Channel.id)
        .join(Delivery, Delivery.channel_id == Channel.id)
        .where(due | ((Delivery.state == "waiting") & is_test.exists()))
        .distinct()
        .limit(MOST_SWEPT_AT_ONCE)
    )
    return sum([await defer_deliveries(session, channel_id) for channel_id in channels.all()])


async def delete_old(session: AsyncSession) -> bool:
    """Delete a batch of old notifications, and digests of which nothing is left; true if there may be more.

    Index: pk_notification, ix_delivery_notification_id, pk_delivery, ix_delivery_digest_id.
    """
    values = {"days": KEPT_DAYS, "most": DELETED_AT_ONCE}
    ((deleted,),) = await statements.rows(session, _DELETE_OLD, values)
    await statements.run(session, _DELETE_OLD_DIGESTS, values)
    return bool(deleted == DELETED_AT_ONCE)


async def gather_digest(session: AsyncSession, channel_id: int) -> None:
    """Put what came while a channel had had its messages of the hour into one digest, once it may have another.

    Stored before it is sent, so that it has one id and one content whatever happens then.
    Index: pk_channel, ix_delivery_open, ix_delivery_sent.
    """
    channel = await _locked(session, channel_id)
    if channel is None or channel.switched_off_at is not None:
        return
    now = await _now(session)
    sent = list(
        await session.scalars(
            select(Delivery.sent_at)
            .where(Delivery.channel_id == channel_id, Delivery.sent_at > now - HOUR, ~_is_test())
            .order_by(Delivery.sent_at.desc())
            .limit(MESSAGES_AN_HOUR)
        )
    )
    if len(sent) == MESSAGES_AN_HOUR:
        oldest = sent[-1]
        assert oldest is not None  # noqa: S101 - it was selected by its value
        channel.limited_until = oldest + HOUR
    elif channel.limited_until is not None:
        came_meanwhile = [
            *await session.scalars(
                select(Delivery.id).where(
                    Delivery.channel_id == channel_id,
                    Delivery.state == "waiting",
                    Delivery.attempts == 0,
                    Delivery.created_at < channel.limited_until,
                    Delivery.notification_id.is_not(None),
                    ~_is_test(),
                )
            )
        ]
        channel.limited_until = None
        if len(came_meanwhile) > 1:
            digest = Delivery(channel_id=channel_id)
            session.add(digest)
            await session.flush()
            await session.execute(
                update(Delivery)
                .where(Delivery.id.in_(came_meanwhile))
                .values(state="digested", digest_id=digest.id)
                .execution_options(synchronize_session=False)
            )


async def next_message(session: AsyncSession, channel_id: int) -> Message | None:
    """The next message of a channel, which others leave alone until this transaction ends; tests come first.

    Index: pk_channel, ix_delivery_open, ix_delivery_digest_id.
    """
    channel = await _locked(session, channel_id)
    if channel is None:
        return None
    now = await _now(session)
    waiting = (
        select(Delivery)
        .where(Delivery.channel_id == channel_id, Delivery.state == "waiting")
        .order_by(Delivery.attempts, Delivery.created_at, Delivery.notification_id)
        .limit(1)
    )
    row = await session.scalar(waiting.where(_is_test()))
    rests = any(until is not None and until > now for until in (channel.retry_at, channel.limited_until))
    if row is None and not rests and channel.switched_off_at is None:
        row = await session.scalar(waiting)
    return None if row is None else await _message(session, channel, row)


async def note_answer(session: AsyncSession, channel_id: int, message: Message, answer: DeliveryResult) -> None:
    """Keep what came of an attempt; a channel that has failed for a day is switched off, and the others are told.

    Index: pk_channel, pk_delivery.
    """
    channel = await session.get_one(Channel, channel_id)
    delivery = await session.get_one(Delivery, message.delivery_id)
    now = await session.scalar(select(func.clock_timestamp()))  # the transaction began before the attempt
    assert isinstance(now, datetime)  # noqa: S101 - Postgres' clock
    delivery.attempts += 1
    delivery.attempted_at, delivery.answer = now, answer.said
    if answer.is_delivered:
        delivery.state, delivery.sent_at = "sent", now
        channel.failures, channel.failing_since, channel.retry_at = 0, None, None
        channel.switched_off_at = channel.switched_off_because = None  # only a test is sent to one that is off
    elif message.event == TEST:
        delivery.state = "failed"  # who asked sees the answer, and asks again
    else:
        channel.failures += 1
        channel.failing_since = channel.failing_since or now
        channel.retry_at = now + min(FIRST_PAUSE * 2 ** min(channel.failures - 1, 10), LONGEST_PAUSE)
        if delivery.created_at <= now - GIVEN_UP_AFTER and delivery.attempts >= FEWEST_FAILURES:
            delivery.state = "failed"
        if channel.failing_since <= now - GIVEN_UP_AFTER and channel.failures >= FEWEST_FAILURES:
            await _switch_off(session, channel, message.project, now, answer.said)
    await session.flush()


async def _switch_off(session: AsyncSession, channel: Channel, project: str, now: datetime, message: str) -> None:
    channel.switched_off_at, channel.switched_off_because = now, message
    await session.flush()
    await session.execute(
        update(Delivery)
        .where(Delivery.channel_id == channel.id, Delivery.state == "waiting")
        .values(state="failed", answer=func.coalesce(Delivery.answer, "not sent: the channel was switched off"))
        .execution_options(synchronize_session=False)
    )
    facts = {
        "title": f"Channel {channel.name} was switched off",
        "sentence": f"Channel {channel.name} of project {project} has failed for a day ({message}) and was switched off: "
        "fix it, then switch it on with `pullback channel test`.",
        "url": None,
        "project": project,
        "channel": channel.name,
        "severity": "warning",
    }
    await enqueue(session, ProjectId(channel.project_id), CHANNEL_OFF, f"channel {channel.id} {now.isoformat()}", facts)


async def _locked(session: AsyncSession, channel_id: int) -> Channel | None:
    """The channel for this transaction alone; None where it is gone, or another transaction has it."""
    row: Channel | None = await session.scalar(
        select(Channel)
        .where(Channel.id == channel_id)
        .with_for_update(key_share=True, skip_locked=True)
        .execution_options(populate_existing=True)
    )
    return row


async def _now(session: AsyncSession) -> datetime:
    now = await session.scalar(select(func.now()))
    assert isinstance(now, datetime)  # noqa: S101 - Postgres' clock
    return now


def _is_test() -> Any:
    return (
        select(Notification.id)
        .where(Notification.id == Delivery.notification_id, Notification.event == TEST)
        .correlate(Delivery)
        .exists()
    )


async def _message(session: AsyncSession, channel: Channel, delivery: Delivery) -> Message:
    told, total = await _told(session, delivery)
    project = await session.scalar(select(Project.name).where(Project.id == channel.project_id))
    assert project is not None  # noqa: S101 - channels go with their project
    return Message(
        delivery.id,
        channel.name,
        channel.kind,
        channel.target,
        channel.secret,
        project,
        tuple(told),
        left_out=total - len(told),
        is_digest=delivery.notification_id is None,
    )


async def _told(session: AsyncSession, delivery: Delivery) -> tuple[Sequence[Notice], int]:
    columns = (Notification.event, Notification.key, Notification.facts, Notification.created_at)
    if delivery.notification_id is not None:
        row = (await session.execute(select(*columns).where(Notification.id == delivery.notification_id))).one()
        return [Notice(*row)], 1
    members = (
        select(*columns)
        .join(Delivery, Delivery.notification_id == Notification.id)
        .where(Delivery.digest_id == delivery.id)
    )
    total = await session.scalar(select(func.count()).select_from(members.subquery())) or 0
    rows = await session.execute(members.order_by(Notification.created_at, Notification.id).limit(MOST_IN_DIGEST))
    return [Notice(*row) for row in rows], total

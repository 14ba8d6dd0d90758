"""Delivery of the messages waiting for a channel, one after another: each is a transaction that ends when the answer is recorded."""

from typing import Final

from pullback_service.database import Database
from pullback_service.logs import logger
from pullback_service.notifications.outbox import gather_digest, next_message, note_answer
from pullback_service.notifications.transport import DeliverySettings, send

MOST_AT_ONCE: Final = 20
"""Messages, tests included; then other chores have their turn, and the sweep goes on with what is left."""


async def send_messages(database: Database, channel_id: int, outside: DeliverySettings) -> int:
    """Send what waits for a channel until nothing is left or an attempt fails; how many messages arrived."""
    for arrived in range(MOST_AT_ONCE):
        async with database.writing.begin() as session:
            await gather_digest(session, channel_id)
        async with database.writing.begin() as session:
            message = await next_message(session, channel_id)
            if message is None:
                return arrived
            answer = await send(message, outside)
            await note_answer(session, channel_id, message, answer)
        if not answer.is_delivered:
            logger.warning(
                "message_not_sent", channel=channel_id, delivery=str(message.delivery_id), reason=answer.said
            )
            return arrived
    return MOST_AT_ONCE

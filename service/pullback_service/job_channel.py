"""The channel on which waiting agents hear that a job was queued."""

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

CHANNEL = "pullback_jobs"


async def notify_waiting_agents(session: AsyncSession) -> None:
    """Notify waiting agents when this transaction is committed."""
    await session.execute(text("SELECT pg_notify(:channel, '')"), {"channel": CHANNEL})

"""Readings of any kind, for tests of what is made of them."""

from datetime import UTC, datetime
from uuid import UUID

from pullback_service.readings.pooling import MeasuredPoint, pool
from pullback_service.readings.reading import reading_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def reading(value, processes=None, *, quality="clean", **changes):
    """A reading of one report, with what else differs from a plain one."""
    pooled = pool([MeasuredPoint(value, processes)])
    made = reading_of(1, 1, NOW, UUID(int=1), 1, pooled)
    return made._replace(value=value, quality=quality, **changes)

"""Times as tools write them. One that cannot be parsed, or lies outside the calendar, counts as missing."""

from datetime import UTC, datetime

from pullback_service.fields import EARLIEST, LATEST

_LONGEST = 64


def iso_time(text: str) -> datetime | None:
    """`2026-01-31T12:00:00Z`, `2026-01-31 12:00:00.123`, and the like; without a zone it is taken as UTC."""
    if len(text) > _LONGEST:
        return None
    try:
        time = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return within_calendar(time)


def milliseconds_time(value: float) -> datetime | None:
    """Milliseconds since 1970."""
    try:
        return within_calendar(datetime.fromtimestamp(value / 1000, UTC))
    except (ValueError, OverflowError, OSError):
        return None


def within_calendar(time: datetime) -> datetime | None:
    """The time in UTC, where a commit or a run may have it."""
    zoned = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    try:
        moved = zoned.astimezone(UTC)
    except OverflowError:
        return None
    return moved if EARLIEST <= moved <= LATEST else None

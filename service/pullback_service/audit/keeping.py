"""Writing the audit log: one line per write, in the transaction of the write.

A write session ends with a line that says who asked for what; an endpoint adds what it was about, or that it changed
nothing. Reads, and what agents say every few seconds, leave no line.
"""

from dataclasses import dataclass, field
from typing import Any

import orjson
import structlog
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.access.caller import Caller

_NOTED = "audit"
_WRITE_LINE = """
INSERT INTO audit (actor, token_id, action, subject, project, address, request_id, details)
VALUES (%(actor)s, %(token_id)s, %(action)s, %(subject)s, %(project)s, %(address)s, %(request_id)s, %(details)s::jsonb)
"""


@dataclass(slots=True)
class _Noted:
    subject: str | None = None
    project: str | None = None
    details: dict[str, Any] = field(default_factory=dict)
    changed: bool = True


def note(session: AsyncSession, *, subject: str, project: str | None = None, **details: Any) -> None:
    """Say what a write is about."""
    session.info[_NOTED] = _Noted(subject, project, details)


def note_nothing(session: AsyncSession) -> None:
    """Say that a write found everything as it should be, a repeated upload for instance."""
    session.info[_NOTED] = _Noted(changed=False)


async def write_line(session: AsyncSession, caller: Caller, *, action: str, path: str, address: str | None) -> None:
    """Add the line of a request to its transaction."""
    noted = session.info.get(_NOTED) or _Noted()
    if not noted.changed:
        return
    await statements.run(
        session,
        _WRITE_LINE,
        {
            "actor": caller.name,
            "token_id": caller.token_id,
            "action": action,
            "subject": noted.subject or path,
            "project": noted.project,
            "address": address,
            "request_id": structlog.contextvars.get_contextvars().get("request_id"),
            "details": orjson.dumps(noted.details).decode(),
        },
    )


def was_noted(session: AsyncSession) -> bool:
    """Whether a write has been noted."""
    return _NOTED in session.info

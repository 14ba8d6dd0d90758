"""Writing the audit log: one line per write, in the transaction of the write.

A write session ends with a line that says who asked for what; an endpoint adds what it was about, or that it changed
nothing. Reads, and what agents say every few seconds, leave no line.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.caller import Caller
from pullback_service.logs import request_id

_NOTED = "audit"
_WRITE_LINES = """
INSERT INTO audit (actor, token_id, action, subject, project, address, request_id, details)
SELECT actor, token_id, action, subject, project, address, request_id, details::jsonb
  FROM unnest(%(actors)s::text[], %(token_ids)s::bigint[], %(actions)s::text[], %(subjects)s::text[], %(projects)s::text[],
              %(addresses)s::text[], %(request_ids)s::text[], %(details)s::text[])
       AS given (actor, token_id, action, subject, project, address, request_id, details)
"""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the audit log: the caller, the request, and its object."""

    caller: Caller
    action: str
    subject: str
    project: str | None
    address: str | None
    details: Mapping[str, Any]
    request_id: str | None = field(default_factory=request_id)


@dataclass(slots=True)
class _Note:
    subject: str | None = None
    project: str | None = None
    details: dict[str, Any] = field(default_factory=dict)
    changed: bool = True


def note(
    session: AsyncSession, *, subject: str, project: str | None = None, changed: bool = True, **details: Any
) -> None:
    """Say what a write is about; one that has `changed` nothing, such as a repeated request, leaves no line."""
    session.info[_NOTED] = _Note(subject, project, details, changed)


def note_nothing(session: AsyncSession) -> None:
    """Say that a write found everything as it should be, a repeated upload for instance."""
    session.info[_NOTED] = _Note(changed=False)


async def write_line(session: AsyncSession, caller: Caller, *, action: str, path: str, address: str | None) -> None:
    """Add the line of a request to its transaction."""
    noted = session.info.get(_NOTED) or _Note()
    if noted.changed:
        subject = noted.subject or path
        await write_lines(session, [Line(caller, action, subject, noted.project, address, noted.details)])


async def write_lines(session: AsyncSession, lines: Sequence[Line]) -> None:
    """Add the lines of several requests to the transaction in which all of them are served."""
    await statements.run(
        session,
        _WRITE_LINES,
        {
            "actors": [line.caller.name for line in lines],
            "token_ids": [line.caller.token_id for line in lines],
            "actions": [line.action for line in lines],
            "subjects": [line.subject for line in lines],
            "projects": [line.project for line in lines],
            "addresses": [line.address for line in lines],
            "request_ids": [line.request_id for line in lines],
            "details": [orjson.dumps(line.details).decode() for line in lines],
        },
    )


def was_noted(session: AsyncSession) -> bool:
    """True if a write has been noted."""
    return _NOTED in session.info

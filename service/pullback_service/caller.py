"""The caller of a request, and its permissions."""

from dataclasses import dataclass, field
from typing import Literal, get_args

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.database import Database, Visible
from pullback_service.ids import AgentId, ProjectId, TokenId
from pullback_service.roles import ALL_PROJECTS

Scope = Literal["read", "upload", "agent", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody with rights. `projects` is None for all of them, else those whose rows exist for this caller."""

    name: str
    """The name in errors and in the audit log."""
    scopes: frozenset[Scope]
    projects: frozenset[ProjectId] | None = None
    token_id: TokenId | None = None
    agent_id: AgentId | None = None
    """The one agent this caller may speak for, where its token is an agent's."""
    anonymous: bool = False
    may_make_projects: bool = field(default=False)

    def has(self, scope: Scope) -> bool:
        """True if this caller has a scope; `admin` includes the others."""
        return scope in self.scopes or "admin" in self.scopes

    @property
    def visible(self) -> Visible:
        """The projects whose rows exist for this caller."""
        return ALL_PROJECTS if self.projects is None else self.projects


EVERYTHING = frozenset(SCOPES)
LOCAL = Caller("local", EVERYTHING, may_make_projects=True)
BOOTSTRAP = Caller("bootstrap token", EVERYTHING, may_make_projects=True)
COMMAND_LINE = Caller("command line", EVERYTHING, may_make_projects=True)
NOBODY = Caller("nobody", frozenset(), frozenset())
"""An anonymous caller of public data."""


def anonymous(projects: frozenset[ProjectId]) -> Caller:
    """Anybody at all, who may read the projects that are public."""
    return Caller("anybody", frozenset({"read"}), projects, anonymous=True)


def database_of(database: Database, caller: Caller) -> Database:
    """A database as a caller sees it: its sessions belong to the caller."""
    return database.seeing(caller.visible, caller=caller)


def caller_of(session: AsyncSession) -> Caller | None:
    """Whose session this is; None for chores."""
    result = session.info.get("caller")
    assert result is None or isinstance(result, Caller)  # noqa: S101 - `database_of` alone writes it
    return result


def name_of_caller(session: AsyncSession) -> str | None:
    """Whose session this is, as the audit log names callers; None for chores."""
    caller = caller_of(session)
    return None if caller is None else caller.name

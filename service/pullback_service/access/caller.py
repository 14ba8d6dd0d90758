"""Who makes a request, and what that allows."""

from dataclasses import dataclass, field
from typing import Literal, get_args

from pullback_service.ids import AgentId, ProjectId, TokenId

Scope = Literal["read", "upload", "agent", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody with rights. `projects` is None for all of them, else those whose rows exist for this caller."""

    name: str
    """As errors and the audit log say it."""
    scopes: frozenset[Scope]
    projects: frozenset[ProjectId] | None = None
    token_id: TokenId | None = None
    agent_id: AgentId | None = None
    """The one agent this caller may speak for, where its token is an agent's."""
    anonymous: bool = False
    may_make_projects: bool = field(default=False)

    def has(self, scope: Scope) -> bool:
        """Whether this caller may do what needs a scope; `admin` includes the others."""
        return scope in self.scopes or "admin" in self.scopes


EVERYTHING = frozenset(SCOPES)
LOCAL = Caller("local", EVERYTHING, may_make_projects=True)
BOOTSTRAP = Caller("bootstrap token", EVERYTHING, may_make_projects=True)
COMMAND_LINE = Caller("command line", EVERYTHING, may_make_projects=True)


def anonymous(projects: frozenset[ProjectId]) -> Caller:
    """Anybody at all, who may read the projects that are public."""
    return Caller("anybody", frozenset({"read"}), projects, anonymous=True)

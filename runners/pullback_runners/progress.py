"""What a run tells whoever watches it: a terminal, or an agent that passes it on with its heartbeat."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """How far a run is, in steps of about equal cost (an examination or a group is one step)."""

    phase: str
    """`preflight`, `examine`, `measure` or `finished` (of one case)."""
    done: int
    total: int
    """May grow: an ambiguous case of the standard suite asks for more groups."""
    message: str
    """One line for people: the case and what is done with it."""
    case: str | None = None

"""A member of a group: one way of executing a case, by one engine, in a process of its own."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Member:
    """What a worker holds. Two members of one group may be the same program: such twins show what noise there is."""

    variant: str
    engine: Path | None = None
    """Folder that holds the package `pullback`, or None for the installed one."""
    objects: Path | None = None
    """Folder for the object code of its programs, or None for the user's cache."""
    role: str | None = None
    """What tells it from the other members; the variant's name where none is given."""

    @property
    def name(self) -> str:
        """What it is called in results."""
        return self.role or self.variant

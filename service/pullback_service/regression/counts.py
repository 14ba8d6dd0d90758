"""Changes of a count: any difference is one, at its commit; a count that goes back and forth is one change."""

from dataclasses import dataclass, field, replace
from math import inf, log
from typing import Final

from pullback_service.regression.changes import Change

FORGOTTEN: Final = 50
"""Observations without a difference after which a count that went back and forth is steady again."""


@dataclass
class CountWatcher:
    """A count that is looked at after every observation."""

    count: int = 0
    value: float | None = None
    changed: int = 0
    """The last observation at which the value differed."""
    seen: list[float] = field(default_factory=list)
    """The values of the present event: the one before it first."""
    changes: list[Change] = field(default_factory=list)

    @property
    def resolution(self) -> float:
        """Any difference is seen at once."""
        return 0.0

    def observe(self, value: float, *, new_commit: bool) -> list[Change]:
        """Take the next observation; the changes that it shows for the first time."""
        place, before = self.count, self.value
        self.count, self.value = place + 1, value
        if before is None or value == before:
            return []
        change = self.changes[-1] if self.changes else None
        if change is not None and change.kind != "step" and place - self.changed > FORGOTTEN:
            change = None
        self.changed = place
        if change is not None and value in self.seen:
            if change.kind == "step" and new_commit:
                self.changes.append(replace(_step(place, value, before), kind="return", since=change.first))
                return self.changes[-1:]
            if change.kind == "return":
                del self.changes[-1]
            self.changes[-1] = replace(self.changes[-1], last=place, kind="unsteady")
            return []
        if change is not None and change.kind == "unsteady" and not new_commit:
            self.seen.append(value)
            self.changes[-1] = replace(change, last=place)
            return []
        self.seen = [before, value]
        self.changes.append(replace(_step(place, value, before), kind="step" if new_commit else "unsteady"))
        return self.changes[-1:]


def _step(place: int, value: float, before: float) -> Change:
    size = _log_ratio(value, before)
    return Change(place, place, size, size, size, "step", 1.0)


def _log_ratio(new: float, old: float) -> float:
    if new > 0 and old > 0:
        return log(new / old)
    return inf if new > old else -inf

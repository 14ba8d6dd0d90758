"""The recordings of a function for one signature: their causes, and the numbers found to vary."""

from collections import Counter
from collections.abc import Sequence
from types import CodeType  # noqa: TC003 - imports are plain everywhere
from typing import Any

from pullback.compiling.captured_references import Place, PlaceKey, key_of
from pullback.compiling.environment import NUMBERS

#: Recordings in succession that served one call each; after so many the function stays on the tape, which costs less.
RECORDINGS_IN_VAIN = 8

#: Recordings because of one cause after which the user is told.
RECORDINGS_UNTOLD = 3


class History:
    """The history of one signature, whatever is around the function."""

    def __init__(self) -> None:
        self.causes: Counter[str] = Counter({"the first call": 1})
        self.latest = "the first call"
        self.looked_into: frozenset[CodeType] = frozenset()
        self.constant: set[PlaceKey] = set()
        """Numbers that the function has to know while it is recorded."""
        self.changed_by_itself = 0
        self._changed: set[PlaceKey] = set()
        self._in_vain = 0

    @property
    def varying(self) -> frozenset[PlaceKey]:
        """The places of the numbers that become inputs, because they have changed before."""
        return frozenset(self._changed - self.constant)

    @property
    def recordings(self) -> int:
        """The number of times that the function was recorded."""
        return self.causes.total()

    @property
    def is_in_vain(self) -> bool:
        """True if recording does not pay."""
        return self._in_vain >= RECORDINGS_IN_VAIN

    @property
    def is_due(self) -> bool:
        """True if the latest cause is one to tell."""
        return self.latest != "the first call" and self.causes[self.latest] == RECORDINGS_UNTOLD

    def note(self, changes: Sequence[tuple[str, Place, Any]], *, in_vain: bool) -> None:
        """Note a change of the environment; `in_vain`: the recording before it has served one call only."""
        self._in_vain = self._in_vain + 1 if in_vain else 0
        numbers = {key_of(place) for _, place, before in changes if _is_number(place(), before)}
        self.latest = changes[0][0] if changes else "what the function itself changed"
        self.causes[self.latest] += 1
        self._changed |= numbers


def _is_number(now: Any, before: Any) -> bool:
    return type(now) is type(before) and type(now) in NUMBERS

"""The state of an incident: what its changes, its job and a person say together. Pure."""

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from pullback_service.incidents.changes import Change

State: TypeAlias = Literal[
    "suspected", "confirming", "confirmed", "refuted", "unconfirmed", "likely", "resolved", "merged"
]
VerdictWord: TypeAlias = Literal["real", "noise", "expected", "fixed"]

_DECIDES: Mapping[VerdictWord, State] = {"expected": "resolved", "fixed": "resolved", "noise": "refuted"}
MOST_ASKED = 2
"""Times that a suspicion is measured again."""
TOLD: frozenset[State] = frozenset({"confirmed", "likely"})
"""States in which people are told of an incident."""


def state_of(
    changes: Sequence[Change],
    *,
    was: State | None = None,
    verdict: VerdictWord | None = None,
    is_measured_again: bool = False,
    may_be_measured: bool = False,
) -> State:
    """The state of an incident.

    `is_measured_again`: a job waits or runs. `may_be_measured`: an agent could, and was not asked as often as it may be.
    """
    if verdict is not None and verdict in _DECIDES:
        return _DECIDES[verdict]
    if claimed := [change for change in changes if change.standing == "claimed"]:
        return "resolved" if all(change.ended_id is not None for change in claimed) else "confirmed"
    standing = [change for change in changes if change.standing != "refuted"]
    if not standing:
        return "refuted"
    if all(change.ended_id is not None for change in standing):
        return "resolved" if was in {"likely", "resolved"} else "unconfirmed"
    if is_measured_again:
        return "confirming"
    return "suspected" if may_be_measured else _unmeasured(standing)


def _unmeasured(standing: Sequence[Change]) -> State:
    """The state of suspicions that nobody will measure, or measure any more."""
    if any(change.standing == "ambiguous" for change in standing):
        return "unconfirmed"
    return "likely" if any(change.standing == "borne_out" for change in standing) else "suspected"

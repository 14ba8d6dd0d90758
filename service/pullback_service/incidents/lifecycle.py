"""The state of an incident, from its changes, its job and a verdict. Pure."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from typing import Literal, NamedTuple, TypeAlias

from pullback_service.incidents.changes import Change, Evidence

State: TypeAlias = Literal[
    "suspected", "confirming", "confirmed", "refuted", "unconfirmed", "likely", "resolved", "merged"
]
VerdictWord: TypeAlias = Literal["real", "noise", "expected", "fixed"]

_DECIDES: Mapping[VerdictWord, State] = {"expected": "resolved", "fixed": "resolved", "noise": "refuted"}
AFTER_NOISE = 2.0
"""The factor by which a later suspicion of a series must exceed one that a person called noise."""
GROWN = 2.0
"""The factor of its size at which an announced incident is announced again, as a reply."""
MOST_ASKED = 2
"""The number of times that a suspicion is measured again."""
IN_TURNS: frozenset[Evidence] = frozenset({"paired", "anchor"})
"""The evidence of changes that both commits in the same groups show."""


class Control(NamedTuple):
    """An unaffected case that a job measured along with the others, and the two compared commits.

    `slower` is by how much that job found it slower (natural log), zero if it did not.
    """

    case_id: int
    reference_id: int
    commit_id: int
    slower: float = 0.0


def is_caused_by_machine(changes: Sequence[Change], controls: Iterable[Control]) -> bool:
    """True if, wherever a change is claimed, an unaffected case of the same comparison moved by half as much or more: the machine changed."""
    return _moved_too(changes, controls, lambda control, claimed: claimed.get(control.case_id, 0.0))


def is_left_open(changes: Sequence[Change], controls: Iterable[Control]) -> bool:
    """True if, wherever a change is claimed, one job found an unaffected case slower by half as much or more, whatever another job found."""
    return _moved_too(
        changes, controls, lambda control, claimed: max(claimed.get(control.case_id, 0.0), control.slower)
    )


def _moved_too(
    changes: Sequence[Change],
    controls: Iterable[Control],
    moved_by: Callable[[Control, Mapping[int, float]], float],
) -> bool:
    claimed = [change for change in changes if change.standing == "claimed"]
    sizes: dict[tuple[int, int], dict[int, float]] = defaultdict(dict)
    for change in claimed:
        if change.evidence in IN_TURNS:
            of_cases = sizes[change.reference_id, change.commit_id]
            of_cases[change.case_id] = max(abs(change.log_ratio or 0.0), of_cases.get(change.case_id, 0.0))
    moved = set()
    for control in controls:
        ends = control.reference_id, control.commit_id
        by = moved_by(control, sizes[ends])
        if by > 0 and 2 * by >= max(sizes[ends].values(), default=inf):
            moved.add(ends)
    return bool(moved) and all(
        change.evidence in IN_TURNS and (change.reference_id, change.commit_id) in moved for change in claimed
    )


def state_of(  # noqa: PLR0911 - a rule a line
    changes: Sequence[Change],
    *,
    was: State | None = None,
    verdict: VerdictWord | None = None,
    is_measured_again: bool = False,
    may_be_measured: bool = False,
    was_measured: bool = False,
    controls: Iterable[Control] = (),
    ran_out_of_time: bool = False,
    may_be_machine: bool = False,
) -> State:
    """The state of an incident.

    `is_measured_again`: a job waits or runs. `may_be_measured`: an agent could, and was not asked as often as it may be. `was_measured`: one
    answered, so that nothing of it is called likely. `controls` are the unaffected cases of its jobs. `ran_out_of_time`: a day ended on which the machine had no time to
    measure it; once no agent could, later commits decide. `may_be_machine`: values alone cannot tell the machine from a commit, so nothing of it is called likely.
    """
    if verdict is not None and verdict in _DECIDES:
        return _DECIDES[verdict]
    if is_caused_by_machine(changes, controls):
        return "refuted"
    if is_left_open(changes, controls):
        changes = [_opened(change) for change in changes]
    if claimed := [change for change in changes if change.standing == "claimed"]:
        return "resolved" if all(change.ended_id is not None for change in claimed) else "confirmed"
    unrefuted = [change for change in changes if change.standing != "refuted"]
    if not unrefuted:
        return "refuted"
    if all(change.ended_id is not None for change in unrefuted):
        return "resolved" if was in {"confirmed", "likely", "resolved"} else "unconfirmed"
    if is_measured_again:
        return "confirming"
    if may_be_measured:
        return "unconfirmed" if ran_out_of_time else "suspected"
    state = _unmeasured(unrefuted)
    if was_measured or (state == "likely" and may_be_machine) or (state == "suspected" and ran_out_of_time):
        return "unconfirmed"
    return state


def _opened(change: Change) -> Change:
    return change._replace(standing="ambiguous") if change.standing == "claimed" else change


def _unmeasured(unrefuted: Sequence[Change]) -> State:
    """The state of suspicions that are not measured again."""
    if any(change.standing == "ambiguous" for change in unrefuted):
        return "unconfirmed"
    return "likely" if any(change.standing == "borne_out" for change in unrefuted) else "suspected"

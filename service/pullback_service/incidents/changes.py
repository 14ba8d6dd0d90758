"""Changes as plain values. Pure."""

from collections.abc import Iterable, Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

ChangeKind: TypeAlias = Literal["step", "unsteady", "wrong_gradient", "failed", "missing"]
Evidence: TypeAlias = Literal["exact", "paired", "levels", "failure", "budget", "absence", "anchor"]
Standing: TypeAlias = Literal["claimed", "suspected", "borne_out", "ambiguous", "refuted"]
IncidentKind: TypeAlias = Literal["worse", "better", "unsteady", "wrong_gradient", "failed", "missing"]

_SUPPORTING: Final[frozenset[Standing]] = frozenset({"claimed", "suspected", "borne_out"})

Places: TypeAlias = Mapping[int, int]
"""The positions of commits among the first parents of the trunk."""


class Change(NamedTuple):
    """A change of a series, a case or a variant, after `reference_id` and up to `commit_id`. The fields are those of the table.

    Sizes are natural logs, candidate/reference; `before` and `after` are in the unit of the series.
    """

    case_id: int
    machine_id: int
    series_id: int | None
    variant: str | None
    kind: ChangeKind
    worse: bool | None
    evidence: Evidence
    standing: Standing
    reference_id: int
    commit_id: int
    ended_id: int | None = None
    log_ratio: float | None = None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    before: float | None = None
    after: float | None = None
    message: str | None = None
    detector: str | None = None

    @property
    def pair(self) -> tuple[int, int]:
        """Its case and machine."""
        return self.case_id, self.machine_id

    def meets(self, other: "Change", places: Places) -> bool:
        """True if one commit can have caused both."""
        return (
            places[self.reference_id] < places[other.commit_id] and places[other.reference_id] < places[self.commit_id]
        )

    @property
    def incident_kind(self) -> IncidentKind:
        """The kind of incident that it belongs to."""
        if self.kind == "step":
            return "worse" if self.worse else "better"
        return self.kind


def supporting(changes: Iterable[Change]) -> list[Change]:
    """The changes that support the state of an incident: if any is claimed, not those whose measurement gave no answer."""
    every = list(changes)
    if any(change.standing == "claimed" for change in every):
        return [change for change in every if change.standing in _SUPPORTING]
    return [change for change in every if change.standing != "refuted"] or every

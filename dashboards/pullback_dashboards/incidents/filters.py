"""The query parameters that filter incidents, the same for the list, the feed and the badge of a project."""

from dataclasses import dataclass, fields
from typing import Any

from pullback_service.incidents.queries import IncidentChoice
from pullback_service.incidents.schemas import IncidentKind

SURE = ("confirmed", "likely")
"""States of open incidents that are more than a suspicion."""


@dataclass(frozen=True)
class IncidentFilters:
    """The incidents that changed a workload, a case, a variant, were seen on a machine, and are of a kind; None is any."""

    workload: str | None = None
    case: str | None = None
    variant: str | None = None
    machine: str | None = None
    kind: IncidentKind | None = None

    @property
    def narrowed(self) -> dict[str, Any]:
        """These by name as an address has them, None where it says nothing."""
        return {field.name: getattr(self, field.name) for field in fields(IncidentFilters)}

    @property
    def subject(self) -> str:
        """The workload or case, the variant and the machine in a few words; empty where nothing is narrowed."""
        place = f"on {self.machine}" if self.machine else None
        return " ".join(filter(None, (self.case or self.workload, self.variant, place)))

    def told(self, project: str) -> IncidentChoice:
        """The incidents that people were told of; of improvements, those that are as sure."""
        is_better = self.kind == "better"  # which is told to nobody
        return IncidentChoice(project, (*SURE, "resolved") if is_better else (), told=not is_better, **self.narrowed)

    def open(self, project: str) -> IncidentChoice:
        """The incidents that are open, and more than suspicions."""
        return IncidentChoice(project, SURE, **self.narrowed)

"""Compared series as a table to export."""

from dataclasses import dataclass

from pullback_service.comparisons.schemas import ComparedSeries
from pullback_service.exports.tables import Table, columns_at
from pullback_service.models.machines import Machine
from pullback_service.series.tables import ratio_columns


@dataclass(frozen=True, slots=True)
class ExportedComparison:
    """A compared series with the commits it is of, and the machine of the reference where that is another one."""

    project: str
    reference: str
    candidate: str
    other_machine: Machine | None
    row: ComparedSeries

    @property
    def reference_machine(self) -> str:
        """The name of the machine of the reference."""
        return self.other_machine.name if self.other_machine else self.row.machine

    @property
    def reference_machine_fingerprint(self) -> str:
        """The class of that machine."""
        return self.other_machine.fingerprint if self.other_machine else self.row.machine_fingerprint


COMPARISONS: Table[ExportedComparison] = Table(
    "comparison",
    [
        *columns_at("", "project", "reference", "candidate"),
        *columns_at("row.case.", "workload", "case=label", "params", "dtype", "device"),
        *columns_at(
            "row.",
            "variant", "variant_kind", "metric", "unit", "direction", "machine", "machine_fingerprint", "series_id:integer", "outcome",
            "evidence", "kind",
        ),
        *ratio_columns("row."),
        *columns_at("row.", "threshold:number", "significance:number", "provisional:flag", "reason", "same_program:flag"),
        *columns_at("row.", "reference_value:number=reference.value", "candidate_value:number=candidate.value"),
        *columns_at("", "reference_machine", "reference_machine_fingerprint", "equal_code:flag=row.equal_code"),
    ],
)  # fmt: skip

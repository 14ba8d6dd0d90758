"""Compared series as a table to export."""

from dataclasses import dataclass

from pullback_service.comparisons.schemas import ComparedSeries
from pullback_service.exports.tables import Column, Table, written
from pullback_service.models.machines import Machine
from pullback_service.ratio import Ratio
from pullback_service.series.tables import ratio_columns


@dataclass(frozen=True, slots=True)
class ExportedComparison:
    """A compared series with the commits it is of, and the machine of the reference where that is another one."""

    project: str
    reference: str
    candidate: str
    reference_machine: Machine | None
    row: ComparedSeries


def _ratio(each: ExportedComparison) -> Ratio:
    return each.row.ratio


COMPARISONS: Table[ExportedComparison] = Table(
    "comparison",
    [
        Column("project", "text", lambda each: each.project),
        Column("reference", "text", lambda each: each.reference),
        Column("candidate", "text", lambda each: each.candidate),
        Column("workload", "text", lambda each: each.row.case.workload),
        Column("case", "text", lambda each: each.row.case.label),
        Column("params", "text", lambda each: written(each.row.case.params)),
        Column("dtype", "text", lambda each: each.row.case.dtype),
        Column("device", "text", lambda each: each.row.case.device),
        Column("variant", "text", lambda each: each.row.variant),
        Column("variant_kind", "text", lambda each: each.row.variant_kind),
        Column("metric", "text", lambda each: each.row.metric),
        Column("unit", "text", lambda each: each.row.unit),
        Column("direction", "text", lambda each: each.row.direction),
        Column("machine", "text", lambda each: each.row.machine),
        Column("machine_fingerprint", "text", lambda each: each.row.machine_fingerprint),
        Column("series_id", "integer", lambda each: each.row.series_id),
        Column("outcome", "text", lambda each: each.row.outcome),
        Column("evidence", "text", lambda each: each.row.evidence),
        Column("kind", "text", lambda each: each.row.kind),
        *ratio_columns(_ratio),
        Column("threshold", "number", lambda each: each.row.threshold),
        Column("significance", "number", lambda each: each.row.significance),
        Column("provisional", "flag", lambda each: each.row.provisional),
        Column("reason", "text", lambda each: each.row.reason),
        Column("same_program", "flag", lambda each: each.row.same_program),
        Column("reference_value", "number", lambda each: each.row.reference.value if each.row.reference else None),
        Column("candidate_value", "number", lambda each: each.row.candidate.value if each.row.candidate else None),
        Column(
            "reference_machine",
            "text",
            lambda each: each.reference_machine.name if each.reference_machine else each.row.machine,
        ),
        Column(
            "reference_machine_fingerprint",
            "text",
            lambda each: each.reference_machine.fingerprint if each.reference_machine else each.row.machine_fingerprint,
        ),
        Column("equal_code", "flag", lambda each: each.row.equal_code),
    ],
)

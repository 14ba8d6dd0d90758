"""The newest state of a project as a table to export: a row a cell."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pullback_service.exports.tables import Column, Table, written
from pullback_service.matrix.queries import MatrixRow, MatrixWorkload
from pullback_service.ratio import NO_RATIO, Ratio
from pullback_service.series.queries import MeasuredCell
from pullback_service.series.tables import ratio_columns


@dataclass(frozen=True, slots=True)
class ExportedCell:
    """A cell, or None for a case that has failures alone."""

    project: str
    row: MatrixRow
    cell: MeasuredCell | None

    @property
    def failure(self) -> str | None:
        """Why the cell's variant gave nothing since, if it did."""
        variant = None if self.cell is None else self.cell.variant
        fitting = (
            failed.message for failed in self.row.failures if variant is None or failed.variant in {None, variant}
        )
        return next(fitting, None)


def exported_cells(project: str, workloads: Sequence[MatrixWorkload]) -> Iterator[ExportedCell]:
    """Rows of some workloads."""
    for workload in workloads:
        for row in workload.rows:
            for cell in row.cells or (None,):
                yield ExportedCell(project, row, cell)


def _ratio(each: ExportedCell) -> Ratio:
    return each.cell.reading.ratio if each.cell else NO_RATIO


MATRIX: Table[ExportedCell] = Table(
    "matrix",
    [
        Column("project", "text", lambda each: each.project),
        Column("workload", "text", lambda each: each.row.case.workload),
        Column("case", "text", lambda each: each.row.case.label),
        Column("params", "text", lambda each: written(each.row.case.params)),
        Column("dtype", "text", lambda each: each.row.case.dtype),
        Column("device", "text", lambda each: each.row.case.device),
        Column("machine", "text", lambda each: each.row.machine.name),
        Column("machine_fingerprint", "text", lambda each: each.row.machine.fingerprint),
        Column("commit", "text", lambda each: each.row.commit.sha if each.row.commit else None),
        Column("ordered_at", "time", lambda each: each.row.commit.ordered_at if each.row.commit else None),
        Column("variant", "text", lambda each: each.cell.variant if each.cell else None),
        Column("kind", "text", lambda each: each.cell.variant_kind if each.cell else None),
        Column("metric", "text", lambda each: each.cell.metric if each.cell else None),
        Column("value", "number", lambda each: each.cell.reading.value if each.cell else None),
        Column("unit", "text", lambda each: each.cell.unit if each.cell else None),
        Column("direction", "text", lambda each: each.cell.direction if each.cell else None),
        Column("baseline", "text", lambda each: each.cell.reading.baseline if each.cell else None),
        *ratio_columns(_ratio),
        Column("outcome", "text", lambda each: each.cell.reading.outcome if each.cell else None),
        Column("quality", "text", lambda each: each.cell.reading.quality if each.cell else None),
        Column("dirty", "flag", lambda each: each.cell.reading.dirty if each.cell else None),
        Column("failure", "text", lambda each: each.failure),
        Column("series_id", "integer", lambda each: each.cell.reading.series_id if each.cell else None),
    ],
)

"""The newest state of a project as a table to export: a row a cell."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pullback_service.exports.tables import Table, columns_at
from pullback_service.matrix.queries import MatrixRow, MatrixWorkload
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
        """The later failure of the cell's variant, if there is one."""
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


MATRIX: Table[ExportedCell] = Table(
    "matrix",
    [
        *columns_at("", "project"),
        *columns_at("row.case.", "workload", "case=label", "params", "dtype", "device"),
        *columns_at("row.", "machine=machine.name", "machine_fingerprint=machine.fingerprint"),
        *columns_at("row.commit.", "commit=sha", "ordered_at:time"),
        *columns_at(
            "cell.", "variant", "kind=variant_kind", "metric", "value:number=reading.value", "unit", "direction"
        ),
        *columns_at("cell.reading.", "baseline"),
        *ratio_columns("cell.reading.ratio."),
        *columns_at("cell.reading.", "outcome", "quality", "dirty:flag"),
        *columns_at("", "failure", "series_id:integer=cell.reading.series_id"),
    ],
)

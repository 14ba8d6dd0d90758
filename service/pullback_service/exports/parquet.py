"""Parquet, written by Arrow's own library, which is an optional extra of 165 MB.

Nothing smaller is kept as well: fastparquet brings pandas, and the writers in pure Python are no longer maintained.
"""

from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

from pullback_service.errors import NotAcceptableError
from pullback_service.exports.tables import ColumnKind, Table

ROWS_OF_A_GROUP = 10_000
"""Rows are compressed and sent in groups of this many: what of a file is in memory at once."""


class _Pieces:
    """A file that is only written, and taken away in pieces as it grows. It ends with places in all of it: they count on."""

    closed = False

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0

    def write(self, piece: bytes) -> int:
        self._pieces.append(bytes(piece))
        self._size += len(piece)
        return len(piece)

    def tell(self) -> int:
        return self._size

    def flush(self) -> None:
        """There is nothing behind."""

    def take(self) -> bytes:
        taken = b"".join(self._pieces)
        self._pieces.clear()
        return taken


class Parquet:
    """A table as a Parquet file; text that would be a formula in a spreadsheet is left as it is."""

    def __init__(self, table: Table[Any]) -> None:
        self._arrow = _arrow()
        self._table = table
        self._types = [_type(self._arrow, column.kind) for column in table.columns]
        self._schema = self._arrow.schema(
            list(zip((column.name for column in table.columns), self._types, strict=True))
        )
        self._file = _Pieces()
        self._writer = import_module("pyarrow.parquet").ParquetWriter(self._file, self._schema, compression="zstd")
        self._waiting: list[list[object]] = []

    def begin(self) -> bytes:
        """The file's mark."""
        return self._file.take()

    def rows(self, rows: Sequence[Any]) -> bytes:
        """Some rows: they are sent when a group is full."""
        self._waiting.extend(self._table.cells(row) for row in rows)
        while len(self._waiting) >= ROWS_OF_A_GROUP:
            self._write(self._waiting[:ROWS_OF_A_GROUP])
            del self._waiting[:ROWS_OF_A_GROUP]
        return self._file.take()

    def end(self) -> bytes:
        """The rest, and the index at the end, without which a cut file is not taken for a whole one."""
        if self._waiting:
            self._write(self._waiting)
        self._writer.close()
        return self._file.take()

    def _write(self, rows: Sequence[Sequence[object]]) -> None:
        columns = [
            self._arrow.array(cells, type=type_)
            for cells, type_ in zip(zip(*rows, strict=True), self._types, strict=True)
        ]
        self._writer.write_table(self._arrow.Table.from_arrays(columns, schema=self._schema), len(rows))


def _type(arrow: ModuleType, kind: ColumnKind) -> Any:
    match kind:
        case "text":
            return arrow.string()
        case "number":
            return arrow.float64()
        case "integer":
            return arrow.int64()
        case "flag":
            return arrow.bool_()
        case "time":
            return arrow.timestamp("us", tz="UTC")
        case "numbers":
            return arrow.list_(arrow.float64())


def _arrow() -> ModuleType:
    try:
        return import_module("pyarrow")
    except ImportError as error:
        raise NotAcceptableError(
            "This service cannot write Parquet: pip install 'pullback[parquet]' on its machine, or use format=csv or "
            "format=json."
        ) from error

"""JSON lines: one object a row."""

from collections.abc import Sequence
from typing import Any

import orjson

from pullback_service.exports.tables import Table


class JsonLines:
    """A table as JSON lines."""

    def __init__(self, table: Table[Any]) -> None:
        self._table = table
        self._names = [column.name for column in table.columns]

    def begin(self) -> bytes:
        """Nothing comes before the rows."""
        return b""

    def rows(self, rows: Sequence[Any]) -> bytes:
        """Some rows."""
        return b"".join(
            orjson.dumps(dict(zip(self._names, self._table.cells(row), strict=True)), option=orjson.OPT_APPEND_NEWLINE)
            for row in rows
        )

    def end(self) -> bytes:
        """Nothing follows the rows."""
        return b""

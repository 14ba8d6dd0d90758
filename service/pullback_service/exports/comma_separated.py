"""CSV (RFC 4180) that no spreadsheet runs as a program."""

import csv
import io
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import orjson

from pullback_service.exports.tables import Table

# What spreadsheets take for a formula at the beginning of a cell (OWASP, "CSV Injection"), full-width forms included.
FORMULA_STARTS = frozenset("=+-@\t\r\n＝＋－＠")  # noqa: RUF001 - meant as they are


def tame(text: str) -> str:
    """Text with an apostrophe before what would be run as a formula. Numbers are not text: -0.5 stays a number."""
    return f"'{text}" if text[:1] in FORMULA_STARTS else text


class Csv:
    """A table as CSV: a line of names, then a line for each row."""

    def __init__(self, table: Table[Any]) -> None:
        self._table = table

    def begin(self) -> bytes:
        """The line of names."""
        return self._lines([[column.name for column in self._table.columns]])

    def rows(self, rows: Sequence[Any]) -> bytes:
        """Some rows."""
        return self._lines([[_cell(value) for value in self._table.cells(row)] for row in rows])

    def end(self) -> bytes:
        """Nothing follows the rows."""
        return b""

    def _lines(self, lines: Sequence[Sequence[str]]) -> bytes:
        text = io.StringIO()
        csv.writer(text, lineterminator="\r\n").writerows(lines)
        return text.getvalue().encode()


def _cell(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)  # the shortest text that reads back as the same number
        case datetime():
            return value.isoformat()
        case list() | tuple():
            return orjson.dumps(value).decode()
        case _:
            return tame(str(value))

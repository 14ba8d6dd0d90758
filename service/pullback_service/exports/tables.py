"""A table to export: named, typed columns over rows of any kind. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeAlias, TypeVar

import orjson

Row = TypeVar("Row")
ColumnKind: TypeAlias = Literal["text", "number", "integer", "flag", "time", "numbers"]


@dataclass(frozen=True, slots=True)
class Column(Generic[Row]):
    """A column: what each row says in it, None where it says nothing."""

    name: str
    kind: ColumnKind
    value: Callable[[Row], object]


@dataclass(frozen=True, slots=True)
class Table(Generic[Row]):
    """Columns in order, under a name for files."""

    name: str
    columns: Sequence[Column[Row]]

    def cells(self, row: Row) -> list[object]:
        """The cells of a row, column by column."""
        return [column.value(row) for column in self.columns]


def written(document: Any) -> str | None:
    """A document in a cell: JSON text, with its members in one order. None says nothing."""
    return None if document is None else orjson.dumps(document, option=orjson.OPT_SORT_KEYS).decode()

"""A table to export: named, typed columns over rows of any kind. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Generic, Literal, TypeAlias, TypeVar, Union, cast, get_args, get_origin
from uuid import UUID

import orjson
from pydantic import BaseModel

Row = TypeVar("Row")
Model = TypeVar("Model", bound=BaseModel)
ColumnKind: TypeAlias = Literal["text", "number", "integer", "flag", "time", "numbers"]
_KINDS: Final[Mapping[object, ColumnKind]] = {int: "integer", float: "number", bool: "flag", datetime: "time"}


@dataclass(frozen=True, slots=True)
class Column(Generic[Row]):
    """A column: its name, kind, and the value of each row in it, None for an empty cell."""

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


def table_of(name: str, model: type[Model], *columns: str | Column[Model]) -> Table[Model]:
    """A table of the fields of a model.

    A column is the name of a field, or `name=path` for a field of another name or of a model in a field, which may be null. Its
    kind is that of the field's type; what is neither number, flag nor time is text, documents and lists as JSON.
    """
    return Table(name, [_field_column(model, each) if isinstance(each, str) else each for each in columns])


def columns_at(place: str, *columns: str) -> list[Column[Any]]:
    """Columns of rows that are no models: `name`, `name=path` or `name:kind=path`, each path from a place on; text without a kind."""
    results = []
    for each in columns:
        heading, _, path = each.partition("=")
        name, _, kind = heading.partition(":")
        results.append(_column(name, cast("ColumnKind", kind or "text"), place + (path or name)))
    return results


def written(document: Any) -> str | None:
    """A document in a cell: JSON text, with its members in one order; None for an empty cell."""
    return None if document is None else orjson.dumps(document, option=orjson.OPT_SORT_KEYS).decode()


def _field_column(model: type[BaseModel], text: str) -> Column[Any]:
    name, _, path = text.partition("=")
    fields = (path or name).split(".")
    type_: Any = model
    for field in fields:
        type_ = _bare(type_.model_fields[field].annotation)
    return _column(name, _KINDS.get(type_, "text"), path or name)


def _column(name: str, kind: ColumnKind, path: str) -> Column[Any]:
    get = attrgetter(path)

    def value(row: Any) -> object:
        try:
            result = get(row)
        except AttributeError:  # of null, perhaps
            result = row
            for field in path.split("."):
                result = None if result is None else getattr(result, field)
        return _as_text(result) if kind == "text" else result

    return Column(name, kind, value)


def _bare(annotation: Any) -> Any:
    """A type without its metadata and without null."""
    while get_origin(annotation) in {Annotated, Union, UnionType}:
        annotation = next(part for part in get_args(annotation) if part is not NoneType)
    return annotation


def _as_text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, UUID):
        return str(value)
    return written(value.model_dump() if isinstance(value, BaseModel) else value)

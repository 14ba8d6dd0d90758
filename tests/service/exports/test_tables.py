"""Tables of the fields of models."""

from datetime import UTC, datetime
from typing import Any, Literal
from uuid import UUID

import pytest
from pydantic import BaseModel

from pullback_service.exports.tables import table_of


class Commit(BaseModel):
    sha: str
    series: int


class Row(BaseModel):
    id: UUID
    state: Literal["open", "closed"] | None
    commit: Commit | None
    at: datetime
    share: float | None
    own: bool
    labels: dict[str, Any]


COLUMNS = ("row_id=id", "state", "sha=commit.sha", "series=commit.series", "at", "share", "own", "labels")


def test_columns_have_the_kinds_of_their_fields():
    table = table_of("rows", Row, *COLUMNS)
    assert [(column.name, column.kind) for column in table.columns] == [
        ("row_id", "text"),
        ("state", "text"),
        ("sha", "text"),
        ("series", "integer"),
        ("at", "time"),
        ("share", "number"),
        ("own", "flag"),
        ("labels", "text"),
    ]


def test_cells_are_values_and_documents_are_text():
    id_, at = UUID(int=1), datetime(2026, 1, 1, tzinfo=UTC)
    commit = Commit(sha="c0ffee", series=2)
    row = Row(id=id_, state="open", commit=commit, at=at, share=0.5, own=True, labels={"b": 1, "a": [2]})
    cells = table_of("rows", Row, *COLUMNS).cells(row)
    assert cells == [str(id_), "open", "c0ffee", 2, at, 0.5, True, '{"a":[2],"b":1}']


def test_what_is_null_on_the_way_leaves_its_cells_empty():
    row = Row(
        id=UUID(int=1), state=None, commit=None, at=datetime(2026, 1, 1, tzinfo=UTC), share=None, own=False, labels={}
    )
    cells = table_of("rows", Row, *COLUMNS).cells(row)
    assert (cells[1], cells[2], cells[3], cells[5], cells[7]) == (None, None, None, None, "{}")


def test_a_column_without_a_field_is_refused_when_the_table_is_made():
    with pytest.raises(KeyError, match="title"):
        table_of("rows", Row, "title=commit.title")

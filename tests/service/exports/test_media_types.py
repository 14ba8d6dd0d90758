"""Rows as CSV, JSON lines and Parquet."""

import csv
import io
import json
import sys
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pullback_service.errors import NotAcceptableError
from pullback_service.exports import parquet
from pullback_service.exports.comma_separated import FORMULA_STARTS, tame
from pullback_service.exports.media_types import encoder
from pullback_service.exports.tables import Column, Table

NAMES = ("text", "number", "integer", "flag", "time", "numbers")
TABLE = Table("things", [Column(name, name, lambda row, name=name: row[name]) for name in NAMES])
WHEN = datetime(2026, 1, 31, 12, 0, 0, 500_000, tzinfo=UTC)
ROW = {"text": "fused", "number": -0.5, "integer": 3, "flag": True, "time": WHEN, "numbers": [0.6, 0.7]}
NOTHING = dict.fromkeys(NAMES)
finite = st.floats(allow_nan=False, allow_infinity=False)


def written(form, *batches):
    encoding = encoder(form, TABLE)
    return b"".join([encoding.begin(), *(encoding.rows(batch) for batch in batches), encoding.end()])


def test_csv_has_a_line_of_names_and_a_line_a_row():
    assert written("csv", [ROW], [NOTHING]).decode() == (
        "text,number,integer,flag,time,numbers\r\n"
        'fused,-0.5,3,true,2026-01-31T12:00:00.500000+00:00,"[0.6,0.7]"\r\n'
        ",,,,,\r\n"
    )
    assert written("csv").decode() == "text,number,integer,flag,time,numbers\r\n"


@given(st.text(max_size=20))
def test_no_text_begins_a_formula_and_all_of_it_is_there(text):
    (_, line) = csv.reader(io.StringIO(written("csv", [{**NOTHING, "text": text}]).decode(), newline=""))
    assert line[0][:1] not in FORMULA_STARTS or line[0] == ""
    assert line[0] in {text, f"'{text}"}
    assert tame(tame(text)) == tame(text)


@given(finite)
def test_numbers_read_back_as_they_were(number):
    (_, line) = csv.reader(io.StringIO(written("csv", [{**NOTHING, "number": number}]).decode(), newline=""))
    assert float(line[1]) == number
    assert json.loads(written("json", [{**NOTHING, "number": number}]))["number"] == number


def test_json_is_an_object_a_line():
    first, second = written("json", [ROW, NOTHING]).splitlines()
    assert json.loads(first) == {**ROW, "time": "2026-01-31T12:00:00.500000+00:00"}
    assert json.loads(second) == NOTHING
    assert written("json") == b""


@pytest.fixture
def arrow():
    return pytest.importorskip("pyarrow.parquet", reason="NO PARQUET TESTS: pip install 'pullback[parquet]'")


def test_parquet_has_types(arrow):
    table = arrow.read_table(io.BytesIO(written("parquet", [ROW], [NOTHING])))
    assert [str(field.type) for field in table.schema] == [
        "string",
        "double",
        "int64",
        "bool",
        "timestamp[us, tz=UTC]",
        "list<element: double>",
    ]
    assert table.to_pylist() == [ROW, NOTHING]
    assert arrow.read_table(io.BytesIO(written("parquet"))).num_rows == 0


def test_parquet_is_sent_group_by_group_and_a_cut_file_is_noticed(arrow, monkeypatch):
    monkeypatch.setattr(parquet, "ROWS_OF_A_GROUP", 10)
    encoding = encoder("parquet", TABLE)
    pieces = [encoding.begin(), *(encoding.rows([ROW] * 4) for _ in range(8)), encoding.end()]
    sizes = [len(piece) for piece in pieces]
    assert sizes[:3] == [4, 0, 0]
    assert all(sizes[place] > 0 for place in (3, 5, 8))
    assert arrow.ParquetFile(io.BytesIO(b"".join(pieces))).metadata.num_row_groups == 4
    with pytest.raises(Exception, match="magic bytes not found"):
        arrow.read_table(io.BytesIO(b"".join(pieces[:-1])))


def test_without_arrow_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(NotAcceptableError, match=r"pullback\[parquet\]") as error:
        encoder("parquet", TABLE)
    assert error.value.status == 406


def test_rows_are_not_kept_once_they_are_written():
    encoding = encoder("csv", TABLE)
    pieces = [encoding.rows([ROW] * 100) for _ in range(5)]
    assert all(one == other for one, other in pairwise(pieces))

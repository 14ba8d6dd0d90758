"""Values come out of the statement that inserts rows as they were put in."""

from array import array

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg.adapt import PyFormat, Transformer
from psycopg.pq import Format

from pullback_service import statements
from pullback_service.row_arrays import ROWS_AT_ONCE, arrays_of, insert_rows, insertion

INSERT = insertion(
    "example", {"id": "bigint", "value": "float8", "each": "float8[]", "news": "boolean", "said": "text"}
)
FINITE = st.floats(allow_nan=False, allow_infinity=False)


def doubles(*values):
    return array("d", values).tobytes()


@pytest.fixture
async def stored(session):
    """Store rows in a table of their own and read them again."""
    await statements.run(
        session,
        "CREATE TEMPORARY TABLE example (id bigint, value float8, each float8[], news boolean, said text)",
        {},
    )

    async def store(rows):
        await insert_rows(session, INSERT, rows)
        return await statements.rows(session, "SELECT * FROM example ORDER BY id", {})

    return store


@pytest.mark.anyio
async def test_rows_are_stored_as_they_are_with_null_for_none(stored):
    rows = [
        (1, 0.1, doubles(1.5, -0.0, 2e-300), True, 'a "word"\\ of {NULL}, as it is'),
        (2, None, None, None, None),
        (3, -0.0, doubles(7.0), False, "NULL"),
        (None, 1e308, None, None, ""),
    ]
    found = await stored(rows)
    assert [(*row[:2], *row[3:]) for row in found] == [(*row[:2], *row[3:]) for row in rows]
    assert [row[2] for row in found] == [[1.5, -0.0, 2e-300], None, [7.0], None]
    assert str(found[2][1]) == "-0.0"


@pytest.mark.anyio
@pytest.mark.parametrize("count", [0, 1, ROWS_AT_ONCE, ROWS_AT_ONCE + 1])
async def test_all_rows_are_stored_and_few_at_once(stored, count, monkeypatch):
    sent = []
    run = statements.run

    async def noted(session, statement, values):
        sent.append(values["id"].count(",") + 1)
        await run(session, statement, values)

    monkeypatch.setattr(statements, "run", noted)
    found = await stored((each, None, doubles(*range(each % 3)) or None, None, None) for each in range(count))
    assert [row[0] for row in found] == [*range(count)]
    assert [row[2] for row in found] == [[0.0, 1.0][: each % 3] or None for each in range(count)]
    assert sum(sent) == count
    assert all(each <= ROWS_AT_ONCE for each in sent)


def test_a_text_is_stored_on_one_line():
    assert arrays_of(INSERT, [(1, None, None, None, "a\tb\\N\r\nc")])["said"] == r'{"a b\\N  c"}'


@given(st.lists(FINITE))
def test_doubles_are_sent_bit_by_bit(values):
    column = np.array(values, np.float64)
    sent = bytes(Transformer().get_dumper(column, PyFormat.BINARY).dump(column))
    loaded = Transformer().get_loader(1022, Format.BINARY).load(sent)
    assert [value.hex() for value in loaded] == [value.hex() for value in values]


@given(st.lists(st.none() | FINITE, min_size=1))
def test_numbers_read_back_to_the_same_bits(values):
    sent = arrays_of(INSERT, [(None, value, None, None, None) for value in values])["value"]
    told = [None if each == "null" else float(each) for each in sent.strip("{}").split(",")]
    assert [value and value.hex() for value in told] == [value and value.hex() for value in values]

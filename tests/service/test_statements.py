"""What goes to the driver as one piece of text comes out of Postgres as it was, and queries sent together answer as they do alone."""

import asyncio
from datetime import UTC, datetime
from math import inf, isnan, nan
from uuid import UUID

import pytest
from psycopg import AsyncCursor
from sqlalchemy import literal_column

from pullback_service import statements
from pullback_service.statements import Query

pytestmark = pytest.mark.anyio


async def test_texts_of_an_array_come_back_as_they_were(session):
    texts = ["", "a", ' "quoted" ', "back\\slash", '\\"', "\\\\n", '"', "NULL", None, "line\nand\ttab", "{a,b}", "é😀"]
    found = await statements.rows(
        session, "SELECT unnest(%(texts)s::text[])", {"texts": statements.array_of_texts(texts)}
    )
    assert [text for (text,) in found] == texts


async def test_an_array_of_nothing_is_empty(session):
    found = await statements.rows(session, "SELECT unnest(%(texts)s::text[])", {"texts": statements.array_of_texts([])})
    assert found == []


KINDS = (
    1,
    2.5,
    None,
    'a, "b" {c} \\',
    True,
    inf,
    datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
    UUID(int=7),
    {"a": [1, None]},
    b"\x00\xff",
)
OF_KINDS = """
SELECT %(a)s::bigint * n, %(b)s::float8, %(c)s::text, %(d)s::text, %(e)s::boolean, %(f)s::float8, %(g)s::timestamptz, %(h)s::uuid,
       '{"a": [1, null]}'::jsonb, %(i)s::bytea
  FROM generate_series(1, %(rows)s) n
"""


def of_kinds(rows, width):
    values = dict(zip("abcdefghi", (*KINDS[:8], KINDS[9]), strict=True))
    return Query(OF_KINDS, {**values, "rows": rows}, list, width)


@pytest.mark.parametrize("width", [None, len(KINDS)])
async def test_rows_of_queries_sent_together_are_those_of_each_alone(session, width, count_statements):
    asked = [of_kinds(rows, width) for rows in (0, 1, 3)]
    alone = [await statements.answer(session, query) for query in asked]
    assert alone[2] == [(place, *KINDS[1:]) for place in (1, 2, 3)]
    async with count_statements() as sent, statements.together(session) as ask:
        answers = [ask(query) for query in asked]
    assert [answer.value for answer in answers] == alone
    assert len(sent) == 1


async def test_rows_keep_their_order_and_may_hold_arrays(session):
    query = Query("SELECT n, ARRAY [n, n + 1] FROM generate_series(1, 5) n ORDER BY n %% 2, n DESC", {}, list)
    async with statements.together(session) as ask:
        answer = ask(query)
    assert answer.value == await statements.answer(session, query) == [(n, [n, n + 1]) for n in (4, 2, 5, 3, 1)]


async def test_given_rows_are_read_by_others_in_the_place_of_values(session):
    few = Query("SELECT n AS id FROM generate_series(1, %(most)s) n", {"most": 3}, list)
    squares = Query(
        "SELECT n * n FROM unnest(%(of)s::int[]) n WHERE n > %(most)s", {"of": [], "most": 1}, list, width=1
    )
    async with statements.together(session, few=few) as ask:
        known, squared = ask(few.given_as("few")), ask(squares.where(of="ARRAY (SELECT id FROM few)"))
        nothing = ask(squares)
    assert (known.value, squared.value, nothing.value) == ([(1,), (2,), (3,)], [(4,), (9,)], [])


async def test_numbers_that_are_none_come_as_such(session):
    async with statements.together(session) as ask:
        answer = ask(Query("SELECT %(number)s::float8", {"number": nan}, list, width=1))
    assert isnan(answer.value[0][0])


async def test_what_a_query_makes_of_its_rows_may_be_an_error(session):
    def refuse(rows):
        raise LookupError(*rows)

    with pytest.raises(LookupError):
        async with statements.together(session) as ask:
            ask(Query("SELECT 1", {}, refuse))


def test_an_expression_has_its_values_beside_it():
    text, values = statements.text_of(literal_column("a").in_(["x", "y"]))
    assert sorted(values.values()) == ["x", "y"]
    assert all(f"%({name})s" in text for name in values)


@pytest.mark.parametrize("number", [0, 1, statements.ROWS_AT_ONCE, 2 * statements.ROWS_AT_ONCE + 1])
async def test_others_are_served_between_pieces_of_many_rows(session, number, monkeypatch):
    served, fetch = [], AsyncCursor.fetchmany

    async def noting(cursor, *rest):
        asyncio.get_running_loop().call_soon(served.append, None)
        before = len(served)
        rows = await fetch(cursor, *rest)
        assert len(rows) <= statements.ROWS_AT_ONCE
        pieces.append(before)
        return rows

    pieces = []
    monkeypatch.setattr(AsyncCursor, "fetchmany", noting)
    values = {"number": number}
    found = await statements.rows(session, "SELECT n FROM generate_series(1, %(number)s::int) n", values)
    assert found == [(n,) for n in range(1, number + 1)]
    assert pieces == [*range(number // statements.ROWS_AT_ONCE + 1)]  # what waited was served before each but the first

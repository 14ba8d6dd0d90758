"""What goes to the driver as one piece of text comes out of Postgres as it was."""

import pytest

from pullback_service import statements

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

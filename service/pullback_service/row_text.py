"""Rows as lines of text, of which one statement inserts thousands. Building it is pure.

COPY would be a fifth faster with 40,000 rows, no faster with those of a small upload, and Postgres refuses it for tables with
row-level security (docs/decisions/0092).
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Final, LiteralString

import orjson
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements

NULL: Final = b"\r"
LINES_AT_ONCE: Final = 2_000  # about 800 KiB: the event loop serves others between two pieces
_ONE_LINE = str.maketrans("\t\n\r", "   ")


def insert_of(table: LiteralString, columns: Mapping[LiteralString, LiteralString]) -> LiteralString:
    """The statement that inserts lines, by the columns of a line and their types."""
    names = ", ".join(columns)
    values = ", ".join(f"field[{place}]::{type_}" for place, type_ in enumerate(columns.values(), 1))
    return (
        f"INSERT INTO {table} ({names}) SELECT {values} FROM string_to_table(%(lines)s, E'\\n') line, "  # noqa: S608 - our own words
        "string_to_array(line, E'\\t', E'\\r') field"
    )


def number(value: float | None) -> bytes:
    """A number: the shortest decimals that read back to the same bits, as Postgres has them too."""
    return NULL if value is None else orjson.dumps(value)


def numbers(values: Iterable[float | None]) -> bytes:
    """Numbers, each a column."""
    return b"\t".join(map(number, values))


@lru_cache(maxsize=1024)  # few words, said of every point
def text(value: str | None) -> bytes:
    """A text; what would end a line or a column is stored as a blank."""
    return NULL if value is None else value.translate(_ONE_LINE).encode()


def in_pieces(lines: Iterable[bytes]) -> Iterator[str]:
    """Lines, `LINES_AT_ONCE` in a piece."""
    remaining = iter(lines)
    while piece := b"\n".join(islice(remaining, LINES_AT_ONCE)):
        yield piece.decode()


async def insert_lines(session: AsyncSession, insert: LiteralString, lines: Iterable[bytes]) -> None:
    """Insert lines."""
    for piece in in_pieces(lines):
        await statements.run(session, insert, {"lines": piece})

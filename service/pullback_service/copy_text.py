"""Values in COPY's text format, which takes 10,000 rows in a small part of the time that inserting them takes. Pure.

https://www.postgresql.org/docs/current/sql-copy.html, "Text Format".
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice
from typing import Final

import orjson

NULL: Final = b"\\N"
LINES_AT_ONCE: Final = 500  # about 200 KiB: the event loop serves others between two pieces
_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


def number(value: float | None) -> bytes:
    """A number: the shortest decimals that read back to the same bits, as Postgres has them too."""
    return NULL if value is None else orjson.dumps(value)


@lru_cache(maxsize=1024)  # few words, said of every point
def text(value: str | None) -> bytes:
    """A text."""
    return NULL if value is None else value.translate(_ESCAPES).encode()


def in_pieces(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Lines, `LINES_AT_ONCE` in a piece."""
    remaining = iter(lines)
    while piece := b"".join(islice(remaining, LINES_AT_ONCE)):
        yield piece

"""Rows as an array for each column, of which one statement inserts thousands.

COPY would be faster, and Postgres refuses it for tables with row-level security (docs/decisions/0092). Lists of numbers
go in binary: reading the values of twenty processes from text took Postgres a third of the time of storing a point.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from struct import Struct
from typing import Any, Final, LiteralString

import numpy as np
import orjson
import psycopg
from numpy.typing import NDArray
from psycopg.adapt import Dumper
from psycopg.pq import Format
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements

ROWS_AT_ONCE: Final = 2_000  # about 800 KiB: the event loop serves others between two pieces
_ONE_LINE: Final = str.maketrans("\t\n\r", "   ")
_NUMBERS: Final = frozenset({"bigint", "int", "smallint", "float8", "boolean"})


@dataclass(frozen=True, slots=True)
class Insertion:
    """The statement that inserts rows, and the types of their columns by name, in the order of a row."""

    statement: LiteralString
    types: Mapping[LiteralString, LiteralString]


def insertion(table: LiteralString, types: Mapping[LiteralString, LiteralString]) -> Insertion:
    """The insertion of rows into a table.

    Lists of numbers (`float8[]`, in a row as the bytes of doubles) go as one array of all, and where each begins and ends.
    """
    given: dict[LiteralString, LiteralString] = {}
    values: list[LiteralString] = []
    for name, type_ in types.items():
        if type_ == "float8[]":
            given |= {f"{name}_first": f"%({name}_first)s::int[]", f"{name}_last": f"%({name}_last)s::int[]"}
            values.append(f"(%({name})b::float8[])[{name}_first:{name}_last]")
        else:
            given[name] = f"%({name})s::{type_}[]"
            values.append(name)
    statement: LiteralString = (
        f"INSERT INTO {table} ({', '.join(types)}) SELECT {', '.join(values)} "  # noqa: S608 - our own words
        f"FROM unnest({', '.join(given.values())}) given ({', '.join(given)})"
    )
    return Insertion(statement, types)


async def insert_rows(session: AsyncSession, insertion: Insertion, rows: Iterable[Sequence[Any]]) -> None:
    """Insert rows, `ROWS_AT_ONCE` in a statement."""
    remaining = iter(rows)
    while piece := [*islice(remaining, ROWS_AT_ONCE)]:
        await statements.run(session, insertion.statement, arrays_of(insertion, piece))


def arrays_of(insertion: Insertion, rows: Sequence[Sequence[Any]]) -> dict[str, Any]:
    """The parameters of the statement for some rows."""
    results: dict[str, Any] = {}
    for (name, type_), column in zip(insertion.types.items(), zip(*rows, strict=True), strict=True):
        if type_ == "float8[]":
            results[name] = np.frombuffer(b"".join(filter(None, column)))
            ends = [*accumulate(len(each or b"") // 8 for each in column)]
            results[f"{name}_first"] = _array_of_numbers(
                [each and end - len(each) // 8 + 1 for each, end in zip(column, ends, strict=True)]
            )
            results[f"{name}_last"] = _array_of_numbers([each and end for each, end in zip(column, ends, strict=True)])
        elif type_ in _NUMBERS:
            results[name] = _array_of_numbers(column)
        else:
            results[name] = statements.array_of_texts(column).translate(_ONE_LINE)
    return results


def _array_of_numbers(column: Sequence[float | None]) -> str:
    """Numbers, in decimals that read back to the same bits, or truth values; None as NULL."""
    return f"{{{orjson.dumps(column)[1:-1].decode()}}}"


class _DoublesDumper(Dumper):
    """A NumPy array as `float8[]` in binary: dimensions, whether any is NULL, type, length, first index; then each behind its bytes.

    https://github.com/postgres/postgres/blob/REL_18_STABLE/src/backend/utils/adt/arrayfuncs.c, `array_recv`.
    """

    format = Format.BINARY
    oid = psycopg.adapters.types["float8"].array_oid

    def dump(self, obj: NDArray[np.float64]) -> bytes:
        """The array as Postgres reads it."""
        each = np.empty(len(obj), _DOUBLE)
        each["bytes"], each["value"] = 8, obj
        return _HEAD.pack(1, 0, psycopg.adapters.types["float8"].oid, len(obj), 1) + each.tobytes()


_HEAD: Final = Struct(">5i")
_DOUBLE: Final = np.dtype([("bytes", ">i4"), ("value", ">f8")])
psycopg.adapters.register_dumper(np.ndarray, _DoublesDumper)

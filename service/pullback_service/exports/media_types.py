"""The forms of an answer: pages of JSON, or all of it as a file."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Protocol, TypeAlias

from fastapi import Depends, Header, Query

from pullback_service.exports.comma_separated import Csv
from pullback_service.exports.json_lines import JsonLines
from pullback_service.exports.parquet import Parquet
from pullback_service.exports.tables import Table

Format: TypeAlias = Literal["csv", "json", "parquet"]


class Encoder(Protocol):
    """Turns rows into pieces of a file."""

    def begin(self) -> bytes:
        """The bytes before the rows."""

    def rows(self, rows: Sequence[Any]) -> bytes:
        """The bytes that some rows add; an encoder may wait for more of them."""

    def end(self) -> bytes:
        """The bytes after the rows."""


MEDIA_TYPES: Mapping[Format, str] = {
    "csv": "text/csv",
    "json": "application/x-ndjson",
    "parquet": "application/vnd.apache.parquet",
}
ENDINGS: Mapping[Format, str] = {"csv": "csv", "json": "jsonl", "parquet": "parquet"}

EXPORTED: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "A page of JSON; with `format`, or where `Accept` asks for it, all rows as a file",
        "content": {media_type: {} for media_type in MEDIA_TYPES.values()},
    }
}


def encoder(form: Format, table: Table[Any]) -> Encoder:
    """The encoder of a format; one that is not installed is an error that names the remedy."""
    match form:
        case "csv":
            return Csv(table)
        case "json":
            return JsonLines(table)
        case "parquet":
            return Parquet(table)


async def _wanted(
    form: Annotated[
        Format | None,
        Query(
            alias="format",
            description="All rows as a file instead of a page of JSON: `csv`, `json` (an object a line) or `parquet`. "
            "`limit` and `cursor` mean nothing then.",
        ),
    ] = None,
    accept: Annotated[str | None, Header(max_length=2_000)] = None,
) -> Format | None:
    if form is not None or accept is None:
        return form
    best = max(_preferences(accept), default=None)
    by_type = {media_type: name for name, media_type in MEDIA_TYPES.items()}
    return None if best is None else by_type.get(best[2])


def _preferences(accept: str) -> Sequence[tuple[float, int, str]]:
    """Media types with what they weigh, the first of equals being the largest."""
    results = []
    for place, part in enumerate(accept.split(",")):
        media_type, *parameters = (piece.strip().lower() for piece in part.split(";"))
        weight = 1.0
        for parameter in parameters:
            if parameter.startswith("q="):
                try:
                    weight = float(parameter.removeprefix("q="))
                except ValueError:
                    weight = 0.0
        results.append((weight, -place, media_type))
    return results


WantedFormat = Annotated[Format | None, Depends(_wanted)]

"""Cursor pages: `{"items": [...], "next": cursor | null}`.

A cursor holds the sort key of the last row, so that a page costs the same at any depth and rows that arrive meanwhile
neither repeat nor hide others. It is opaque to callers.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Generic, TypeVar

import orjson
from fastapi import Query
from pydantic import BaseModel, TypeAdapter, ValidationError

from pullback_service.errors import FieldError, InvalidInputError
from pullback_service.fields import KnownId

Item = TypeVar("Item", bound=BaseModel)
Row = TypeVar("Row")
Key = TypeVar("Key")

DEFAULT_LIMIT = 100
HIGHEST_LIMIT = 1000

Limit = Annotated[int, Query(ge=1, le=HIGHEST_LIMIT, description="Most items of one page.")]
Cursor = Annotated[str | None, Query(max_length=500, description="`next` of the page before.")]
_ID = TypeAdapter(tuple[KnownId])


class Page(BaseModel, Generic[Item]):
    """One page of a list; `next` is the `cursor` of the following page, null on the last one."""

    items: list[Item]
    next: str | None = None


def read_cursor(cursor: str | None, key: TypeAdapter[Key]) -> Key | None:
    """The sort key in a cursor, or None at the beginning."""
    if cursor is None:
        return None
    try:
        return key.validate_python(orjson.loads(urlsafe_b64decode(cursor.encode())))
    except (Base64Error, ValueError, ValidationError) as error:
        message = (
            "Invalid cursor for this list: use `next` of the previous page, or leave it out to start at the beginning."
        )
        raise InvalidInputError(message, errors=[FieldError(path="query.cursor", message=message)]) from error


def id_in(cursor: str | None) -> int | None:
    """The place in a cursor of a list whose order is that of ids."""
    place = read_cursor(cursor, _ID)
    return None if place is None else place[0]


def write_cursor(key: Sequence[Any]) -> str:
    """A sort key as a cursor."""
    return urlsafe_b64encode(orjson.dumps(list(key))).decode()


def page_of(
    rows: Sequence[Row], limit: int, *, item: Callable[[Row], Item], key: Callable[[Row], Sequence[Any]]
) -> Page[Item]:
    """A page out of up to `limit + 1` rows; the one too many says that there is a next page."""
    page = rows[:limit]
    following = write_cursor(key(page[-1])) if len(rows) > limit else None
    return Page(items=[item(row) for row in page], next=following)

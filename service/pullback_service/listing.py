"""Answers of lists: a page of JSON with a tag, or all of it as a file.

A list is a function that reads one of its pages. A file is all its pages, one behind the other, so that what is listed
and what is exported cannot come apart.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Protocol, TypeVar

from fastapi import Depends, Response
from pydantic import BaseModel
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.conditional_requests import UNCHANGED, ConditionalResponses, KnownAnswering
from pullback_service.database import OpenSession
from pullback_service.errors import InvalidInputError, NotAcceptableError
from pullback_service.exports.media_types import EXPORTED, Format
from pullback_service.exports.streaming import in_batches, send
from pullback_service.exports.tables import Table
from pullback_service.paging import DEFAULT_LIMIT, HIGHEST_LIMIT, Cursor, Limit, Page
from pullback_service.problems import documented
from pullback_service.sessions import ExportForm, OpenedFile, ReadSession

Item = TypeVar("Item", bound=BaseModel)


class ReadPage(Protocol[Item]):
    """Reads one page of a list."""

    async def __call__(self, session: AsyncSession, cursor: str | None, limit: int, /) -> Page[Item]:
        """The page behind a cursor, with at most so many items."""


LISTED: dict[int | str, dict[str, Any]] = {
    **EXPORTED,
    **UNCHANGED,
    **documented(InvalidInputError, NotAcceptableError),
}


@dataclass(frozen=True, slots=True)
class ListRequest:
    """The request of a list."""

    session: AsyncSession
    opened: OpenSession
    answer: ConditionalResponses
    form: Format | None
    limit: int
    cursor: str | None

    async def give(self, read: ReadPage[Item], table: Table[Item], *, name: str | None = None) -> Response:
        """The page that was asked for, or all pages as a file; `name` is whose list it is, for the file's name."""
        if self.form is None:
            return self.answer(await read(self.session, self.cursor, self.limit))

        async def batch(session: AsyncSession, cursor: str | None) -> tuple[Sequence[Item], str | None]:
            page = await read(session, cursor, HIGHEST_LIMIT)
            return page.items, page.next

        batches = in_batches(self.session, self.opened, batch)
        return await send(self.form, table, batches, name=name or "pullback", headers=self.answer.headers)


async def _listing(
    answer: KnownAnswering,
    form: ExportForm,
    session: ReadSession,
    opened: OpenedFile,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> ListRequest:
    return ListRequest(session, opened, answer, form, limit, cursor)


KnownListing = Annotated[ListRequest, Depends(_listing)]

"""Results of calls: models of JSON answers, other content as it came, and lists page by page."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, PrivateAttr

CREATED = 201
Item = TypeVar("Item")


class Statement(BaseModel):
    """The body of a call. Fields that were not set are not sent."""

    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True, populate_by_name=True)


class Answer(BaseModel):
    """The result of a call. Members that a newer service adds are kept and do not matter."""

    model_config = ConfigDict(defer_build=True, extra="allow", frozen=True, populate_by_name=True)

    _status: int = PrivateAttr(default=200)

    @property
    def was_created(self) -> bool:
        """True if this call made what it returns; False if it existed."""
        return self._status == CREATED


@dataclass(frozen=True, slots=True)
class Content:
    """An answer that is no JSON: its bytes, and headers by their names in lower case."""

    content: bytes
    media_type: str
    headers: Mapping[str, str]


class PageOf(Answer, Generic[Item]):
    """One page of a list."""

    items: list[Item]
    next: str | None = None


class Page(Protocol, Generic[Item]):
    """A page of any list."""

    @property
    def items(self) -> "list[Item]":
        """The items of the page."""

    @property
    def next(self) -> str | None:
        """The cursor of the page that follows, None on the last one."""


Element = TypeVar("Element")


def every(call: Callable[..., Page[Element]], **query: Any) -> Iterator[Element]:
    """All items of a list, page after page: `every(client.list_jobs, project="demo")`."""
    cursor = None
    while True:
        page = call(**query, **({"cursor": cursor} if cursor is not None else {}))
        yield from page.items
        cursor = page.next
        if cursor is None:
            return

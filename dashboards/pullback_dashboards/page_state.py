"""The addresses that differ from the present one in some answers: the whole state of a page is in its address."""

from collections.abc import Mapping, Sequence
from typing import Annotated, TypeVar
from urllib.parse import urlencode

from fastapi import Request
from pydantic import BeforeValidator

Pairs = tuple[tuple[str, str], ...]
T = TypeVar("T")
FormParameter = Annotated[T | None, BeforeValidator(lambda value: value or None)]
"""A parameter that a form sends as an empty word where it was left empty, which says nothing."""

_PLACES = ("start", "open")  # where one is in what is shown: another answer begins at its beginning


class Address:
    """An address of a page, in names and values; a name may have several."""

    def __init__(self, path: str, request: Request) -> None:
        self._path = path
        # An empty split is an answer, other empty fields of a form are none.
        self.pairs: Pairs = tuple(
            (k, value) for k, value in request.query_params.multi_items() if value or k == "split"
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The names that are given, each once."""
        return tuple(dict.fromkeys(name for name, _ in self.pairs))

    def chosen(self, name: str) -> set[str]:
        """The values of a name."""
        return {value for key, value in self.pairs if key == name}

    def without(self, *names: str) -> Pairs:
        """All pairs but those of some names."""
        return tuple(pair for pair in self.pairs if pair[0] not in names)

    def replaced(self, name: str, value: str | None) -> str:
        """The query with one value for a name, or with none."""
        return self.with_all({name: value})

    def added(self, name: str, value: str) -> str:
        """The query with one more value for a name."""
        return self._written((*self.without(*_PLACES), (name, value)))

    def dropped(self, name: str, value: str) -> str:
        """The query without one value of a name."""
        return self._written(tuple(pair for pair in self.without(*_PLACES) if pair != (name, value)))

    def less(self, *names: str) -> str:
        """The query without some names."""
        return self._written(self.without(*names))

    def with_all(self, changes: Mapping[str, str | None]) -> str:
        """The query with one value for each of some names, or with none."""
        places = () if changes.keys() <= {*_PLACES} else _PLACES
        remaining = self.without(*changes, *places)
        return self._written((*remaining, *((name, value) for name, value in changes.items() if value is not None)))

    def only(self, names: Sequence[str]) -> str:
        """The query with only some names."""
        return self._written(tuple(pair for pair in self.pairs if pair[0] in names))

    def _written(self, pairs: Sequence[tuple[str, str]]) -> str:
        return f"{self._path}?{urlencode(pairs)}" if pairs else self._path

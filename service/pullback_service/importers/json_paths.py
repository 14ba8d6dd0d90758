"""A value of a JSON document with its path, so that every complaint can name its place."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from pullback_service.errors import FieldError, InvalidInputError

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")
_LONGEST_KEY = 80


def refuse(path: str, message: str, *, cause: Exception | None = None) -> NoReturn:
    """Raise: what is at `path` does not hold."""
    raise InvalidInputError(
        f"{place_in_words(path)} {message}.", errors=[FieldError(path=path, message=message)]
    ) from cause


def place_in_words(path: str) -> str:
    """A place at the beginning of a sentence: the whole of a file is no `$` to people."""
    return "The file" if path == "$" else path.removesuffix(": $")


@dataclass(frozen=True, slots=True)
class LocatedValue:
    """A value and its JSON path; a file inside an archive has its name before the `$`."""

    value: Any
    path: str = "$"

    def refuse(self, message: str, *, cause: Exception | None = None) -> NoReturn:
        """Raise: this value does not hold."""
        refuse(self.path, message, cause=cause)

    def get(self, key: str) -> "LocatedValue | None":
        """A member; None where it is missing or null."""
        value = self._object().get(key)
        return None if value is None else LocatedValue(value, self._below(key))

    def need(self, key: str) -> "LocatedValue":
        """A member that must be there."""
        result = self.get(key)
        if result is None:
            self.refuse(f"has no `{key}`")
        return result

    def members(self) -> Iterator[tuple[str, "LocatedValue"]]:
        """Every member of an object, nulls included."""
        for key, value in self._object().items():
            yield key, LocatedValue(value, self._below(key))

    def members_raw(self) -> dict[str, Any]:
        """An object as it is."""
        return self._object()

    def each(self) -> Iterator["LocatedValue"]:
        """Every item of a list."""
        for index, item in enumerate(self._list()):
            yield LocatedValue(item, f"{self.path}[{index}]")

    def item(self, index: int) -> "LocatedValue":
        """One item of a list."""
        items = self._list()
        if index >= len(items):
            self.refuse(f"has {len(items)} items where at least {index + 1} are needed")
        return LocatedValue(items[index], f"{self.path}[{index}]")

    def count(self) -> int:
        """The number of items of a list."""
        return len(self._list())

    def text(self) -> str:
        """A string."""
        if not isinstance(self.value, str):
            self.refuse("must be a string")
        return self.value

    def number(self) -> float:
        """A number, NaN and infinities included: what they mean differs from tool to tool."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            self.refuse("must be a number")
        try:
            return float(self.value)
        except OverflowError as error:
            self.refuse("is a number with too many digits", cause=error)

    def numbers(self) -> list[float]:
        """A list of numbers; None inside it (a value the tool could not give) becomes NaN."""
        return [float("nan") if item.value is None else item.number() for item in self.each()]

    def is_object(self) -> bool:
        """True if it has members."""
        return isinstance(self.value, dict)

    def is_list(self) -> bool:
        """True if it has items."""
        return isinstance(self.value, list)

    def _object(self) -> dict[str, Any]:
        if not isinstance(self.value, dict):
            self.refuse("must be an object")
        return self.value

    def _list(self) -> list[Any]:
        if not isinstance(self.value, list):
            self.refuse("must be a list")
        return self.value

    def _below(self, key: str) -> str:
        if _PLAIN_KEY.match(key):
            return f"{self.path}.{key[:_LONGEST_KEY]}"
        return f"{self.path}[{json.dumps(key[:_LONGEST_KEY])}]"


def text_at(value: LocatedValue | None) -> str | None:
    """A string that may be missing; anything else in its place counts as missing: facts never refuse an upload."""
    return value.value if value is not None and isinstance(value.value, str) and value.value.strip() else None

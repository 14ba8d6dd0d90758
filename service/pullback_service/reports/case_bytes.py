"""The cases of a report apart from each other as bytes, so that one can be read without the others, or before them.

A report of 25 cases with every slice is 6 MB, of which the page of a case shows a twenty-fifth: finding where each begins
takes 6 ms, reading all of them 30. Of valid JSON the brackets outside of strings say where values begin and end; whatever
is looked at is then read by the usual reader. What is stored was read once and is valid; of what is not known to be,
everything between the entries is looked at here, so that the whole is valid where all of its parts are.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import orjson
from numpy.typing import NDArray

from pullback_service.importers.memory_estimate import count, refuse_heavy

_QUOTE, _BACKSLASH = b'"\\'
_OPENING, _CLOSING = b"{[", b"}]"
_BLANKS: Final = b" \t\n\r"  # of JSON
# Bytes for each quote and bracket: of text that has more of them their places take more than its values.
MOST_MARKS: Final = 3
# Of brackets in brackets: orjson refuses what is deeper, and would not see it of an entry alone.
MOST_DEPTH: Final = 1024
# All four brackets, and four letters, are the same in these bits: two passes over the bytes instead of eight.
_BITS_OF_BRACKETS: Final = (0xD9, 0x59)


@dataclass(frozen=True, slots=True)
class SplitCase:
    """A case, and the bytes of its entry, which begin `at` a place of the document."""

    case: Mapping[str, Any]
    at: int
    entry: memoryview

    def read(self) -> dict[str, Any]:
        """The entry."""
        content: dict[str, Any] = orjson.loads(self.entry)
        return content


@dataclass(frozen=True, slots=True)
class SplitDocument:
    """A document without its cases, and its cases apart."""

    head: dict[str, Any]
    cases: Sequence[SplitCase]


def split(document: bytes) -> SplitDocument | None:
    """The cases of a JSON object apart from the rest; None where its `cases` are not objects with a `case` each.

    Of what is not valid JSON some part raises JSONDecodeError when it is read, or this is None.
    """
    brackets = _Brackets(document)
    listed = brackets.list_of_cases(document) if brackets.are_balanced() else None
    if listed is None:
        return None
    head = brackets.read_without(*listed)
    cases = []
    for at, end in brackets.inside(*listed):
        about = brackets.member(at, end, b'"case"') if brackets.opens_with(at, b"{") else None
        if about is None or not brackets.opens_with(about[0], b"{"):
            return None
        cases.append(SplitCase(orjson.loads(brackets.text(*about)), int(brackets.place[at]), brackets.text(at, end)))
    return SplitDocument(head, cases)


def take_apart(document: bytes) -> tuple[dict[str, Any], list[memoryview]] | None:
    """An object that may be JSON without its `cases`, and the entries of these, unread; None where that cannot be told.

    It is JSON if the entries are.
    """
    if count(document, b'"{[') > len(document) // MOST_MARKS:
        return None
    brackets = _Brackets(document)
    listed = brackets.list_of_cases(document) if brackets.are_balanced() else None
    if listed is None:
        return None
    entries: list[memoryview] = []
    end = listed[0]
    for first, last in brackets.inside(*listed):
        if brackets.between(end, first).strip(_BLANKS) != (b"," if entries else b""):
            return None
        entries.append(brackets.text(first, last))
        end = last
    if brackets.between(end, listed[1]).strip(_BLANKS):
        return None
    try:
        head = brackets.read_without(*listed)
    except orjson.JSONDecodeError:
        return None
    return (head, entries) if head["cases"] == [] else None  # of several `cases` the last one counts, whatever it is


class _Brackets:
    """The brackets of a JSON text outside of its strings, by number; `depth` is how many are open after each."""

    def __init__(self, document: bytes) -> None:
        self._document = memoryview(document)
        text = np.frombuffer(document, np.uint8)
        self._quotes = _quotes(document, text)
        mask, bits = _BITS_OF_BRACKETS
        place = np.flatnonzero((text & mask) == bits)
        place = place[np.isin(text[place], list(_OPENING + _CLOSING))]
        self.place = place[np.searchsorted(self._quotes, place) % 2 == 0]
        self._kind = text[self.place]
        self._opens = np.isin(self._kind, list(_OPENING))
        self.depth = np.where(self._opens, 1, -1).cumsum()

    def are_balanced(self) -> bool:
        """True if strings end and brackets have others, the first one the last, and none is too deep: else it is no JSON object."""
        depth = self.depth
        if len(self._quotes) % 2 or len(depth) == 0 or depth[-1] != 0 or depth.max() > MOST_DEPTH:
            return False
        return bool((depth[:-1] > 0).all())

    def list_of_cases(self, document: bytes) -> tuple[int, int] | None:
        """The brackets of the list that is the member `cases` of the document."""
        if document.lstrip()[:1] != b"{":
            return None
        listed = self.member(0, len(self.place) - 1, b'"cases"')
        return listed if listed is not None and self.opens_with(listed[0], b"[") else None

    def read_without(self, at: int, end: int) -> dict[str, Any]:
        """The document with nothing between two brackets."""
        rest = bytes(self._document[: self.place[at] + 1]) + bytes(self._document[self.place[end] :])
        refuse_heavy(rest)
        head: dict[str, Any] = orjson.loads(rest)
        return head

    def between(self, end: int, first: int) -> bytes:
        """The bytes after one bracket and before another."""
        return bytes(self._document[self.place[end] + 1 : self.place[first]])

    def opens_with(self, at: int, bracket: bytes) -> bool:
        """True if it is this bracket."""
        return bool(self._kind[at] == bracket[0])

    def inside(self, at: int, end: int) -> Iterator[tuple[int, int]]:
        """The brackets of the objects and lists that are values of one, which stands between two brackets."""
        depth, opens = self.depth[at + 1 : end], self._opens[at + 1 : end]
        begins = np.flatnonzero(opens & (depth == self.depth[at] + 1)) + at + 1
        ends = np.flatnonzero(~opens & (depth == self.depth[at])) + at + 1
        return zip(begins.tolist(), ends.tolist(), strict=True)

    def text(self, at: int, end: int) -> memoryview:
        """The text from one bracket to another."""
        return self._document[self.place[at] : self.place[end] + 1]

    def member(self, at: int, end: int, name: bytes) -> tuple[int, int] | None:
        """The brackets of the member of this name of an object; of several the last one, which counts."""
        result = None
        for inner in self.inside(at, end):
            # What stands before a bracket that opens a value of an object is the name of that member; if nothing does,
            # it is no JSON.
            quote = int(np.searchsorted(self._quotes, self.place[inner[0]]))
            if quote and _is_name(self._document[self._quotes[quote - 2] : self._quotes[quote - 1] + 1], name):
                result = inner
        return result


def _is_name(text: memoryview, name: bytes) -> bool:
    """True if a string is this one, which has no escapes, though some of its characters may be written as such."""
    if text == name or _BACKSLASH not in bytes(text):
        return text == name
    try:
        return bool(orjson.loads(text) == orjson.loads(name))
    except orjson.JSONDecodeError:
        return False


def _quotes(document: bytes, text: NDArray[np.uint8]) -> NDArray[np.intp]:
    """The places where strings begin and end, in turns."""
    quotes = np.flatnonzero(text == _QUOTE)
    after_backslash = np.flatnonzero((quotes > 0) & (text[quotes - 1] == _BACKSLASH))
    escaped = [at for at in after_backslash.tolist() if _is_escaped(document, int(quotes[at]))]
    return np.delete(quotes, escaped)


def _is_escaped(document: bytes, place: int) -> bool:
    """True if an odd number of backslashes stands before a place."""
    before = document[max(0, place - 64) : place]
    run = len(before) - len(before.rstrip(b"\\"))
    return run % 2 == 1 if run < len(before) else _is_escaped_far(document, place)


def _is_escaped_far(document: bytes, place: int) -> bool:
    start = place
    while start and document[start - 1] == _BACKSLASH:
        start -= 1
    return (place - start) % 2 == 1

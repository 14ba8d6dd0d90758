"""Long JSON read in pieces: a reader in C keeps every other thread waiting, the event loop among them, 0.2 s for four million numbers.

The text is cut at a comma in each block, in whatever lists and objects are open there. Each piece is closed behind, and opened again
in front with a name that nobody can know for the member that goes on; what it is read to is added to what came before.
"""

import json
import secrets
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, Final, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

PIECE_BYTES: Final = 64 * 1024
"""Bytes of a piece, which take a millisecond, or ten if they are brackets."""
MANY: Final = 10_000
"""Members that are let go of at once."""
MOST_DEPTH: Final = 1024
"""The deepest nesting of brackets, as in orjson."""
_FEW: Final = 100
_CLOSED_BY: Final = {ord("["): b"]", ord("{"): b"}"}
_BLANKS: Final = b" \t\n\r"
_GOES_ON: Final = secrets.token_hex(16)
_QUOTE, _BACKSLASH, _COMMA = b'"\\,'

Loads = Callable[[bytes], Any]


class _OpenBracket(NamedTuple):
    """A bracket that is open, and where it is."""

    bracket: int
    place: int


class _Cut(NamedTuple):
    """The place of a comma outside of strings, and the brackets that are open there."""

    place: int
    stack: tuple[_OpenBracket, ...]


def read(text: bytes, loads: Loads | None = None) -> Any:
    """The value as `loads` reads it, a piece at a time where the text is long; its errors are those of the piece, with the line of the whole."""
    loads = loads or orjson.loads
    if len(text) <= PIECE_BYTES:
        return loads(text)
    root: Any = None
    begin = 0
    stack: tuple[_OpenBracket, ...] = ()
    spine: list[Any] = []
    names: dict[int, str] = {}
    for cut in chain(_cuts(text), [_Cut(len(text), ())]):
        value = _read_piece(text, begin, cut, stack, loads)
        if spine:
            _add(spine, value)
        else:
            root = value
        spine = _spine(root, cut.stack, text, names)
        begin, stack = cut.place + 1, cut.stack
    return root


def let_go(value: Any) -> None:
    """Empty the long lists and objects of a value that is of no more use, some members at a time: all at once keeps other threads waiting."""
    inside = [value]
    while inside:
        container = inside.pop()
        if isinstance(container, list):
            while len(container) > MANY:
                del container[-MANY:]
            inside += container if len(container) <= _FEW else ()
        elif isinstance(container, dict):
            while len(container) > MANY:
                container.popitem()
            inside += container.values() if len(container) <= _FEW else ()


def _read_piece(text: bytes, begin: int, cut: _Cut, stack: tuple[_OpenBracket, ...], loads: Loads) -> Any:
    opened = b"".join(b"[" if each.bracket == ord("[") else b'{"%b":' % _GOES_ON.encode() for each in stack[:-1])
    opened += b"".join(bytes([each.bracket]) for each in stack[-1:])
    content = text[begin : cut.place]
    if begin and content.lstrip(_BLANKS)[:1] in {b"", b"]", b"}"}:
        opened += b","  # nothing follows the comma: as wrong here as there
    closed = b"".join(_CLOSED_BY[each.bracket] for each in reversed(cut.stack))
    try:
        return loads(opened + content + closed)
    except json.JSONDecodeError as error:  # also orjson's
        line = text.rfind(b"\n", 0, begin) + 1
        if error.lineno == 1:
            error.colno += len(text[line:begin].decode(errors="replace")) - len(opened)
        error.lineno += text.count(b"\n", 0, begin)
        raise


def _add(spine: list[Any], value: Any) -> None:
    """Add a piece to the lists and objects that were open where it begins."""
    for depth, container in enumerate(spine, start=1):
        is_inside = depth < len(spine)
        if isinstance(container, list):
            following = value[0] if is_inside else None
            container.extend(value[1:] if is_inside else value)
        else:
            following = value.pop(_GOES_ON) if is_inside else None
            container.update(value)
        value = following


def _spine(root: Any, stack: tuple[_OpenBracket, ...], text: bytes, names: dict[int, str]) -> list[Any]:
    """The lists and objects that are open, the outermost first; `names` keeps the names of those that are members."""
    spine = [root] if stack else []
    for _, place in stack[1:]:
        outer = spine[-1]
        if isinstance(outer, dict) and place not in names:
            names[place] = _name_before(text, place)
        spine.append(outer[-1] if isinstance(outer, list) else outer[names[place]])
    return spine


def _name_before(text: bytes, place: int) -> str:
    """The name of the member whose value begins at a place."""
    end = begin = text.rfind(b'"', 0, place)
    while True:
        begin = text.rfind(b'"', 0, begin)
        if not _is_escaped(text, begin):
            name: str = orjson.loads(text[begin : end + 1])
            return name


def _cuts(text: bytes) -> Iterator[_Cut]:
    """The last comma of each block that has one outside of strings and inside of brackets; none behind what is no JSON."""
    signs = np.frombuffer(text, np.uint8)
    stack: list[_OpenBracket] = []
    quoted = 0
    at = 0
    while at < len(text):
        block = signs[at : at + PIECE_BYTES]
        outside, quoted = _outside(signs, text, at, quoted)
        commas = np.flatnonzero((block == _COMMA) & outside)
        last = int(commas[-1]) if len(commas) else -1
        brackets = np.flatnonzero(outside & np.isin(block, list(b"[]{}")))
        before, behind = np.split(brackets, [np.searchsorted(brackets, last)])
        if not _follow(stack, block, before, at):
            return
        if last >= 0 and stack and at + len(block) < len(text):
            yield _Cut(at + last, tuple(stack))
        if not _follow(stack, block, behind, at):
            return
        at += len(block)


def _outside(signs: NDArray[np.uint8], text: bytes, at: int, quoted: int) -> tuple[NDArray[np.bool_], int]:
    """The signs of a block that are in no string, and 1 if one goes on behind it, as `quoted` says of the block before."""
    block = signs[at : at + PIECE_BYTES]
    quotes = np.flatnonzero(block == _QUOTE)
    behind_backslash = quotes[signs[np.maximum(quotes + at - 1, 0)] == _BACKSLASH]
    ends = np.zeros(len(block), np.int32)
    ends[quotes] = 1
    ends[[place for place in behind_backslash.tolist() if _is_escaped(text, place + at)]] = 0
    inside = (ends.cumsum() + quoted) % 2
    return inside == 0, int(inside[-1])


def _is_escaped(text: bytes, place: int) -> bool:
    begin = place
    while begin and text[begin - 1] == _BACKSLASH:
        begin -= 1
    return (place - begin) % 2 == 1


def _follow(stack: list[_OpenBracket], block: NDArray[np.uint8], brackets: NDArray[np.intp], at: int) -> bool:
    """Open and close what these brackets do; False if they close more than is open, or open more than any reader takes."""
    if not len(brackets):
        return True
    opens = np.isin(block[brackets], list(b"[{"))
    depth = np.where(opens, 1, -1).cumsum()
    closed = max(0, -int(depth.min()))
    if closed > len(stack):
        return False
    del stack[len(stack) - closed :]
    stays = opens & (np.minimum.accumulate(depth[::-1])[::-1] >= depth)
    if len(stack) + int(stays.sum()) > MOST_DEPTH:
        return False
    stack += [_OpenBracket(int(block[place]), at + int(place)) for place in brackets[stays]]
    return True

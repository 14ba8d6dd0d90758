"""Watched memory: entries of dicts and functions that must not change, as words of memory that are compared on each call.

Looking a name up costs a call of Python; comparing the two words of its entry costs a fraction of a nanosecond. An
entry stays in its place as long as the dict keeps its table, so the tables of the dicts are compared first: the entry
may only be read where table and layout are as they were. What is not laid out as in the CPythons we know is looked up.
"""

import functools
import sys
import types
from typing import Any

from pullback.backends.native.entry.offsets import int_at, word_at

#: Offsets in bytes of the fields of a dict, of its table and of a function; CPython 3.11 to 3.14
#: (Include/cpython/dictobject.h, Include/internal/pycore_dict.h, Include/cpython/funcobject.h). The first two are those of
#: entry.c.
_TABLE, _SPLIT_VALUES = 32, 40
_LAYOUT, _ENTRIES_USED, _INDICES = 8, 24, 32
_CODE, _DEFAULTS = 48, 56
_KNOWN = ((3, 11), (3, 14))


class WatchedMemory:
    """Tables of dicts, and pairs of words; all of it is of objects that `alive` keeps."""

    def __init__(self) -> None:
        self.tables: list[tuple[int, int, int]] = []
        """Address of a dict, of its table, and the word with the layout of the table."""
        self.pairs: list[tuple[int, int, int]] = []
        """An address, and what the word there and the next one hold."""
        self.alive: list[Any] = []
        self._entries: dict[int, dict[str, int]] = {}

    def hold_entry(self, namespace: dict[str, Any], name: str, value: Any) -> bool:
        """Have a dict hold this value under this name; False where its table cannot be read."""
        entries = self._entries.get(id(namespace))
        if entries is None:
            entries = self._entries[id(namespace)] = _entries(namespace) if _dicts_are_known() else {}
            if entries:
                table = word_at(id(namespace) + _TABLE)
                self.tables.append((id(namespace), table, int_at(table + _LAYOUT) & 0xFFFFFF))
        entry = entries.get(name)
        if entry is None or word_at(entry + 8) != id(value):
            return False
        self.pairs.append((entry, word_at(entry), id(value)))
        self.alive.append((namespace, value))
        return True

    def hold_function(self, function: types.FunctionType) -> bool:
        """Have a function keep its code and have no defaults; False where it cannot be read."""
        if not _functions_are_known():
            return False
        self.pairs.append((id(function) + _CODE, id(function.__code__), 0))
        self.pairs.append((id(function) + _DEFAULTS, 0, 0))
        self.alive.append((function, function.__code__))
        return True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WatchedMemory) and self.tables == other.tables and self.pairs == other.pairs

    __hash__ = None  # type: ignore[assignment]  # it grows


def _entries(namespace: dict[str, Any]) -> dict[str, int]:
    """Address of the entry of each name, a key and then its value; empty if the table is not laid out as expected."""
    if word_at(id(namespace) + _SPLIT_VALUES):
        return {}  # the values are with an object, and the keys are shared by all objects of its class
    table = word_at(id(namespace) + _TABLE)
    layout = int_at(table + _LAYOUT)
    log2_bytes, kind = layout >> 8 & 0xFF, layout >> 16 & 0xFF
    if kind != 1:
        return {}  # not every key is a text
    first = table + _INDICES + (1 << log2_bytes)
    used = word_at(table + _ENTRIES_USED)
    found = [first + 16 * number for number in range(used) if word_at(first + 16 * number + 8)]
    held = list(namespace.items())
    right = len(found) == len(held) and all(
        word_at(entry) == id(key) and word_at(entry + 8) == id(value)
        for entry, (key, value) in zip(found, held, strict=True)
    )
    return {key: entry for entry, (key, _) in zip(found, held, strict=True)} if right else {}


@functools.cache
def _dicts_are_known() -> bool:
    if not _KNOWN[0] <= sys.version_info[:2] <= _KNOWN[1]:
        return False
    sample = {f"name {number}": object() for number in range(40)}
    for number in range(0, 40, 3):
        del sample[f"name {number}"]
    return _entries(sample).keys() == sample.keys() and bool(_entries(vars(sys)))


@functools.cache
def _functions_are_known() -> bool:
    def plain() -> None: ...
    def full(one: int = 1, *, two: int = 2) -> None: ...

    return _KNOWN[0] <= sys.version_info[:2] <= _KNOWN[1] and all(
        word_at(id(function) + _CODE) == id(function.__code__)
        and word_at(id(function) + _DEFAULTS) == _id(function.__defaults__)
        and word_at(id(function) + _DEFAULTS + 8) == _id(function.__kwdefaults__)
        for function in (plain, full)
    )


def _id(value: object) -> int:
    return 0 if value is None else id(value)

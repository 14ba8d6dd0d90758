"""Comparison of watched values with those that were recorded."""

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from pullback.compiling.captured_references import Members, Place
from pullback.compiling.constancy import is_fixed, is_same


class ArrayContents:
    """The contents of an array when it was recorded."""

    __slots__ = ("_bytes", "_dtype", "_shape")

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self._shape, self._dtype, self._bytes = array.shape, array.dtype, array.tobytes()

    def matches(self, value: Any) -> bool:
        """True if an array holds the same, bit for bit."""
        return (
            type(value) is np.ndarray
            and value.shape == self._shape
            and value.dtype == self._dtype
            and value.tobytes() == self._bytes
        )


class Identities:
    """The identities of some objects."""

    __slots__ = ("objects",)

    def __init__(self, *objects: Any) -> None:
        self.objects = objects

    def matches(self, value: Any) -> bool:
        """True if these, in a tuple, are the same objects."""
        return len(value) == len(self.objects) and all(a is b for a, b in zip(value, self.objects, strict=True))


def is_exactly(now: Any, then: Any) -> bool:
    """True if two parts of equal structures are the same; where nothing else tells, that they are equal is enough."""
    if is_same(now, then):
        return True
    if type(now) is not type(then) or is_fixed(now):
        return False
    if is_dataclass(now):
        return all(is_exactly(getattr(now, field.name), getattr(then, field.name)) for field in fields(now))
    if isinstance(now, dict):
        now, then = [*now, *now.values()], [*then, *then.values()]
    if isinstance(now, list | tuple):
        return len(now) == len(then) and all(map(is_exactly, now, then))
    return bool(np.all(now == then))


def changes_of(name: str, place: Place, now: Any, then: Any) -> list[tuple[str, Place, Any]]:
    """The changes in one place; of a class with the same attributes those that are other ones."""
    if not isinstance(place, Members) or len(now) != len(then.objects):
        return [(name, place, then)]
    triples = zip(place.names(), now, then.objects, strict=True)
    owner = place.class_.__name__
    return [(f"{owner}.{key}", place.member(key), before) for key, after, before in triples if after is not before]


def is_as_it_was(now: Any, then: Any) -> bool:
    """True if what is watched has the value that was recorded of it."""
    return then.matches(now) if isinstance(then, ArrayContents | Identities) else is_same(now, then)

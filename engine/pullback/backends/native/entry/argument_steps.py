"""The steps of the native entry before a run: one thing fetched and checked after the other."""

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from enum import IntEnum
from typing import Any

import numpy as np

from pullback import trees
from pullback.backends.native.entry.result_trees import NotNativeError
from pullback.blocks import Block
from pullback.dataclass import dataclass


class Fetch(IntEnum):
    """Ways to fetch what a program reads or what must not have changed; the numbers are those of entry.c."""

    ARGUMENT = 0
    CONSTANT = 1
    TUPLE_ITEM = 2
    LIST_ITEM = 3
    DICT_ITEM = 4
    FIRST_DICT_ITEM = 5
    NEXT_DICT_ITEM = 6
    CELL = 7
    CODE = 8
    DEFAULTS = 9
    KEYWORD_DEFAULTS = 10
    TYPE = 11
    ATTRIBUTES = 12
    ENTRY = 13
    FUNCTION = 14
    SLOT = 15
    ATTRIBUTES_OF = 16
    FIRST_DICT_ITEM_BY_VALUE = 17
    NEXT_DICT_ITEM_BY_VALUE = 18


class Check(IntEnum):
    """Checks of what was fetched, and what becomes of it; the numbers are those of entry.c."""

    IDENTITY = 0
    ARRAY = 1
    FLOAT = 2
    INT = 3
    BOOL = 4
    SCALAR = 5
    TUPLE = 6
    LIST = 7
    DICT = 8
    ANYTHING = 9
    DOUBLE_OR_FLOAT = 10
    SINGLE_OR_FLOAT = 11
    WRITTEN = 12
    TYPE = 13


class _AbsentObject:
    """The object that is expected where nothing may be found."""


ABSENT = _AbsentObject()


@dataclass(frozen=True, slots=True)
class Step:
    """One thing fetched and checked: `what` is a position or an object, `parent` the step that fetched what it is in."""

    fetch: Fetch
    what: Any
    check: Check
    expected: Any = None
    """The very object; for others than identity its type. `ABSENT` where there has to be nothing."""
    parent: int = 0
    place: int = -1
    """The position of its address in the table of the program: inputs first, then outputs."""
    length: int = 0
    """The length of a container."""
    inside: Any = None
    """The dict that an entry is in."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A leaf of an argument: its place in the table of the program, and how it is checked."""

    place: int
    check: Check
    expected: type


CONTAINERS: dict[type, Check] = {tuple: Check.TUPLE, list: Check.LIST, dict: Check.DICT}

_NUMBERS = {float: Check.FLOAT, int: Check.INT, bool: Check.BOOL}
_SCALARS = frozenset({np.float64, np.float32, np.int64, np.int32, np.bool_})


def argument_steps(args: tuple[Any, ...]) -> list[Step]:
    """Steps for calls with arguments like these; their leaves are the first inputs of the program, in order."""
    leaves, rebuild = trees.flatten(args)
    return steps_of(rebuild(iter([leaf_like(number, leaf) for number, leaf in enumerate(leaves)])))


def leaf_like(number: int, value: Any) -> Leaf:
    """An input that is read of arguments like this one."""
    kind = type(value)
    if kind is np.ndarray:
        return Leaf(number, Check.ARRAY, kind)
    if kind in _NUMBERS:
        return Leaf(number, _NUMBERS[kind], kind)
    if kind in _SCALARS:
        return Leaf(number, Check.SCALAR, kind)
    raise NotNativeError(f"an argument is a {kind.__name__}")


def steps_of(args: Sequence[Any], first: int = 0, before: int = 0) -> list[Step]:
    """Steps for arguments of leaves, None, constants and nodes of trees, behind `before` other steps."""
    steps: list[Step] = []
    waiting = [(tree, Fetch.ARGUMENT, place, 0) for place, tree in enumerate(args, first)]
    for tree, fetch, what, parent in waiting:  # breadth first: the items of a dict come one after the other
        if tree is None or trees.is_constant(tree):
            steps.append(Step(fetch, what, Check.IDENTITY, tree, parent))
        elif isinstance(tree, Leaf):
            steps.append(Step(fetch, what, tree.check, tree.expected, parent, tree.place))
        else:
            own = before + len(steps)
            found, parts = _node(tree, fetch, what, parent, own)
            steps.extend(found)
            waiting.extend(parts)
    return steps


_Waiting = tuple[Any, Fetch, Any, int]


def _node(tree: Any, fetch: Fetch, what: Any, parent: int, own: int) -> tuple[list[Step], list[_Waiting]]:
    """Steps for a node itself, and its parts."""
    check = next((check for kind, check in CONTAINERS.items() if isinstance(tree, kind)), None)
    if check is not None and (check is not Check.DICT or type(tree) is dict):
        step = Step(fetch, what, check, type(tree), parent, length=len(tree))
        return [step], [(part, *how, own) for part, how in _parts(tree)]
    exact = Step(fetch, what, Check.TYPE, type(tree), parent)
    if type(tree) is Block:
        layout = Step(Fetch.SLOT, "_layout", Check.IDENTITY, tree.layout, own)
        return [exact, layout], [(tree.array, Fetch.SLOT, "_array", own)]
    if is_dataclass(tree):
        names = [field.name for field in fields(tree)]
        if getattr(tree, "__dict__", {}).keys() == set(names):
            attributes = Step(Fetch.ATTRIBUTES_OF, None, Check.ANYTHING, None, own)
            return [exact, attributes], [(getattr(tree, name), Fetch.DICT_ITEM, name, own + 1) for name in names]
    raise NotNativeError(f"an argument is a {type(tree).__name__}")


def _parts(tree: Any) -> Sequence[tuple[Any, tuple[Fetch, Any]]]:
    if isinstance(tree, dict):
        return [(part, (item_fetch(place, key), key)) for place, (key, part) in enumerate(tree.items())]
    fetch = Fetch.TUPLE_ITEM if isinstance(tree, tuple) else Fetch.LIST_ITEM
    return [(part, (fetch, place)) for place, part in enumerate(tree)]


def item_fetch(place: int, key: Any) -> Fetch:
    """The way to fetch an item of a dict that is walked through: keys that no code compares may be other, equal objects."""
    if type(key) in (str, bytes, int):
        return Fetch.NEXT_DICT_ITEM_BY_VALUE if place else Fetch.FIRST_DICT_ITEM_BY_VALUE
    return Fetch.NEXT_DICT_ITEM if place else Fetch.FIRST_DICT_ITEM

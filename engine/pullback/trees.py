"""Nested arguments: tuples, lists, dicts, dataclasses and None, taken apart into leaves and put together again.

Strings, bytes, members of enumerations, ufuncs and dtypes are no leaves but a part of the structure, as None is.
Other kinds of nodes tell how they are taken apart with `register`.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from copy import copy
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import partial
from itertools import chain, zip_longest
from types import FunctionType
from typing import Any

import numpy as np

from pullback.core.primitive import TracedValue, as_value
from pullback.dataclass import dataclass
from pullback.derived import (
    attributes_of,
    beside_fields,
    is_cached,
    is_derived,
    leads_to_traced,
    may_derive,
    renew,
    without_traced,
)

Rebuild = Callable[[Iterator[Any]], Any]


@dataclass(frozen=True, slots=True)
class _NodeKind:
    """A kind of node: functions that take it apart and put it together again."""

    parts: Callable[[Any], tuple[Any, ...]]
    rebuild: Callable[[Any, tuple[Any, ...]], Any]
    structure: Callable[[Any], Hashable]
    gradient: Callable[[Any, tuple[Any, ...]], Any]
    rows: Callable[[Any, tuple[Any, ...]], Any]

    def maker(self, leaves: Iterator[Any]) -> Callable[[Any, tuple[Any, ...]], Any]:
        """The function that makes a node of its parts, for this kind of leaves."""
        if isinstance(leaves, Rows):
            return self.rows
        return self.gradient if isinstance(leaves, Gradients) else self.rebuild


_KINDS: dict[type, _NodeKind] = {}

_CONSTANTS = (str, bytes, Enum, np.ufunc, np.dtype)


def is_constant(tree: Any) -> bool:
    """A part of the structure that is no node: it has no derivative, and plans are recorded for each of its values."""
    return isinstance(tree, _CONSTANTS)


def register(
    kind: type,
    parts: Callable[[Any], tuple[Any, ...]],
    rebuild: Callable[[Any, tuple[Any, ...]], Any],
    structure: Callable[[Any], Hashable],
    gradient: Callable[[Any, tuple[Any, ...]], Any] | None = None,
    rows: Callable[[Any, tuple[Any, ...]], Any] | None = None,
) -> None:
    """Make a type a node of trees: its parts, a node like another from new parts, and what it is besides its parts.

    The new parts may be anything that stands for the old ones: arrays, traced values, the positions of leaves. The
    gradient by a node is a node like it, unless `gradient` makes something else of the gradients by its parts; and so for
    `rows`, the Jacobians of its parts, which have a part's axes first.
    """
    _KINDS[kind] = _NodeKind(parts, rebuild, structure, gradient or rebuild, rows or rebuild)


def register_pytree_node(
    kind: type,
    flatten_node: Callable[[Any], tuple[Iterable[Any], Hashable]],
    unflatten_node: Callable[[Hashable, tuple[Any, ...]], Any],
) -> None:
    """Make a type a node of trees, as in JAX: `flatten_node(node)` gives its parts and what else it is, in that order.

    `unflatten_node(rest, parts)` makes a node again; parts may be anything that stands for the old ones.

    >>> class Interval:
    ...     def __init__(self, low, high):
    ...         self.low, self.high = low, high
    >>> pb.register_pytree_node(Interval, lambda i: ((i.low, i.high), None), lambda _, parts: Interval(*parts))
    >>> pb.grad(lambda i: (i.high - i.low) ** 2)(Interval(1.0, 3.0)).high
    4.0
    """
    register(
        kind,
        lambda node: tuple(flatten_node(node)[0]),
        lambda node, parts: unflatten_node(flatten_node(node)[1], parts),
        lambda node: flatten_node(node)[1],
    )


def tree_map(function: Callable[..., Any], tree: Any, *rest: Any) -> Any:
    """A tree of what a function gives for the leaves of one tree, or of several that are nested alike.

    >>> pb.tree_map(lambda p, g: p - 0.1 * g, {"w": 1.0, "b": [2.0]}, {"w": 10.0, "b": [20.0]})
    {'w': 0.0, 'b': [0.0]}
    """
    leaves, rebuild = flatten(tree)
    for place, other in enumerate(rest, start=2):
        if structure(other) != structure(tree):
            raise ValueError(
                f"tree_map: tree {place} is not nested like the first: {_difference(other, tree)}; "
                "give both the same parts of the same kinds in the same order"
            )
    return rebuild(
        ReplacementLeaves(
            [function(*parts) for parts in zip(leaves, *(flatten(other)[0] for other in rest), strict=True)]
        )
    )


class ReplacementLeaves:
    """Leaves that take the place of others: what a tree rebuilt from them computes of its fields is computed from them."""

    def __init__(self, leaves: Iterable[Any]) -> None:
        self._leaves = iter(leaves)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return next(self._leaves)


class Tangents(ReplacementLeaves):
    """Leaves that are tangents: a tree rebuilt from them is one."""


class Gradients(Tangents):
    """Leaves that are gradients: a tree rebuilt from them is a gradient by the tree."""


class Rows(Gradients):
    """Leaves that are Jacobians: a tree rebuilt from them is the Jacobian of a value that was like the tree."""


def flatten(tree: Any) -> tuple[list[Any], Rebuild]:
    """Leaves in a fixed order (dicts by their own order), and a function that rebuilds the tree from an iterator of leaves."""
    leaves: list[Any] = []
    rebuild = _take_apart(tree, leaves)
    return leaves, rebuild


def _take_apart(tree: Any, leaves: list[Any]) -> Rebuild:
    if issubclass(type(tree), (np.ndarray, float, int, TracedValue)):  # the usual leaves, without the questions below
        leaves.append(as_value(tree))
        return next
    if tree is None or is_constant(tree):
        return lambda _: tree
    if type(tree) in _KINDS or (is_dataclass(type(tree)) and not isinstance(tree, tuple | list | dict)):
        return _take_node_apart(tree, leaves)
    if isinstance(tree, tuple | list):
        parts = [_take_apart(part, leaves) for part in tree]
        make = getattr(type(tree), "_make", type(tree))  # named tuples are made from an iterable by _make
        return lambda rest: make(part(rest) for part in parts)
    if isinstance(tree, dict):
        named = {key: _take_apart(part, leaves) for key, part in tree.items()}
        again: Callable[..., Any] = dict if type(tree) is dict else partial(_with_items, tree)
        return lambda rest: again({key: part(rest) for key, part in named.items()})
    leaves.append(tree)
    return next


def _take_node_apart(node: Any, leaves: list[Any]) -> Rebuild:
    kind = _KINDS.get(type(node))
    if kind is not None:
        children = [_take_apart(part, leaves) for part in kind.parts(node)]
        return lambda rest: kind.maker(rest)(node, tuple(child(rest) for child in children))
    members = {field.name: _take_apart(getattr(node, field.name), leaves) for field in fields(node)}
    derives = may_derive(node)
    return lambda rest: _with_members(node, {name: part(rest) for name, part in members.items()}, rest, derives=derives)


def _with_members(instance: Any, members: dict[str, Any], leaves: Iterator[Any], *, derives: bool) -> Any:
    """A copy of a dataclass with other members; also of frozen ones, and of fields that __init__ does not take."""
    changed = copy(instance)
    for name in [name for name in attributes_of(instance) if is_cached(instance, name)]:
        del changed.__dict__[name]  # it was computed from the members that go
    for name, member in members.items():
        object.__setattr__(changed, name, member)
    if derives and isinstance(leaves, Tangents):
        without_traced(changed)
    elif derives and (
        isinstance(leaves, ReplacementLeaves)
        or any(issubclass(type(leaf), TracedValue) for leaf in flatten(list(members.values()))[0])
        or leads_to_traced(instance)
    ):
        renew(instance, changed)
    return changed


def _with_items(tree: Any, items: dict[Any, Any]) -> Any:
    """A copy of a dict of a class of its own, with other values."""
    changed = copy(tree)
    if attributes_of(tree) is tree:
        changed.__dict__ = changed  # its items are its attributes
    dict.update(changed, items)
    return changed


def _beside(node: Any) -> list[tuple[str, Any]]:
    """The attributes of a dataclass that are no fields, or those of a dict of a class of its own."""
    if is_dataclass(node):
        return list(beside_fields(node).items())
    attributes = attributes_of(node)
    return [] if attributes is node else [(key, value) for key, value in attributes.items() if not is_cached(node, key)]


def _is_fixed(value: Any) -> bool:
    """True if it stays what it is: its value can be compared, or it is what a program may take for granted."""
    if type(value) is tuple:
        return all(map(_is_fixed, value))
    return (
        value is None
        or is_constant(value)
        or (
            issubclass(type(value), (int, float, complex, np.generic, type, FunctionType))
            and not isinstance(value, np.void)
        )
    )


def unwatched(tree: Any) -> str | None:
    """An attribute of a node, such as `Model.cache`, that is neither a part of it nor of its structure, and what to make of it."""
    kind = _KINDS.get(type(tree))
    if kind is not None:
        if any(issubclass(type(leaf), TracedValue) for leaf in flatten(kind.structure(tree))[0]):
            return f"what a {type(tree).__name__} is beside its parts; make it one of them"
        parts: Iterable[Any] = kind.parts(tree)
    elif isinstance(tree, tuple | list):
        parts = tree
    elif isinstance(tree, dict) or is_dataclass(type(tree)):
        for name, value in _beside(tree):
            if is_derived(type(tree), name):
                return f"{type(tree).__name__}.{name}; make it a property or a functools.cached_property"
            if not _is_fixed(value):
                return f"{type(tree).__name__}.{name}; make it a field"
        parts = tree.values() if isinstance(tree, dict) else [getattr(tree, field.name) for field in fields(tree)]
    else:
        return None
    return next(filter(None, map(unwatched, parts)), None)


def beside(tree: Any) -> list[Any]:
    """Constants and keys of a tree, and the classes, functions and attributes of its nodes: all but its leaves."""
    kind = _KINDS.get(type(tree))
    own: list[Any]
    if kind is not None:
        parts: Iterable[Any] = kind.parts(tree)
        own = [type(tree), kind.parts, kind.rebuild, kind.structure(tree)]
    elif isinstance(tree, tuple | list):
        parts, own = tree, [type(tree)]
    elif isinstance(tree, dict):
        parts, own = tree.values(), [type(tree), *tree, *[value for *_, value in _structure_beside(tree)]]
    elif is_constant(tree):
        return [tree]
    elif is_dataclass(type(tree)):
        parts = [getattr(tree, field.name) for field in fields(tree)]
        own = [type(tree), *[value for *_, value in _structure_beside(tree)]]
    else:
        return []
    return [*own, *chain.from_iterable(map(beside, parts))]


def paths(tree: Any) -> list[str]:
    """The path of each leaf in Python's syntax, without the name of the tree: `['w'][0]`, `.weights`."""
    if issubclass(type(tree), (np.ndarray, float, int, TracedValue)):
        return [""]
    if type(tree) not in _KINDS:
        if isinstance(tree, tuple) and hasattr(tree, "_fields"):
            return [f".{name}{path}" for name, part in zip(tree._fields, tree, strict=True) for path in paths(part)]
        if isinstance(tree, tuple | list):
            return [f"[{position}]{path}" for position, part in enumerate(tree) for path in paths(part)]
        if isinstance(tree, dict):
            return [f"[{key!r}]{path}" for key, part in tree.items() for path in paths(part)]
        if is_dataclass(type(tree)):
            return [f".{field.name}{path}" for field in fields(tree) for path in paths(getattr(tree, field.name))]
    leaves = len(flatten(tree)[0])  # none of None and constants
    return [""] * leaves if leaves <= 1 else [f", leaf {number}" for number in range(leaves)]


def _difference(tree: Any, first: Any) -> str:
    """The first place where a tree has another leaf than the first one; their kinds where all leaves have the same places."""
    for path, expected in zip_longest(paths(tree), paths(first)):
        if path != expected:
            return f"it has {_leaf(path)} where the first has {_leaf(expected)}"
    return f"it is {structure(tree)}, the first {structure(first)}"


def _leaf(path: str | None) -> str:
    return "no leaf" if path is None else f"the leaf tree{path}"


def structure(tree: Any) -> Any:
    """The structure of a tree without its leaves, as a hashable value."""
    if tree is None or is_constant(tree):
        return (type(tree), tree)
    kind = _KINDS.get(type(tree))
    if kind is not None:
        return (type(tree), kind.structure(tree), *map(structure, kind.parts(tree)))
    if isinstance(tree, tuple | list):
        return (type(tree), *map(structure, tree))
    if isinstance(tree, dict):
        named = ((key, structure(part)) for key, part in tree.items())
        return (dict, *named) if type(tree) is dict else (type(tree), *named, *_structure_beside(tree))
    if is_dataclass(type(tree)):
        parts = (structure(getattr(tree, field.name)) for field in fields(tree))
        return (type(tree), *parts, *_structure_beside(tree))
    return "leaf"


def _structure_beside(node: Any) -> tuple[Any, ...]:
    return tuple(
        (name, type(value), value)
        for name, value in _beside(node)
        if _is_fixed(value) and not is_derived(type(node), name)
    )

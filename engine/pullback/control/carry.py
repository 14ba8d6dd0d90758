"""The carry of a loop: structure, shapes and dtypes stay as they were.

A Python number in the carry has no dtype of its own. It takes the one that the first step gives it, if its kind can
become that: `0.0` may become a float32, `0` a float64, but `0.0` never an integer.
"""

from collections.abc import Callable, Sequence
from dataclasses import is_dataclass
from typing import Any, TypeVar

import numpy as np

from pullback import trees
from pullback.control.leaves import as_type, in_words, joined, leaf_type
from pullback.core.types import ArrayType
from pullback.errors import ControlFlowError

T = TypeVar("T")


class Carry:
    """The structure and types of a carry, as far as they are known."""

    def __init__(self, loop: str, init: Any) -> None:
        self.loop = loop
        self.structure = trees.structure(init)
        leaves, self.rebuild = trees.flatten(init)
        self.places = places(init, "the carry")
        self.types = [leaf_type(leaf, place, loop) for leaf, place in zip(leaves, self.places, strict=True)]

    def leaves_of(self, tree: Any, step: str) -> list[Any]:
        """Leaves of what a step returned, if it fits; Python numbers take the dtype the carry has."""
        if trees.structure(tree) != self.structure:
            raise ControlFlowError(
                f"{self.loop}: the carry was {describe(self.rebuild(iter(self.types)))} and became "
                f"{describe(tree)} {step}; return it with the structure it came in"
            )
        leaves, _ = trees.flatten(tree)
        return [self._fitting(number, leaf, step) for number, leaf in enumerate(leaves)]

    def cast(self, leaves: Sequence[Any]) -> list[Any]:
        """Leaves in the types of the carry: Python numbers may have got a dtype."""
        return [as_type(leaf, type_) for leaf, type_ in zip(leaves, self.types, strict=True)]

    def settled(self, record: Callable[[], T]) -> T:
        """The recording once the types of the carry do not change while it runs."""
        while True:
            before = list(self.types)
            recorded = record()
            if self.types == before:
                return recorded

    def _fitting(self, number: int, leaf: Any, step: str) -> Any:
        before, place = self.types[number], self.places[number]
        after = leaf_type(leaf, place, self.loop)
        type_ = joined(before, after)
        if type_ == after:
            self.types[number] = after
            return leaf
        if type_ == before:
            return as_type(leaf, before)
        raise ControlFlowError(
            f"{self.loop}: {place} was {in_words(before)} and became {in_words(after)} {step}; "
            "start with the type it will have, or cast it back with astype"
        )


def describe(tree: Any) -> str:
    """The structure of a tree in a few words: `(array, {'h': array})`."""
    if tree is None:
        return "None"
    if isinstance(tree, dict):
        return "{" + ", ".join(f"{key!r}: {describe(part)}" for key, part in tree.items()) + "}"
    if isinstance(tree, tuple | list):
        inside = ", ".join(describe(part) for part in tree)
        return f"[{inside}]" if isinstance(tree, list) else f"({inside}{',' if len(tree) == 1 else ''})"
    if is_dataclass(type(tree)) and not isinstance(tree, ArrayType):
        return f"a {type(tree).__name__}"
    return "one array"


def places(tree: Any, place: str) -> list[str]:
    """A name for every leaf, in the order of the leaves: `the carry[0]['h']`."""
    return [f"{place}{path}" for path in trees.paths(tree)]


def common_length(xs: Any, length: int | None) -> tuple[list[Any], int]:
    """Leaves of xs, and the number of steps they and `length` agree on."""
    leaves, _ = trees.flatten(xs)
    names = places(xs, "xs")
    known: tuple[str, int] | None = None if length is None else ("length", _steps(length))
    for leaf, name in zip(leaves, names, strict=True):
        shape = leaf_type(leaf, name, "scan").shape
        if not shape:
            raise ControlFlowError(
                f"scan: {name} is a single number; every leaf of xs has a leading axis, one entry a step"
            )
        if known is not None and known[1] != shape[0]:
            raise ControlFlowError(
                f"scan: {name} has {shape[0]} entries, {_said(known)}; all must have the same number of steps"
            )
        known = known or (name, shape[0])
    if known is None:
        raise ControlFlowError("scan: without xs the number of steps is not known; give length=")
    return leaves, known[1]


def _said(known: tuple[str, int]) -> str:
    return f"length is {known[1]}" if known[0] == "length" else f"{known[0]} has {known[1]}"


def _steps(length: Any) -> int:
    if isinstance(length, bool) or not isinstance(length, int | np.integer) or length < 0:
        raise ControlFlowError(f"scan: length is {length!r}; it is a number of steps, an integer of at least 0")
    return int(length)


def stacked(leaves_of_steps: Sequence[Sequence[Any]], loop: str, names: Sequence[str]) -> list[Any]:
    """One array per leaf, a row a step."""
    columns = list(zip(*leaves_of_steps, strict=True))
    result = []
    for name, column in zip(names, columns, strict=True):
        types = [leaf_type(leaf, name, loop) for leaf in column]
        shapes = sorted({type_.shape for type_ in types})
        if len(shapes) > 1:
            raise ControlFlowError(f"{loop}: {name} has shape {shapes[0]} in one step and {shapes[1]} in another")
        result.append(np.stack(_of_one_dtype(column, types)))
    return result


def _of_one_dtype(column: Sequence[Any], types: Sequence[ArrayType]) -> Sequence[Any]:
    """Entries where a number of Python, as the first step may give, has the dtype of what the other steps give."""
    strong = next((type_ for type_ in types if not type_.weak), None)
    if strong is None:
        return column
    return [
        as_type(entry, joined(type_, strong) or type_) if type_.weak else entry
        for entry, type_ in zip(column, types, strict=True)
    ]

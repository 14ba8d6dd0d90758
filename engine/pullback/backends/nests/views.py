"""Views: values that are the memory of another value, from another element on, with other strides."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from pullback.core.types import Shape
from pullback.dataclass import dataclass
from pullback.ir.graph import Atom, Graph, Literal, Node, Var
from pullback.ir.strides import contiguous_strides, offset, places, selected
from pullback.rules.complex_numbers import imag, real
from pullback.rules.constants import stop
from pullback.rules.indexing import index
from pullback.rules.shapes import broadcast_to, reshape, transpose

#: Rules whose result is always memory of their first operand.
_VIEWS = frozenset({index, transpose, broadcast_to, reshape, stop})


#: Rules whose result is memory of their operand where that is complex.
_PARTS = frozenset({real, imag})


def is_view(node: Node) -> bool:
    """True if a node computes nothing: its result is its first operand, seen otherwise."""
    return node.primitive in _VIEWS or (node.primitive in _PARTS and node.inputs[0].type.dtype.kind == "c")


#: Strides in elements of what a graph is given, where it is not in C order.
Layouts: TypeAlias = Mapping[Var, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Access:
    """A value as elements of its root: the first one, and how far apart they are along each axis, in elements.

    Of a complex root elements are the parts: real parts are two elements apart.
    """

    root: Atom
    offset: int
    strides: tuple[int, ...]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements: of a complex root, that of its parts."""
        dtype = self.root.type.dtype
        return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype

    def over(self, shape: Shape, space: Shape) -> tuple[int, ...]:
        """Strides along the axes of a space that a value of this shape is broadcast over."""
        missing = (0,) * (len(space) - len(shape))
        return missing + tuple(0 if size == 1 else stride for size, stride in zip(shape, self.strides, strict=True))


class Views:
    """The accesses of a graph's values, entered in the order of its nodes.

    What is given to the graph is in C order but where `layouts` have other strides; what `place` moves to the memory of another
    value is made there.
    """

    def __init__(self, layouts: Layouts) -> None:
        self._of: dict[Var, Access] = {var: Access(var, 0, strides) for var, strides in layouts.items()}

    def access(self, atom: Atom) -> Access:
        """The access of a value: if it is neither a view nor placed elsewhere, all of its memory, in C order."""
        if isinstance(atom, Literal):
            return Access(atom, 0, (0,) * len(atom.type.shape))
        found = self._of.get(atom)
        if found is None:
            found = self._of[atom] = Access(atom, 0, contiguous_strides(atom.type.shape))
        return found

    def enter(self, node: Node) -> None:
        """Enter a node whose result is a view of its first operand; ValueError for a reshape that needs a copy."""
        operand, result = node.inputs[0], node.outputs[0]
        before = self.access(operand)
        if node.primitive in _PARTS:  # elements of a complex root are counted by its parts
            strides = tuple(2 * stride for stride in before.strides)
            self._of[result] = Access(before.root, 2 * before.offset + (node.primitive is imag), strides)
            return
        whole = places(operand.type.shape, before.strides)
        if node.primitive is index:
            seen = selected(whole, dict(node.params)["key"])
        elif node.primitive is reshape:
            seen = np.reshape(whole, result.type.shape, copy=False)
        else:
            seen = node.primitive.evaluate(whole, **dict(node.params))
        self._of[result] = Access(before.root, before.offset + offset(seen, whole), seen.strides)

    def place(self, value: Var, there: Access, views: Mapping[Var, Sequence[Node]]) -> None:
        """Move a value to memory of another, and with it what is a view of it by the nodes `views`, sorted by operand."""
        self._of[value] = there
        moved: list[Atom] = [value]
        while moved:
            atom = moved.pop()
            for node in views.get(atom, ()) if isinstance(atom, Var) else ():
                self.enter(node)
                moved.append(node.outputs[0])


def views_of(graph: Graph, layouts: Layouts) -> Views:
    """The accesses of all values."""
    views = Views(layouts)
    for node in graph.nodes:
        if is_view(node):
            views.enter(node)
    return views


def holding_views(graph: Graph, layouts: Layouts) -> Views:
    """The accesses of all values, with those of the layouts by which every view of a value is one."""
    held, views = dict(layouts), Views(layouts)
    for node in graph.nodes:
        if is_view(node):
            try:
                views.enter(node)
            except ValueError:
                root = views.access(node.inputs[0]).root
                if not isinstance(root, Var) or held.pop(root, None) is None:
                    raise
                return holding_views(graph, held)
    return views


def part(shape: Shape, key: Any) -> tuple[int, Shape, tuple[int, ...]]:
    """The part of an array in C order that a basic key selects: offset, shape and strides in elements."""
    whole = places(shape)
    seen = selected(whole, key)
    return offset(seen, whole), seen.shape, seen.strides


def part_of(whole: Access, shape: Shape, key: Any) -> tuple[Access, Shape]:
    """The part of a value of this shape that a basic key selects, and its shape."""
    every = places(shape, whole.strides)
    seen = selected(every, key)
    return Access(whole.root, whole.offset + offset(seen, every), seen.strides), seen.shape

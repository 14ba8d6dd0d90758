"""Arithmetic of Python's numbers in native programs, which compute as NumPy does and decline where Python would not.

    y = div x n            a = astype x;  b = astype n;  q = div a b;  y = python_number q q
    k = mul m n            a = astype m;  b = astype n;  p = mul a b;  s = mul (as floats);  k = python_number p s
    k = power m n          a, b as floats;  p = power a b;  r = rint p as an integer;  s = 4096 p, or infinite;  k = python_number r s

What a program declines is for the interpreter, which runs Python's own operators: they raise, or count beyond 64 bits. A power of an
integer is computed in floats, whose error is less than a quarter up to 2**50; by a negative exponent it is a float, which is declined.
Counters of loops stay what they are.
"""

from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import count
from operator import is_
from typing import Any

import numpy as np

from pullback.backends.native.bodies.body_functions import counting
from pullback.backends.nests.fusion import is_safe_on_python_numbers
from pullback.core.primitive import Primitive
from pullback.core.types import ArrayType
from pullback.ir.graph import Atom, Graph, Literal, Node, Var
from pullback.passes.powers import HIGHEST
from pullback.rules import elementwise, logic, rounding
from pullback.rules.python_numbers import python_number
from pullback.rules.shapes import astype

_WHOLE_QUOTIENTS = frozenset({rounding.floor_divide, rounding.remainder})
_CHECKED = _WHOLE_QUOTIENTS | {
    elementwise.add,
    elementwise.sub,
    elementwise.mul,
    elementwise.div,
    elementwise.neg,
    elementwise.absolute,
    elementwise.power,
}
_FLOAT = np.dtype(np.float64)
_TRUTH = np.dtype(bool)

#: Whole numbers below it are floats.
_LARGEST_EXPONENT = 2.0**53

#: An integer is declined from 2**62 on, and a power from 2**50 on.
_SIZE_OF_POWERS = 2.0**12


def check_python_numbers(graph: Graph, counters: Collection[int] = ()) -> Graph:
    """Compute in 64 bits what Python computes without limits, and check that it fits, inside loops and branches too."""
    numbers = count(1 + max((var.index for var in (*graph.inputs, *_made(graph))), default=-1))
    nodes: list[Node] = []
    for node in graph.nodes:
        if _has_to_be_checked(node) and id(node) not in counters:
            nodes.extend(_Checking(node, numbers).nodes())
        else:
            nodes.append(_with_checked_bodies(node))
    is_same = len(nodes) == len(graph.nodes) and all(map(is_, nodes, graph.nodes))
    return graph if is_same else replace(graph, nodes=tuple(nodes))


def _made(graph: Graph) -> Iterator[Var]:
    yield from (capture.var for capture in graph.captures)
    yield from (var for node in graph.nodes for var in node.outputs)


def _with_checked_bodies(node: Node) -> Node:
    """A loop or branch with its graphs checked; itself where they are right as they are."""
    consts: int = dict(node.params).get("consts", len(node.inputs))
    checked: dict[int, tuple[Graph, Graph]] = {}
    for _, body in node.bodies():
        starts = dict(zip(body.inputs[consts:], node.inputs[consts:], strict=False))
        checked[id(body)] = body, check_python_numbers(body, counting(body, starts))
    if all(before is after for before, after in checked.values()):
        return node
    return node.with_bodies(lambda body: checked[id(body)][1])


def _has_to_be_checked(node: Node) -> bool:
    result = node.outputs[0].type
    if not result.weak or result.dtype.kind not in "fi" or node.primitive not in _CHECKED:
        return False
    if node.primitive is elementwise.power and result.dtype.kind == "i":
        exponent = node.inputs[1]  # Python's power by a negative one is a float
        if isinstance(exponent, Literal) and exponent.value < 0:
            return False
    return not is_safe_on_python_numbers(node)


class _Checking:
    """The nodes for one of Python's numbers."""

    def __init__(self, node: Node, numbers: Iterator[int]) -> None:
        self._node = node
        self._numbers = numbers
        self._nodes: list[Node] = []

    def nodes(self) -> list[Node]:
        """All of them; the last gives the number."""
        node = self._node
        dtype = node.outputs[0].type.dtype
        if node.primitive is elementwise.power and dtype != _FLOAT and not self._is_product():
            value, size = self._power(dtype)
        else:
            value = size = self._computed(node.primitive, dtype)
            if dtype != _FLOAT:
                in_floats = elementwise.div if node.primitive in _WHOLE_QUOTIENTS else node.primitive
                size = self._computed(in_floats, _FLOAT)
        self._nodes.append(Node(python_number, (value, size), (), node.outputs, node.source))
        return self._nodes

    def _made(
        self, primitive: Primitive, inputs: tuple[Atom, ...], to: np.dtype[Any], params: tuple[Any, ...] = ()
    ) -> Var:
        result = Var(next(self._numbers), ArrayType((), to))
        self._nodes.append(Node(primitive, inputs, params, (result,), self._node.source))
        return result

    def _as(self, to: np.dtype[Any], atom: Atom) -> Atom:
        if isinstance(atom, Literal):
            return Literal(to.type(atom.value), ArrayType((), to))
        return self._made(astype, (atom,), to, (("dtype", to),))

    def _computed(self, primitive: Primitive, to: np.dtype[Any]) -> Atom:
        inputs = tuple([self._as(to, atom) for atom in self._node.inputs])
        if primitive is not elementwise.power or to == _FLOAT:
            return self._made(primitive, inputs, to)
        product = inputs[0]
        for _ in range(self._node.inputs[1].value - 1):  # type: ignore[union-attr]  # it is known
            product = self._made(elementwise.mul, (product, inputs[0]), to)
        return product

    def _is_product(self) -> bool:
        exponent = self._node.inputs[1]
        return isinstance(exponent, Literal) and 0 < exponent.value <= HIGHEST

    def _power(self, dtype: np.dtype[Any]) -> tuple[Atom, Atom]:
        """The power of an integer by an exponent that may be any integer, and its size."""
        base, exponent = (self._as(_FLOAT, atom) for atom in self._node.inputs)
        power = self._made(elementwise.power, (base, exponent), _FLOAT)
        whole = self._as(dtype, self._made(rounding.rint, (power,), _FLOAT))
        least = self._made(logic.greater_equal, (exponent, _float(0.0)), _TRUTH)
        most = self._made(logic.less, (exponent, _float(_LARGEST_EXPONENT)), _TRUTH)
        is_known = self._made(logic.logical_and, (least, most), _TRUTH)
        size = self._made(elementwise.mul, (power, _float(_SIZE_OF_POWERS)), _FLOAT)
        return whole, self._made(elementwise.where, (is_known, size, _float(np.inf)), _FLOAT)


def _float(value: float) -> Literal:
    return Literal(_FLOAT.type(value), ArrayType((), _FLOAT))

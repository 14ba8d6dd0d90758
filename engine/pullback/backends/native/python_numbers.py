"""Arithmetic of Python's numbers in native programs, which compute as NumPy does and decline where Python would not.

    y = div x n            a = astype x;  b = astype n;  q = div a b;  y = python_number q q
    k = mul m n            a = astype m;  b = astype n;  p = mul a b;  s = mul (as floats);  k = python_number p s

What a program declines is for the interpreter, which runs Python's own operators: they raise, or count beyond 64 bits.
Numbers inside loops and branches are left as they are.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np

from pullback.backends.nests.fusing import is_safe_on_python_numbers
from pullback.core.primitive import Primitive
from pullback.core.types import ArrayType
from pullback.ir.graph import Atom, Graph, Literal, Node, Var
from pullback.passes.powers import HIGHEST
from pullback.rules import elementwise, rounding
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


def check_python_numbers(graph: Graph) -> Graph:
    """Compute in 64 bits what Python computes without limits, and check that it fits."""
    if not any(map(_has_to_be_checked, graph.nodes)):
        return graph
    numbers = count(1 + max(var.index for var in (*graph.inputs, *_made(graph))))
    nodes: list[Node] = []
    for node in graph.nodes:
        nodes.extend(_checked(node, numbers) if _has_to_be_checked(node) else [node])
    return replace(graph, nodes=tuple(nodes))


def _made(graph: Graph) -> Iterator[Var]:
    yield from (capture.var for capture in graph.captures)
    yield from (var for node in graph.nodes for var in node.outputs)


def _has_to_be_checked(node: Node) -> bool:
    result = node.outputs[0].type
    if not result.weak or result.dtype.kind not in "fi" or node.primitive not in _CHECKED:
        return False
    if node.primitive is elementwise.power and result.dtype.kind == "i":
        exponent = node.inputs[1]  # Python's power by a negative one is a float
        if not isinstance(exponent, Literal) or not 0 < exponent.value <= HIGHEST:
            return False
    return not is_safe_on_python_numbers(node)


def _checked(node: Node, numbers: Iterator[int]) -> Iterator[Node]:
    """Nodes for one of Python's numbers."""

    def made(
        primitive: Primitive, inputs: tuple[Atom, ...], to: np.dtype[np.generic], params: tuple[Any, ...] = ()
    ) -> Node:
        return Node(primitive, inputs, params, (Var(next(numbers), ArrayType((), to)),), node.source)

    def computed(primitive: Primitive, to: np.dtype[np.generic]) -> Iterator[Node]:
        inputs: list[Atom] = []
        for atom in node.inputs:
            if isinstance(atom, Literal):
                inputs.append(Literal(to.type(atom.value), ArrayType((), to)))
            else:
                yield (cast := made(astype, (atom,), to, (("dtype", to),)))
                inputs.append(cast.outputs[0])
        if primitive is not elementwise.power or to == _FLOAT:
            yield made(primitive, tuple(inputs), to)
            return
        product = inputs[0]
        for _ in range(node.inputs[1].value - 1):  # type: ignore[union-attr]  # it is known
            yield (step := made(elementwise.mul, (product, inputs[0]), to))
            product = step.outputs[0]

    dtype = node.outputs[0].type.dtype
    steps = list(computed(node.primitive, dtype))
    value = size = steps[-1].outputs[0]
    if dtype != _FLOAT:
        steps += computed(elementwise.div if node.primitive in _WHOLE_QUOTIENTS else node.primitive, _FLOAT)
        size = steps[-1].outputs[0]
    yield from steps
    yield Node(python_number, (value, size), (), node.outputs, node.source)

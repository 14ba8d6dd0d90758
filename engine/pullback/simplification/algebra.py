"""Algebra that is exact in floating point: the result has the same bits, fewer operations make it.

1 * x            -> x               where the types agree
x * x            -> square(x)       so that squares written in different ways are found equal
-(-x)            -> x
f(broadcast(x))  -> f(x)            where f broadcasts by itself and the result keeps its shape
"""

from dataclasses import replace

import numpy as np

from pullback.core.kinds import Scalar
from pullback.core.primitive import Effect
from pullback.ir.graph import Atom, Graph, Literal, Node, Var
from pullback.rules import elementwise, shapes
from pullback.simplification.rewriting import rewrite


def simplify_algebra(graph: Graph) -> Graph:
    """Apply the rewrites of this page, in one walk."""
    makers: dict[Var, Node] = {}

    def step(node: Node) -> Node | Atom:
        result = _simplified(node, makers)
        if isinstance(result, Node):
            makers.update((var, result) for var in result.outputs)
        return result

    return rewrite(graph, step)


def _simplified(node: Node, makers: dict[Var, Node]) -> Node | Atom:
    if _is_constant(node):
        return _folded(node)
    if isinstance(node.primitive, Scalar):
        node = _without_broadcasts(node, makers)
    if node.primitive is elementwise.mul:
        a, b = node.inputs
        for one, other in ((a, b), (b, a)):
            if _is_number(one, 1) and other.type == node.outputs[0].type and isinstance(other, Var):
                return other
        if a is b:
            return _square_of(a, node)
    if node.primitive is elementwise.power and _is_number(node.inputs[1], 2):
        return _square_of(node.inputs[0], node)
    if node.primitive is elementwise.neg and isinstance(node.inputs[0], Var):
        maker = makers.get(node.inputs[0])
        if maker is not None and maker.primitive is elementwise.neg:
            return maker.inputs[0]
    return node


def _without_broadcasts(node: Node, makers: dict[Var, Node]) -> Node:
    inputs = list(node.inputs)
    for position, atom in enumerate(inputs):
        maker = makers.get(atom) if isinstance(atom, Var) else None
        if maker is None or maker.primitive is not shapes.broadcast_to:
            continue
        candidate = [*inputs[:position], maker.inputs[0], *inputs[position + 1 :]]
        if np.broadcast_shapes(*(operand.type.shape for operand in candidate)) == node.outputs[0].type.shape:
            inputs = candidate
    return node.reading(tuple(inputs))


def _square_of(atom: Atom, node: Node) -> Node:
    # A square of a Python number stays a Python number only through Python's own operators; truth values have no square.
    # A power of a float32 and a number of NumPy's is a float64, a square is not.
    return (
        node
        if atom.type.weak or atom.type.dtype.kind == "b" or atom.type.dtype != node.outputs[0].type.dtype
        else replace(node, primitive=elementwise.square, inputs=(atom,))
    )


def _folded(node: Node) -> Literal:
    operands = [atom.value for atom in node.inputs if isinstance(atom, Literal)]
    value = node.primitive.evaluate(*operands, **dict(node.params))
    if isinstance(value, np.ndarray):
        value = value[()]  # a number, not an array that callers could write to
    return Literal(value, node.outputs[0].type)


def _is_constant(node: Node) -> bool:
    return (
        node.primitive.effect is Effect.NONE
        and all(isinstance(atom, Literal) for atom in node.inputs)
        and len(node.outputs) == 1
        and node.outputs[0].type.shape == ()
    )


def _is_number(atom: Atom, number: int) -> bool:
    return isinstance(atom, Literal) and bool(atom.value == number)

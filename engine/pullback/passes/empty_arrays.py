"""Arrays without elements, which native programs do not compute with, are removed from expressions that have elements.

    c = matmul a b              of no columns and no rows      ->    c = broadcast_to 0.0
    y = concatenate a b         b without elements             ->    y = concatenate a
    y = set_at x v              v without elements             ->    y = x; add_at as well

What makes them is dead code then. They come from steps of a triangular solver in Python (`L[i, :i] @ y[:i]`, i = 0), from
`x[:0]`, and from the gradients of both.
"""

from dataclasses import replace

import numpy as np

from pullback.core.primitive import Effect
from pullback.core.types import ArrayType
from pullback.ir.graph import Atom, Graph, Literal, Node, Var
from pullback.passes.loops.form import applied
from pullback.rules.joining import concatenate
from pullback.rules.shapes import broadcast_to
from pullback.rules.storing import add_at, set_at
from pullback.simplification.rewriting import rewrite


def leave_out_empty(graph: Graph) -> Graph:
    """Rewrite what is on this page, inside loops and branches too."""
    return rewrite(graph, _rewritten)


def _rewritten(node: Node) -> Node | Atom:
    if node.bodies():
        return node.with_bodies(leave_out_empty)
    result, *others = (var.type for var in node.outputs)
    if all(atom.type.size for atom in node.inputs) or others or not result.size:
        return node
    if node.primitive in (set_at, add_at):  # the target has elements, so that value or positions have none
        return node.inputs[0]
    if node.primitive is concatenate:
        parts = tuple(atom for atom in node.inputs if atom.type.size)
        keeps_dtype = np.result_type(*(atom.type.dtype for atom in parts)) == result.dtype
        return node if not keeps_dtype else node.reading(parts) if len(parts) > 1 else parts[0]
    return _number(node, result)


def _number(node: Node, result: ArrayType) -> Node | Atom:
    """The same number everywhere, where nothing but that can come of operands without elements."""
    if (
        any(isinstance(atom, Var) and atom.type.size for atom in node.inputs)
        or node.primitive.effect is not Effect.NONE
    ):
        return node
    operands = [
        atom.value if isinstance(atom, Literal) else np.empty(atom.type.shape, atom.type.dtype) for atom in node.inputs
    ]
    array = np.asarray(node.primitive.evaluate(*operands, **dict(node.params)))
    first = array.reshape(-1)[0]
    if result.weak or array.tobytes() != first.tobytes() * array.size:
        return node
    number = Literal(first, ArrayType((), result.dtype))
    if not result.shape:
        return number
    return replace(applied(broadcast_to, [number], node.source, shape=result.shape), outputs=node.outputs)

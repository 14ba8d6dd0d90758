"""Packing: a matrix that every step multiplies by, transposed once before the loop where steps would read it across.

    scan b x {…}                       c = copy b
      body(b, h, x):             ->    scan c x {…}
        z = matmul h b                   body(c, h, x):
                                           z = matmul h c

A product of a few rows by a transposed matrix costs a third more than by a straight one, in each step (32 x 512 x 128: 57
instead of 78 billion operations a second). One row reads the matrix once: where that comes from the cache, sums that lie in
lanes are better than lanes that have to be summed (1 x 32 x 128: 68 instead of 173 ns), where it does not, nothing matters
but the way to the memory.
"""

from collections.abc import Mapping
from itertools import count

from pullback.control.scan_rule import Layout, scan
from pullback.ir.graph import Atom, Graph, Node, Var
from pullback.rules.contractions import matmul
from pullback.rules.inplace import copy
from pullback.rules.shapes import transpose

#: A matrix of so many bytes stays in the second cache from step to step.
_CACHED_BYTES = 1 << 18


def pack_before_loops(graph: Graph) -> Graph:
    """Copy transposed constants of every scan whose products read them as their right factor."""
    makers = {var: node for node in graph.nodes for var in node.outputs}
    numbers = count(1 + max((var.index for node in graph.nodes for var in node.outputs), default=0))
    nodes: list[Node] = []
    for node in graph.nodes:
        inner = node.with_bodies(pack_before_loops)
        if node.primitive is scan:
            inner = _packed(inner, makers, nodes, numbers)
        nodes.append(inner)
    return Graph(graph.inputs, graph.captures, tuple(nodes), graph.outputs, graph.guards)


def _packed(node: Node, makers: Mapping[Var, Node], before: list[Node], numbers: "count[int]") -> Node:
    layout = Layout(dict(node.params))
    inputs: list[Atom] = list(node.inputs)
    for number in layout.const_inputs if layout.length > 1 else ():
        if _is_transposed(inputs[number], makers) and _is_factor_of_rows(layout.body.inputs[number], layout.body):
            packed = Var(next(numbers), inputs[number].type)
            before.append(Node(copy, (inputs[number],), (), (packed,), node.source))
            inputs[number] = packed
    return Node(node.primitive, tuple(inputs), node.params, node.outputs, node.source)


def _is_transposed(atom: Atom, makers: Mapping[Var, Node]) -> bool:
    """True if a matrix is the transpose of what lies straight."""
    maker = makers.get(atom) if isinstance(atom, Var) else None
    if maker is None or maker.primitive is not transpose or len(atom.type.shape) != 2:
        return False
    before = makers.get(maker.inputs[0]) if isinstance(maker.inputs[0], Var) else None
    return before is None or before.primitive is not transpose


def _is_factor_of_rows(var: Var, body: Graph) -> bool:
    """True if a body reads a value as the right factor of products, of several rows if it is large, and in no other way."""
    readers = [node for node in body.nodes if var in node.inputs]
    return (
        bool(readers)
        and all(
            node.primitive is matmul
            and node.inputs[0] is not var
            and (_has_rows(node.inputs[0]) or var.type.nbytes <= _CACHED_BYTES)
            for node in readers
        )
        and not any(atom is var for atom in body.outputs)
    )


def _has_rows(atom: Atom) -> bool:
    return len(atom.type.shape) > 1 and atom.type.shape[-2] > 1

"""Sunk additions: what is added to an operand of every step, before the loop, is added in the step.

    c = add a b                        scan b a … {…}
    scan c … {…}                ->       body(b, a, …):
      body(c, …):                          c = add a b
        z = add c (matmul h w)             z = add c (matmul h w)

Products with all inputs are done before a loop, and what follows from them was done there with them: all of the product is
written and read once more for it. In the step it is one operation more on what is read anyway. Only operations that cost no
more than that are taken in, of one array for all steps and constants, where only the loop reads the result.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from pullback.control.scan_rule import scan
from pullback.core.kinds import Scalar
from pullback.core.types import ArrayType
from pullback.ir.graph import Atom, Graph, Literal, Node, Var
from pullback.passes.loops.form import Loop, rewrite_loops
from pullback.rules import elementwise

_CHEAP = frozenset({elementwise.add, elementwise.sub, elementwise.mul, elementwise.neg})


def sink_additions(graph: Graph) -> Graph:
    """Move such operations into every scan, inside loops and branches too."""
    graph = replace(graph, nodes=tuple(node.with_bodies(sink_additions) for node in graph.nodes))
    if not any(node.primitive is scan for node in graph.nodes):
        return graph
    makers = {var: node for node in graph.nodes for var in node.outputs}
    uses = graph.uses()

    def change(loop: Loop, _read: set[Atom]) -> None:
        for pair in list(loop.xs):
            _sink_addition(loop, pair, makers, uses)

    return rewrite_loops(graph, change)


def _sink_addition(loop: Loop, pair: tuple[Var, Atom], makers: Mapping[Var, Node], uses: Counter[Atom]) -> None:
    inside, stack = pair
    maker = makers.get(stack) if isinstance(stack, Var) else None
    if maker is None or maker.primitive not in _CHEAP or uses[stack] != 1 or not _is_computed_with(loop, inside):
        return
    entries = [atom for atom in maker.inputs if atom.type.shape == maker.outputs[0].type.shape]
    others = [atom for atom in maker.inputs if atom not in entries]
    if len(entries) != 1 or not all(_is_same_in_all_steps(atom, maker) for atom in others):
        return
    (entry,) = entries
    if not isinstance(entry, Var) or maker.outputs[0].type.dtype != entry.type.dtype:
        return
    row = Var(-1, ArrayType(entry.type.shape[1:], entry.type.dtype))
    names: dict[Atom, Atom] = {entry: row}
    for atom in others:
        if isinstance(atom, Var):
            names[atom] = Var(-1, atom.type)
            loop.consts.append((names[atom], atom))  # type: ignore[arg-type] # a Var, from the line above
    loop.xs[loop.xs.index(pair)] = (row, entry)
    inputs = tuple(names.get(atom, atom) for atom in maker.inputs)
    loop.nodes.insert(0, replace(maker, inputs=inputs, outputs=(inside,)))


def _is_computed_with(loop: Loop, inside: Var) -> bool:
    """True if an entry is read by elementwise nodes of the step alone, which are the ones to add it to."""
    readers = [node for node in loop.nodes if inside in node.inputs]
    given = [*(one.after for one in loop.carries), *(atom for atom, _ in loop.ys)]
    return bool(readers) and inside not in given and all(isinstance(node.primitive, Scalar) for node in readers)


def _is_same_in_all_steps(atom: Atom, maker: Node) -> bool:
    """True if an operand is one for all steps: broadcast along the first axis, without being as long as that."""
    return isinstance(atom, Literal) or len(atom.type.shape) < len(maker.outputs[0].type.shape)

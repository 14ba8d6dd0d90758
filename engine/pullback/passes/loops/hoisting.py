"""Hoisting: what no step of a loop changes is computed once, before it.

    scan a x {…}                       b = transpose a
      body(a, c, x):             ->    scan b x {…}
        d = transpose a                  body(d, c, x):
        e = matmul d c                     e = matmul d c

A loop of no steps is left alone, as it would be spared the work.
"""

from dataclasses import replace

from pullback.core.primitive import Effect
from pullback.ir.graph import Atom, Graph, Node, Var
from pullback.passes.loops.form import Loop, rewrite_loops


def hoist_invariants(graph: Graph) -> Graph:
    """Move what depends on constants alone out of every scan."""
    return rewrite_loops(graph, _hoist)


def _hoist(loop: Loop, read: set[Atom]) -> None:
    del read
    if not loop.length:
        return
    outside: dict[Var, Atom] = dict(loop.consts)
    kept: list[Node] = []
    moved: dict[Var, Var] = {}
    for node in loop.nodes:
        if node.primitive.effect is not Effect.NONE or not all(
            not isinstance(atom, Var) or atom in outside for atom in node.inputs
        ):
            kept.append(node)
            continue
        outputs = tuple(Var(-1, var.type) for var in node.outputs)
        inputs = tuple(outside[atom] if isinstance(atom, Var) else atom for atom in node.inputs)
        loop.before.append(replace(node, inputs=inputs, outputs=outputs))
        outside.update(zip(node.outputs, outputs, strict=True))
        moved.update(zip(node.outputs, outputs, strict=True))
    loop.nodes = kept
    still_read = loop.read()
    loop.consts = [(var, atom) for var, atom in (*loop.consts, *moved.items()) if var in still_read]

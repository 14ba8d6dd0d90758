"""Hoisting: what no step of a loop changes is computed once, before it.

    scan a x {…}                       b = transpose a
      body(a, c, x):             ->    scan b x {…}
        d = transpose a                  body(d, c, x):
        e = matmul d c                     e = matmul d c

A loop of no steps is left alone, as it would be spared the work. How many steps a `while` takes is not known: what is computed before it
must neither warn nor raise for nothing. A native program does neither; where Python or NumPy would raise, it declines.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pullback.control.while_rule import while_
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
    before, loop.nodes, moved = _split(loop.nodes, dict(loop.consts))
    loop.before += before
    still_read = loop.read()
    loop.consts = [(var, atom) for var, atom in (*loop.consts, *moved.items()) if var in still_read]


def _split(nodes: Sequence[Node], consts: Mapping[Var, Atom]) -> tuple[list[Node], list[Node], dict[Var, Var]]:
    """The nodes that go before a loop, those that stay, and what the first give by its name in the body."""
    outside = dict(consts)
    before: list[Node] = []
    inner: list[Node] = []
    moved: dict[Var, Var] = {}
    for node in nodes:
        if node.primitive.effect is not Effect.NONE or not all(
            not isinstance(atom, Var) or atom in outside for atom in node.inputs
        ):
            inner.append(node)
            continue
        outputs = tuple(Var(-1, var.type) for var in node.outputs)
        inputs = tuple(outside[atom] if isinstance(atom, Var) else atom for atom in node.inputs)
        before.append(replace(node, inputs=inputs, outputs=outputs))
        outside.update(zip(node.outputs, outputs, strict=True))
        moved.update(zip(node.outputs, outputs, strict=True))
    return before, inner, moved


def hoist_from_whiles(graph: Graph) -> Graph:
    """Move what depends on constants alone out of the body of every `while` of a native program."""
    nodes: list[Node] = []
    for node in graph.nodes:
        inside = node.with_bodies(hoist_from_whiles)
        nodes += _before_while(inside) if inside.primitive is while_ else [inside]
    return replace(graph, nodes=tuple(nodes))


def _before_while(node: Node) -> list[Node]:
    params = dict(node.params)
    body, condition, consts = params["body"], params["condition"], params["consts"]
    before, inner, moved = _split(body.nodes, dict(zip(body.inputs[:consts], node.inputs[:consts], strict=True)))
    read = {*body.outputs, *(atom for node_inside in inner for atom in node_inside.inputs)}
    new = {inside: outside for inside, outside in moved.items() if inside in read}
    params["body"] = replace(body, nodes=tuple(inner), inputs=(*body.inputs[:consts], *new, *body.inputs[consts:]))
    unread = (Var(-1, var.type) for var in new)
    params["condition"] = replace(condition, inputs=(*condition.inputs[:consts], *unread, *condition.inputs[consts:]))
    params["consts"] = consts + len(new)
    inputs = (*node.inputs[:consts], *new.values(), *node.inputs[consts:])
    return [*before, replace(node, inputs=inputs, params=tuple(sorted(params.items())))]

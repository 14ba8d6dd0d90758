"""Products of the inputs of a loop, for all steps at once.

What a step computes from constants and its own inputs alone, without the carry, can be computed for all steps before the
loop. It is where a product is among it, with everything that feeds the product or follows from it: one large product
instead of many small ones (the `w @ x` of a recurrent layer). A result per step of that kind is not collected at all.

    scan w u h xs {…}                    p = xs @ w^T             (every row of xs at once)
      body(w, u, h, x):             ->   scan u h p {…}
        a = matmul w x                     body(u, h, a):
        b = matmul u h                       b = matmul u h

And the other way round: what leads from a product to results only, never to the next step, is done after the loop (the
`w^T @ delta` for the inputs of a recurrent layer, in the backward pass).

The rules' own batched forms do it, so each example's product is the same sum of the same terms.
"""

from collections.abc import Sequence
from dataclasses import replace

from pullback.control.body_transforms import batched
from pullback.core.kinds import Bilinear, Linear, Scalar
from pullback.core.primitive import Effect, Primitive
from pullback.ir.graph import Atom, Graph, Node, Var
from pullback.passes.loops.form import Loop, rewrite_loops


def split_products(graph: Graph) -> Graph:
    """Do the products of inputs of every scan at once, before it."""
    return rewrite_loops(graph, _split)


def _split(loop: Loop, _read: set[Atom]) -> None:
    if loop.length < 2:
        return
    constant = {var for var, _ in loop.consts}
    entries = {var for var, _ in loop.xs if not var.type.weak}
    independent: list[Node] = []
    inside = constant | entries
    for node in loop.nodes:
        if _works_on_batches(node.primitive) and all(not isinstance(a, Var) or a in inside for a in node.inputs):
            independent.append(node)
            inside |= set(node.outputs)
    results = [atom for atom, _ in loop.ys if isinstance(atom, Var)]
    moved = _around_products(independent, results)
    if moved:
        _move(loop, moved, entries)
    _take_back_entries(loop)
    _move_behind(loop)


def _works_on_batches(primitive: Primitive) -> bool:
    """True if a rule has a form for a whole batch; the others would take the steps one by one."""
    if primitive.effect is not Effect.NONE or primitive.results > 1:
        return False
    if isinstance(primitive, Linear | Bilinear):
        return primitive.has_batch
    return isinstance(primitive, Scalar) or type(primitive).batch is not Primitive.batch


def _around_products(nodes: Sequence[Node], results: Sequence[Var]) -> list[Node]:
    """Products, what feeds them and what follows from them; and what leads to nothing but a result per step."""
    chosen: set[Atom] = set(results)
    for node in nodes:
        if isinstance(node.primitive, Bilinear) or chosen.difference(results).intersection(node.inputs):
            chosen.update(node.outputs)
    for node in reversed(nodes):
        if chosen.intersection(node.outputs):
            chosen.update(node.inputs)
    return [node for node in nodes if chosen.intersection(node.outputs)]


def _move(loop: Loop, moved: list[Node], entries: set[Var]) -> None:
    """Compute what was moved before the loop, and hand it to the steps."""
    rest = _without(loop.nodes, moved)
    read = {atom for node in rest for atom in node.inputs} | {carry.after for carry in loop.carries}
    read |= {atom for atom, _ in loop.ys}
    frontier = [var for node in moved for var in node.outputs if var in read]
    at_once = _at_once(loop, moved, frontier, dict((*loop.consts, *loop.xs)), entries)
    if at_once is None:
        return
    nodes, stacked = at_once
    loop.before += nodes
    loop.nodes = rest
    loop.xs += zip(frontier, stacked, strict=True)
    _drop_unread(loop)


def _move_behind(loop: Loop) -> None:
    """Products that lead to results only, never to the next step, are done for all steps at once, after the loop."""
    carried: set[Atom] = {carry.after for carry in loop.carries}
    for node in reversed(loop.nodes):
        if carried.intersection(node.outputs) or not _works_on_batches(node.primitive):
            carried.update(node.inputs)
    free = [node for node in loop.nodes if not carried.intersection(node.outputs)]
    follows: set[Atom] = set()
    moved = []
    for node in free:
        if isinstance(node.primitive, Bilinear) or follows.intersection(node.inputs):
            follows.update(node.outputs)
            moved.append(node)
    own = {var for node in moved for var in node.outputs}
    results = [(atom, result) for atom, result in loop.ys if isinstance(atom, Var) and atom in own]
    if not results:
        return
    constant = dict(loop.consts)
    read = dict.fromkeys(a for node in moved for a in node.inputs if isinstance(a, Var) and a not in own)
    if any(var.type.weak for var in read if var not in constant):
        return
    operands: dict[Var, Atom] = {var: constant[var] if var in constant else loop.stack(var) for var in read}
    frontier = list(dict.fromkeys(atom for atom, _ in results))
    at_once = _at_once(loop, moved, frontier, operands, set(read) - set(constant))
    if at_once is None:
        return
    nodes, stacked = at_once
    loop.behind = [*nodes, *loop.behind]
    loop.nodes = _without(loop.nodes, moved)
    where = dict(zip(frontier, stacked, strict=True))
    loop.replaced.update((result, where[atom]) for atom, result in results)
    loop.ys = [(atom, result) for atom, result in loop.ys if result not in loop.replaced]
    _drop_unread(loop)


def _at_once(
    loop: Loop, moved: Sequence[Node], frontier: Sequence[Var], operands: dict[Var, Atom], stacked: set[Var]
) -> tuple[list[Node], list[Atom]] | None:
    """Nodes that compute for all steps what the moved ones compute for one, and where the frontier then is."""
    inputs = [var for var in operands if any(var in node.inputs for node in moved)]
    body = Graph(tuple(inputs), (), tuple(moved), tuple(frontier))
    whole, _ = batched(body, [var in stacked for var in inputs], [True] * len(frontier), loop.length)
    if whole.consts:
        return None  # a rule made an array; nothing is moved for it
    substitutes: dict[Atom, Atom] = dict(zip(whole.inputs, (operands[var] for var in inputs), strict=True))
    nodes = [
        replace(node, inputs=tuple(substitutes.get(atom, atom) for atom in node.inputs)) for node in whole.graph.nodes
    ]
    return nodes, [substitutes.get(atom, atom) for atom in whole.outputs]


def _without(nodes: Sequence[Node], moved: Sequence[Node]) -> list[Node]:
    gone = {var for node in moved for var in node.outputs}
    return [node for node in nodes if not gone.issuperset(node.outputs)]


def _drop_unread(loop: Loop) -> None:
    still_read = loop.read()
    loop.consts = [(var, atom) for var, atom in loop.consts if var in still_read]
    loop.xs = [(var, atom) for var, atom in loop.xs if var in still_read]


def _take_back_entries(loop: Loop) -> None:
    """A result per step that is an input of the step is that operand."""
    operands = dict(loop.xs)
    for atom, result in loop.ys:
        if isinstance(atom, Var) and atom in operands:
            loop.replaced[result] = operands[atom]
    loop.ys = [(atom, result) for atom, result in loop.ys if result not in loop.replaced]
    still_read = loop.read()
    loop.xs = [(var, atom) for var, atom in loop.xs if var in still_read]

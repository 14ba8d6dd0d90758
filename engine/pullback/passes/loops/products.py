"""Products of what comes in, for all steps at once.

What a step computes from constants and its own inputs alone, without the carry, can be computed for all steps before the
loop. It is where a product is among it, with everything that feeds the product or follows from it: one large product
instead of many small ones (the `w @ x` of a recurrent layer). A result per step of that kind is not collected at all.

    scan w u h xs {…}                    p = xs @ w^T             (every row of xs at once)
      body(w, u, h, x):             ->   scan u h p {…}
        a = matmul w x                     body(u, h, a):
        b = matmul u h                       b = matmul u h

The rules' own batched forms do it, so each example's product is the same sum of the same terms.
"""

from collections.abc import Sequence

from pullback.control.transformed import batched
from pullback.ir.graph import Atom, Graph, Node, Var
from pullback.kinds import Bilinear, Linear, Scalar
from pullback.passes.loops.form import Loop, rewrite_loops
from pullback.primitive import Effect, Primitive


def split_products(graph: Graph) -> Graph:
    """Do the products of inputs of every scan at once, before it."""
    return rewrite_loops(graph, _split)


def _split(loop: Loop, read: set[Atom]) -> None:
    del read
    if loop.length < 2:
        return
    constant = {var for var, _ in loop.consts}
    entries = {var for var, _ in loop.xs}
    if any(var.type.weak for var in entries):
        return
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


def _works_on_batches(primitive: Primitive) -> bool:
    """Whether a rule has a form for a whole batch; the others would take the steps one by one."""
    if primitive.effect is not Effect.NONE or primitive.results > 1:
        return False
    if isinstance(primitive, Linear | Bilinear):
        return primitive.has_batch
    return isinstance(primitive, Scalar) or type(primitive).batch is not Primitive.batch


def _around_products(nodes: Sequence[Node], results: Sequence[Var]) -> list[Node]:
    """Products, what feeds them and what follows from them; and what leads to nothing but a result per step."""
    chosen = {var for node in nodes if isinstance(node.primitive, Bilinear) for var in node.outputs} | set(results)
    for node in reversed(nodes):
        if chosen.intersection(node.outputs):
            chosen |= {atom for atom in node.inputs if isinstance(atom, Var)}
    moved = []
    follows: set[Var] = {var for node in nodes if isinstance(node.primitive, Bilinear) for var in node.outputs}
    for node in nodes:
        if chosen.intersection(node.outputs) or follows.intersection(node.inputs):
            follows |= set(node.outputs)
            moved.append(node)
    return moved


def _move(loop: Loop, moved: list[Node], entries: set[Var]) -> None:
    """Compute what was moved by the batched forms of its rules, and hand it to the steps."""
    made = {var for node in moved for var in node.outputs}
    kept = [node for node in loop.nodes if not made.issuperset(node.outputs)]
    wanted = {atom for node in kept for atom in node.inputs} | {one.after for one in loop.carries}
    frontier = [var for node in moved for var in node.outputs if var in wanted or any(var is a for a, _ in loop.ys)]
    operands = dict((*loop.consts, *loop.xs))
    inputs = [var for var in operands if any(var in node.inputs for node in moved)]
    body = Graph(tuple(inputs), (), tuple(moved), tuple(frontier))
    whole, differing = batched(body, [var in entries for var in inputs], [True] * len(frontier), loop.length)
    assert all(differing)  # noqa: S101 - asked for
    substitutes: dict[Atom, Atom] = dict(zip(whole.inputs, (operands[var] for var in inputs), strict=True))
    if whole.consts:
        return  # a rule made an array; nothing is moved for it
    for node in whole.graph.nodes:
        loop.before.append(
            Node(
                node.primitive,
                tuple(substitutes.get(atom, atom) for atom in node.inputs),
                node.params,
                node.outputs,
                node.source,
            )
        )
    stacked = [substitutes.get(atom, atom) for atom in whole.outputs]
    loop.nodes = kept
    loop.xs += [(var, atom) for var, atom in zip(frontier, stacked, strict=True)]
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

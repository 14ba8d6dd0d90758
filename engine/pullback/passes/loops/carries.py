"""Carries, inputs and results of loops that are not needed.

- A result per step that is never read is not collected.
- A carry whose last value is never read, and which only feeds itself and others like it, is dropped.
- A carry that is handed on as it came is a constant.
- An operand that comes in twice comes in once, a result that is collected twice is collected once.
"""

from dataclasses import replace

from pullback.ir.graph import Atom, Graph, Node, Var
from pullback.passes.loops.form import Loop, LoopCarry, rewrite_loops


def drop_dead_carries(graph: Graph) -> Graph:
    """Keep of every scan what leads to something."""
    return rewrite_loops(graph, _drop)


def _drop(loop: Loop, read: set[Atom]) -> None:
    loop.ys = [(atom, result) for atom, result in loop.ys if result in read]
    _make_constants(loop)
    _drop_unread(loop, read)
    _merge_operands(loop)
    _merge_results(loop)


def _merge_results(loop: Loop) -> None:
    first: dict[Atom, Var] = {}
    results = []
    for atom, result in loop.ys:
        same = first.setdefault(atom, result)
        if same is result:
            results.append((atom, result))
        else:
            loop.replaced[result] = same
    loop.ys = results


def _make_constants(loop: Loop) -> None:
    unchanged = [carry for carry in loop.carries if carry.after is carry.inside]
    loop.carries = [carry for carry in loop.carries if carry.after is not carry.inside]
    loop.consts += [(carry.inside, carry.start) for carry in unchanged]
    loop.replaced.update((carry.last, carry.start) for carry in unchanged)


def _drop_unread(loop: Loop, read: set[Atom]) -> None:
    """Liveness round the loop: what is live in the next step is live in this one."""
    live = {atom for atom, _ in loop.ys} | {carry.after for carry in loop.carries if carry.last in read}
    living: list[LoopCarry] = []
    while True:
        nodes = _live_nodes(loop, live)
        grown = [carry for carry in loop.carries if carry.inside in live or carry.last in read]
        if len(grown) == len(living):
            break
        living = grown
        live |= {carry.after for carry in living}
    loop.carries, loop.nodes = living, nodes
    inside = loop.read()
    loop.consts = [(var, atom) for var, atom in loop.consts if var in inside]
    loop.xs = [(var, atom) for var, atom in loop.xs if var in inside]


def _live_nodes(loop: Loop, live: set[Atom]) -> list[Node]:
    nodes = []
    for node in reversed(loop.nodes):
        if node.primitive.effect.writes or live.intersection(node.outputs):
            nodes.append(node)
            live.update(node.inputs)
    return nodes[::-1]


def _merge_operands(loop: Loop) -> None:
    """One name in the body for one operand."""
    renamed: dict[Atom, Atom] = {}

    def once(pairs: list[tuple[Var, Atom]]) -> list[tuple[Var, Atom]]:
        first: dict[tuple[Atom, bool], Var] = {}
        unique = []
        for var, atom in pairs:
            name = first.setdefault((atom, var.type.weak), var) if isinstance(atom, Var) else var
            if name is var:
                unique.append((var, atom))
            else:
                renamed[var] = name
        return unique

    loop.consts, loop.xs = once(loop.consts), once(loop.xs)
    if renamed:
        loop.nodes = [
            replace(node, inputs=tuple(renamed.get(atom, atom) for atom in node.inputs)) for node in loop.nodes
        ]
        loop.ys = [(renamed.get(atom, atom), result) for atom, result in loop.ys]
        for carry in loop.carries:
            carry.after = renamed.get(carry.after, carry.after)

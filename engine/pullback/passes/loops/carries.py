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
    kept = []
    for atom, result in loop.ys:
        same = first.setdefault(atom, result)
        if same is result:
            kept.append((atom, result))
        else:
            loop.replaced[result] = same
    loop.ys = kept


def _make_constants(loop: Loop) -> None:
    unchanged = [one for one in loop.carries if one.after is one.inside]
    loop.carries = [one for one in loop.carries if one.after is not one.inside]
    loop.consts += [(one.inside, one.start) for one in unchanged]
    loop.replaced.update((one.last, one.start) for one in unchanged)


def _drop_unread(loop: Loop, read: set[Atom]) -> None:
    """Liveness round the loop: what is live in the next step is live in this one."""
    live = {atom for atom, _ in loop.ys} | {one.after for one in loop.carries if one.last in read}
    living: list[LoopCarry] = []
    while True:
        kept = _live_nodes(loop, live)
        grown = [one for one in loop.carries if one.inside in live or one.last in read]
        if len(grown) == len(living):
            break
        living = grown
        live |= {one.after for one in living}
    loop.carries, loop.nodes = living, kept
    inside = loop.read()
    loop.consts = [(var, atom) for var, atom in loop.consts if var in inside]
    loop.xs = [(var, atom) for var, atom in loop.xs if var in inside]


def _live_nodes(loop: Loop, live: set[Atom]) -> list[Node]:
    kept = []
    for node in reversed(loop.nodes):
        if node.primitive.effect.writes or live.intersection(node.outputs):
            kept.append(node)
            live.update(node.inputs)
    return kept[::-1]


def _merge_operands(loop: Loop) -> None:
    """One name in the body for one operand."""
    renamed: dict[Atom, Atom] = {}

    def once(pairs: list[tuple[Var, Atom]]) -> list[tuple[Var, Atom]]:
        first: dict[tuple[Atom, bool], Var] = {}
        kept = []
        for var, atom in pairs:
            name = first.setdefault((atom, var.type.weak), var) if isinstance(atom, Var) else var
            if name is var:
                kept.append((var, atom))
            else:
                renamed[var] = name
        return kept

    loop.consts, loop.xs = once(loop.consts), once(loop.xs)
    if renamed:
        loop.nodes = [
            replace(node, inputs=tuple(renamed.get(atom, atom) for atom in node.inputs)) for node in loop.nodes
        ]
        loop.ys = [(renamed.get(atom, atom), result) for atom, result in loop.ys]
        for one in loop.carries:
            one.after = renamed.get(one.after, one.after)

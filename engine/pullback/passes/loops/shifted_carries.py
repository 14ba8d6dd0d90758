"""Shifted carries: the value of a carry before each step is its value after the step before.

    …, before, after = scan h0 … {…}           …, after = scan h0 … {…}
      body(…, h):                        ->      body(…, h):
        k = …                                      k = …
        return k, h, k                             return k, k
                                                all = concatenate h0 after
                                                before = index all {key=0:T}

What a loop carries it can write where it is collected, and read it there in the next step; what it was before would be copied
in every step. With `all` made in place there is one copy, of what the loop starts with.
"""

from dataclasses import replace

from pullback.ir.graph import Atom, Graph, Var
from pullback.passes.loops.form import Loop, LoopCarry, applied, rewrite_loops
from pullback.rules.indexing import index
from pullback.rules.joining import concatenate
from pullback.rules.shapes import reshape


def shift_carries(graph: Graph) -> Graph:
    """Collect carries as they become instead of as they were, inside loops and branches too."""
    nodes = tuple(node.with_bodies(shift_carries) for node in graph.nodes)
    return rewrite_loops(replace(graph, nodes=nodes), _shift)


def _shift(loop: Loop, _read: set[Atom]) -> None:
    inner = {var for node in loop.nodes for var in node.outputs}
    for carry in loop.carries:
        collected = next((result for atom, result in loop.ys if atom is carry.inside), None)
        if collected is not None and carry.after in inner and not carry.inside.type.weak:
            loop.ys = [(atom, result) for atom, result in loop.ys if atom is not carry.inside]
            loop.replaced[collected] = _before(loop, carry)


def _before(loop: Loop, carry: LoopCarry) -> Var:
    """The value of a carry before each step."""
    after = loop.stack(carry.after)
    start = applied(reshape, [carry.start], loop.source, shape=(1, *carry.inside.type.shape))
    ends = (after, start.outputs[0]) if loop.reverse else (start.outputs[0], after)
    every = applied(concatenate, ends, loop.source, axis=0)
    key = (slice(1, None),) if loop.reverse else (slice(0, loop.length),)
    before = applied(index, every.outputs, loop.source, key=key)
    loop.behind = [start, every, before, *loop.behind]
    return before.outputs[0]

"""Sums of products over the steps of a loop, done as one product after it.

The backward loop of a recurrent layer adds `delta_t^T h_t` to the gradient of a weight in every step. Stacked, they are
one product, as large as BLAS likes them:

    scan acc h d {…}                     e = scan h d {…}          (collects e)
      body(acc, …):                 ->     body(…):
        p = mul e[:, None] h                 …
        acc = add acc p                      return …, e
        return acc, …                    acc = matmul (transpose e) h

So is a plain sum of something that is collected anyway. The additions come in BLAS's order instead of the loop's.
"""

from collections.abc import Sequence
from math import prod

from pullback.core.primitive import Primitive
from pullback.ir.graph import Atom, Graph, Literal, Node, Var
from pullback.passes.loops.form import Loop, LoopCarry, applied, rewrite_loops
from pullback.rules import shapes
from pullback.rules.contractions import matmul
from pullback.rules.reductions import sum_

add, mul, neg = (Primitive.table[name] for name in ("add", "mul", "neg"))


def sum_after_loops(graph: Graph) -> Graph:
    """Take every sum that a scan only carries out of it, where it is one of products or of what is collected."""
    makers = {var: node for node in graph.nodes for var in node.outputs}

    def change(loop: Loop, _read: set[Atom]) -> None:
        if loop.length:
            for carry in list(loop.carries):
                _take_out(loop, carry, makers)

    return rewrite_loops(graph, change)


def _take_out(loop: Loop, carry: LoopCarry, outer: dict[Var, Node]) -> None:
    chain = _chain_of_additions(loop, carry)
    makers = {var: node for node in loop.nodes for var in node.outputs}
    totals: list[Atom] = []
    rest: list[Atom] = []
    for _, term in chain:
        total = None
        if isinstance(term, Var) and term.type == carry.inside.type:
            total = _product_of_stacks(loop, term, makers) or _sum_of_stack(loop, term, makers)
        if total is None:
            rest.append(term)
            continue
        loop.behind += total[0]
        totals.append(total[1])
    if not totals:
        return
    loop.nodes = [node for node in loop.nodes if all(node is not adder for adder, _ in chain)]
    carry.after = _sum(loop.nodes, [carry.inside, *rest], loop.source)
    wanted = carry.last
    if rest:
        carry.last = Var(-1, wanted.type)
        totals.insert(0, carry.last)
    else:
        loop.carries.remove(carry)
        if not _is_zero(carry.start, outer):
            totals.insert(0, carry.start)
    loop.replaced[wanted] = _sum(loop.behind, totals, loop.source)


def _sum(nodes: list[Node], terms: Sequence[Atom], source: str) -> Atom:
    """The sum of terms, by nodes that are added to a list."""
    total = terms[0]
    for term in terms[1:]:
        nodes.append(applied(add, [total, term], source))
        total = nodes[-1].outputs[0]
    return total


def _chain_of_additions(loop: Loop, carry: LoopCarry) -> list[tuple[Node, Atom]]:
    """The additions from a carry to its next value, each with its addend; none if anything else reads it."""
    outside = [atom for atom, _ in loop.ys] + [other.after for other in loop.carries if other is not carry]
    chain: list[tuple[Node, Atom]] = []
    current: Atom = carry.inside
    while current is not carry.after:
        readers = [node for node in loop.nodes if current in node.inputs]
        if len(readers) != 1 or readers[0].primitive is not add or any(current is atom for atom in outside):
            return []
        first, second = readers[0].inputs
        if first is second:
            return []
        chain.append((readers[0], second if first is current else first))
        current = readers[0].outputs[0]
    is_read = any(current in node.inputs for node in loop.nodes) or any(current is atom for atom in outside)
    return [] if is_read else chain


def _is_zero(atom: Atom, makers: dict[Var, Node]) -> bool:
    """True if a sum starts with nothing: the zeros that a derivative starts with."""
    maker = makers.get(atom) if isinstance(atom, Var) else None
    if maker is not None and maker.primitive is shapes.broadcast_to:
        atom = maker.inputs[0]
    return isinstance(atom, Literal) and bool(atom.value == 0)


def _product_of_stacks(loop: Loop, term: Var, makers: dict[Var, Node]) -> tuple[list[Node], Var] | None:
    """The sum over all steps of `a @ b` or `u[:, None] * v` as one product; also of their negatives and transposes."""
    maker = makers.get(term)
    if maker is None:
        return None
    operand = maker.inputs[0]
    if maker.primitive in (neg, shapes.transpose) and isinstance(operand, Var) and len(operand.type.shape) == 2:
        found = _product_of_stacks(loop, operand, makers)
        if found is None:
            return None
        behind = applied(maker.primitive, [found[1]], loop.source, **dict(maker.params))
        return [*found[0], behind], behind.outputs[0]
    if maker.primitive is matmul and all(len(atom.type.shape) == 2 for atom in maker.inputs):
        return _stacked_matmul(loop, maker)
    if maker.primitive is mul and len(term.type.shape) == 2:
        return _stacked_outer(loop, maker, makers)
    return None


def _stacked_matmul(loop: Loop, maker: Node) -> tuple[list[Node], Var]:
    """sum_t a_t (m, k) @ b_t (k, n) is one product (m, T k) @ (T k, n)."""
    a, b = (loop.stack(atom) for atom in maker.inputs)
    (steps, m, k), n = a.type.shape, b.type.shape[-1]
    transposed = applied(shapes.transpose, [a], loop.source, axes=(1, 0, 2))
    wide = applied(shapes.reshape, [transposed.outputs[0]], loop.source, shape=(m, steps * k))
    tall = applied(shapes.reshape, [b], loop.source, shape=(steps * k, n))
    product = applied(matmul, [wide.outputs[0], tall.outputs[0]], loop.source)
    return [transposed, wide, tall, product], product.outputs[0]


def _stacked_outer(loop: Loop, maker: Node, makers: dict[Var, Node]) -> tuple[list[Node], Var] | None:
    """sum_t u_t[:, None] * v_t is one product u^T (m, T) @ v (T, n)."""
    rows, columns = maker.outputs[0].type.shape
    for column, row in (maker.inputs, maker.inputs[::-1]):
        if column.type.shape == (rows, 1) and row.type.shape[-1:] == (columns,) and prod(row.type.shape) == columns:
            u, v = (_without_ones(atom, makers) for atom in (column, row))
            nodes: list[Node] = []
            left, right = (
                _in_rows(nodes, loop.stack(atom), (loop.length, size), loop.source)
                for atom, size in ((u, rows), (v, columns))
            )
            transposed = applied(shapes.transpose, [left], loop.source, axes=(1, 0))
            product = applied(matmul, [transposed.outputs[0], right], loop.source)
            return [*nodes, transposed, product], product.outputs[0]
    return None


def _in_rows(nodes: list[Node], stack: Var, shape: tuple[int, ...], source: str) -> Var:
    """A stack with one row per step."""
    if stack.type.shape == shape:
        return stack
    nodes.append(applied(shapes.reshape, [stack], source, shape=shape))
    return nodes[-1].outputs[0]


def _without_ones(atom: Atom, makers: dict[Var, Node]) -> Atom:
    """The operand of a reshape that only adds axes of length one; any other value as it is."""
    maker = makers.get(atom) if isinstance(atom, Var) else None
    is_reshape = maker is not None and maker.primitive is shapes.reshape
    return maker.inputs[0] if maker is not None and is_reshape else atom


def _sum_of_stack(loop: Loop, term: Var, makers: dict[Var, Node]) -> tuple[list[Node], Var] | None:
    """The sum over steps of what is stacked anyway, or of a sum of that; None for others: their sum needs no memory."""
    summed, axes = term, (0,)
    maker = makers.get(term)
    if maker is not None and maker.primitive is sum_ and not dict(maker.params)["keepdims"]:
        within = maker.inputs[0]
        if isinstance(within, Var) and within.type.dtype == term.type.dtype and _is_stacked(loop, within):
            summed, axes = within, (0, *(axis + 1 for axis in dict(maker.params)["axes"]))
    if not _is_stacked(loop, summed):
        return None
    total = applied(sum_, [loop.stack(summed)], loop.source, axes=axes, keepdims=False)
    return ([total], total.outputs[0]) if total.outputs[0].type == term.type else None


def _is_stacked(loop: Loop, atom: Atom) -> bool:
    return any(atom is given for given, _ in loop.ys) or any(atom is var for var, _ in loop.xs)

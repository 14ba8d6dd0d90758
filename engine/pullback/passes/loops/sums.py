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

from math import prod

from pullback.ir.graph import Atom, Graph, Literal, Node, Var
from pullback.passes.loops.form import Carried, Loop, applied, rewrite_loops
from pullback.primitive import Primitive
from pullback.rules import shapes
from pullback.rules.contractions import matmul
from pullback.rules.reductions import sum_

add, mul = Primitive.table["add"], Primitive.table["mul"]


def sum_after_loops(graph: Graph) -> Graph:
    """Take every sum that a scan only carries out of it, where it is one of products or of what is collected."""
    makers = {var: node for node in graph.nodes for var in node.outputs}

    def change(loop: Loop, read: set[Atom]) -> None:
        del read
        if loop.length:
            for one in list(loop.carries):
                _take_out(loop, one, makers)

    return rewrite_loops(graph, change)


def _take_out(loop: Loop, one: Carried, outer: dict[Var, Node]) -> None:
    makers = {var: node for node in loop.nodes for var in node.outputs}
    uses = [node for node in loop.nodes if one.inside in node.inputs]
    adder = makers.get(one.after) if isinstance(one.after, Var) else None
    if adder is None or adder.primitive is not add or uses != [adder] or adder.inputs.count(one.inside) != 1:
        return
    if any(atom in (one.inside, one.after) for atom, _ in loop.ys) or _is_read_elsewhere(loop, one, adder):
        return
    term = adder.inputs[1] if adder.inputs[0] is one.inside else adder.inputs[0]
    if not isinstance(term, Var) or term.type != one.inside.type:
        return
    total = _product_of_stacks(loop, term, makers) or _sum_of_stack(loop, term)
    if total is None:
        return
    nodes, result = total
    loop.behind += nodes
    loop.carries.remove(one)
    loop.nodes.remove(adder)
    if _is_zero(one.start, outer):
        loop.replaced[one.last] = result
    else:
        loop.behind.append(Node(add, (one.start, result), (), (one.last,), loop.source))


def _is_read_elsewhere(loop: Loop, one: Carried, adder: Node) -> bool:
    others = [node for node in loop.nodes if node is not adder and one.after in node.inputs]
    return bool(others) or any(other is not one and other.after in (one.after, one.inside) for other in loop.carries)


def _is_zero(atom: Atom, makers: dict[Var, Node]) -> bool:
    """Whether a sum starts with nothing: the zeros that a derivative starts with."""
    maker = makers.get(atom) if isinstance(atom, Var) else None
    if maker is not None and maker.primitive is shapes.broadcast_to:
        atom = maker.inputs[0]
    return isinstance(atom, Literal) and bool(atom.value == 0)


def _product_of_stacks(loop: Loop, term: Var, makers: dict[Var, Node]) -> tuple[list[Node], Var] | None:
    """Of `a @ b`, or of the outer product `u[:, None] * v`, with operands of two axes at most."""
    maker = makers.get(term)
    if maker is None:
        return None
    if maker.primitive is matmul and all(len(atom.type.shape) == 2 for atom in maker.inputs):
        return _stacked_matmul(loop, maker)
    if maker.primitive is mul and len(term.type.shape) == 2:
        return _stacked_outer(loop, maker, makers)
    return None


def _stacked_matmul(loop: Loop, maker: Node) -> tuple[list[Node], Var]:
    """sum_t a_t (m, k) @ b_t (k, n) is one product (m, T k) @ (T k, n)."""
    a, b = (_stack(loop, atom) for atom in maker.inputs)
    (steps, m, k), n = a.type.shape, b.type.shape[-1]
    turned = applied(shapes.transpose, [a], loop.source, axes=(1, 0, 2))
    wide = applied(shapes.reshape, [turned.outputs[0]], loop.source, shape=(m, steps * k))
    tall = applied(shapes.reshape, [b], loop.source, shape=(steps * k, n))
    product = applied(matmul, [wide.outputs[0], tall.outputs[0]], loop.source)
    return [turned, wide, tall, product], product.outputs[0]


def _stacked_outer(loop: Loop, maker: Node, makers: dict[Var, Node]) -> tuple[list[Node], Var] | None:
    """sum_t u_t[:, None] * v_t is one product u^T (m, T) @ v (T, n)."""
    rows, columns = maker.outputs[0].type.shape
    for column, row in (maker.inputs, maker.inputs[::-1]):
        if column.type.shape == (rows, 1) and prod(row.type.shape) == columns == row.type.shape[-1]:
            u, v = (_without_ones(atom, makers) for atom in (column, row))
            stacks = [
                applied(shapes.reshape, [_stack(loop, atom)], loop.source, shape=(loop.length, size))
                for atom, size in ((u, rows), (v, columns))
            ]
            turned = applied(shapes.transpose, [stacks[0].outputs[0]], loop.source, axes=(1, 0))
            product = applied(matmul, [turned.outputs[0], stacks[1].outputs[0]], loop.source)
            return [*stacks, turned, product], product.outputs[0]
    return None


def _without_ones(atom: Atom, makers: dict[Var, Node]) -> Atom:
    """What a reshape that only adds axes of length one was made of."""
    maker = makers.get(atom) if isinstance(atom, Var) else None
    is_reshape = maker is not None and maker.primitive is shapes.reshape
    return maker.inputs[0] if maker is not None and is_reshape else atom


def _sum_of_stack(loop: Loop, term: Var) -> tuple[list[Node], Var] | None:
    """Only of what is stacked anyway: the sum in the loop needs no memory."""
    if not any(term is atom for atom, _ in loop.ys) and not any(term is var for var, _ in loop.xs):
        return None
    total = applied(sum_, [_stack(loop, term)], loop.source, axes=(0,), keepdims=False)
    return ([total], total.outputs[0]) if total.outputs[0].type == term.type else None


def _stack(loop: Loop, atom: Atom) -> Var:
    """The values of all steps along a first axis: an operand, a result that is there, or a new one."""
    for inside, operand in loop.xs:
        if inside is atom and isinstance(operand, Var) and not inside.type.weak:
            return operand
    for inside, result in loop.ys:
        if inside is atom:
            return result
    result = Var(-1, type(atom.type)((loop.length, *atom.type.shape), atom.type.dtype))
    loop.ys.append((atom, result))
    return result

"""Sums of products: the factor is summed, and the product is one of what is left.

    c = matmul a b;  d = transpose c;  e = add d (mul g f);  sum e over the columns of c
    ->    add (transpose (matmul a (sum b))) (mul g (sum f))

The gradient by an offset in front of a product (means, biases of inputs) is such a sum: as it is written, the whole product
is computed first. Sums go through what is linear and read by nobody else: sums and differences, products with what is the
same along the axes, transposes, and rows and columns of matrix products.

The result has the same terms and the same bound of its error, |a| |b| summed, but other roundings; and where factors are
infinite, or a sum of them overflows, another value. So only native plans, which promise values within rounding, do this.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pullback.core.primitive import Primitive
from pullback.ir.graph import Atom, Graph, Node, Var
from pullback.ir.types import Shape
from pullback.passes.common import merge_common
from pullback.passes.dead_code import drop_dead
from pullback.passes.loops.form import applied
from pullback.rules.contractions import matmul
from pullback.rules.elementwise import add, div, mul, neg, sub
from pullback.rules.reductions import sum_
from pullback.rules.shapes import reshape, transpose

#: Nodes that a sum goes through at most, one behind the other.
_DEEPEST = 32

_Axes = frozenset[int]


def sum_factors(graph: Graph) -> Graph:
    """Sum factors instead of products, inside loops and branches too."""
    if any(node.primitive.effect.writes for node in graph.nodes):
        return graph
    graph = replace(graph, nodes=tuple(node.with_bodies(sum_factors) for node in graph.nodes))
    sums = _Sums(graph)
    nodes: list[Node] = []
    for node in graph.nodes:
        nodes += sums.written(node) or [node]
    if len(nodes) == len(graph.nodes):
        return graph
    return drop_dead(merge_common(replace(graph, nodes=tuple(nodes))))


class _Sums:
    def __init__(self, graph: Graph) -> None:
        self._makers = {var: node for node in graph.nodes for var in node.outputs}
        self._uses = Counter(atom for node in graph.nodes for atom in node.inputs)
        self._uses.update(graph.outputs)
        self._uses.update(guard.atom for guard in graph.guards)

    def written(self, node: Node) -> list[Node]:
        """What gives the result of a sum of a product, if a node is one."""
        if node.primitive is not sum_ or not isinstance(node.inputs[0], Var):
            return []
        axes = frozenset(dict(node.params)["axes"])
        result = node.outputs[0]
        if not axes or result.type.dtype.kind != "f" or result.type.weak:
            return []
        terms = _Terms(self._makers, self._uses, node.source)
        total = terms.summed(node.inputs[0], axes, 0, shared=False)
        if not terms.products:
            return []
        last = applied(reshape, [total], node.source, shape=result.type.shape)
        return [*terms.nodes, replace(last, outputs=(result,))]


@dataclass(slots=True)
class _Terms:
    """The nodes of a sum, in order."""

    makers: dict[Var, Node]
    uses: "Counter[Atom]"
    source: str
    nodes: list[Node] = field(default_factory=list)
    products: int = 0
    """How many products are smaller now."""

    def summed(self, atom: Atom, axes: _Axes, depth: int, *, shared: bool) -> Atom:
        """The sum of an atom over axes, which are kept with one element; what is `shared` is there in any case."""
        node = self.makers.get(atom) if isinstance(atom, Var) else None
        if node is not None and depth < _DEEPEST and node.outputs[0].type.dtype == atom.type.dtype:
            shared = shared or self.uses[atom] > 1
            if node.primitive is transpose:
                order = dict(node.params)["axes"]
                before = self.summed(node.inputs[0], frozenset(order[axis] for axis in axes), depth + 1, shared=shared)
                return self._apply(transpose, [before], axes=order)
            if not shared:
                found = self._through(node, axes, depth + 1)
                if found is not None:
                    return found
        return self._apply(sum_, [atom], axes=tuple(sorted(axes)), keepdims=True)

    def _through(self, node: Node, axes: _Axes, depth: int) -> Atom | None:
        """The sum of the result of a node that nobody else reads, by those of its operands; None where it is not linear."""
        if any(atom.type.dtype != node.outputs[0].type.dtype and not atom.type.weak for atom in node.inputs):
            return None
        if node.primitive is matmul:
            return self._through_product(node, axes, depth)
        result = node.outputs[0].type.shape
        if node.primitive in (add, sub, neg):
            summed = range(len(node.inputs))
        elif node.primitive in (mul, div):
            summed = range(1, 2) if node.primitive is mul and _is_same_along(node.inputs[0], result, axes) else range(1)
        else:
            return None
        own_axes = [_own_axes(operand, result, axes) for operand in node.inputs]
        if any(
            own_axes[number] is None if number in summed else not _is_same_along(operand, result, axes)
            for number, operand in enumerate(node.inputs)
        ):
            return None
        operands = [
            operand if number not in summed or own is None else self.summed(operand, own, depth, shared=False)
            for number, (operand, own) in enumerate(zip(node.inputs, own_axes, strict=True))
        ]
        return self._apply(node.primitive, operands)

    def _through_product(self, node: Node, axes: _Axes, depth: int) -> Atom | None:
        a, b = node.inputs
        rank = len(node.outputs[0].type.shape)
        if len(a.type.shape) < 2 or len(b.type.shape) < 2 or not axes <= {rank - 2, rank - 1}:
            return None
        if rank - 2 in axes:
            a = self.summed(a, frozenset({len(a.type.shape) - 2}), depth, shared=False)
        if rank - 1 in axes:
            b = self.summed(b, frozenset({len(b.type.shape) - 1}), depth, shared=False)
        self.products += 1
        return self._apply(matmul, [a, b])

    def _apply(self, primitive: Primitive, operands: Sequence[Atom], **params: Any) -> Atom:
        self.nodes.append(applied(primitive, operands, self.source, **params))
        return self.nodes[-1].outputs[0]


def _own_axes(atom: Atom, result: Shape, axes: _Axes) -> _Axes | None:
    """The axes of an operand that axes of the result are; None where it is stretched along one of them."""
    missing = len(result) - len(atom.type.shape)
    own = frozenset(axis - missing for axis in axes)
    fits = all(axis >= 0 and atom.type.shape[axis] == result[axis + missing] for axis in own)
    return own if fits else None


def _is_same_along(atom: Atom, result: Shape, axes: _Axes) -> bool:
    """Whether an operand is the same all along some axes of the result."""
    missing = len(result) - len(atom.type.shape)
    return all(axis < missing or atom.type.shape[axis - missing] == 1 for axis in axes)

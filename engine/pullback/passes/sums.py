"""Sums of products: the factor is summed, and the product is one of what is left.

    c = matmul a b;  d = transpose c;  e = add d (mul g f);  s = sum e over the columns of c

    ->    t = add (transpose (matmul a (sum b))) (mul g (sum f))
          s = t                               if |a| (sum |b|) + |g| (sum |f|) is finite
              the sum as it is written        else

The gradient by an offset in front of a product (means, biases of inputs) is such a sum: as it is written, the whole
product is computed first. Sums go through what is linear and has no other reader: sums and differences with a product
in them, products with what is the same along the axes, transposes, and rows and columns of matrix products.

The result is other roundings of the same terms. With u the unit of rounding, b that of a blocked sum in units of it, k the
length of the contracted axis, and M the magnitudes |a| (sum |b|) + …, the error is at most

    (k u + b u) M as written: every element of the product has k u of its own        (b u + k u) M as a product of sums

But sums may overflow that do not as written, products may that do not if factors are summed first, and what is infinite can
meet a zero in one order and not in the other. If M is finite then so is everything in both orders; else a branch computes the
sum as it is written. The magnitudes are sums over what is summed anyway.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import field, replace
from typing import Any, Final

from pullback.core.primitive import Primitive
from pullback.core.types import Shape
from pullback.dataclass import dataclass
from pullback.ir.graph import Atom, Graph, Literal, Node, Var
from pullback.passes.checked_results import taken_or_written
from pullback.passes.loops.form import applied
from pullback.rules.contractions import matmul
from pullback.rules.elementwise import absolute, add, div, mul, neg, sub
from pullback.rules.logic import isfinite
from pullback.rules.reductions import sum_
from pullback.rules.shapes import reshape, transpose
from pullback.simplification.common_subexpressions import merge_common
from pullback.simplification.dead_code import drop_dead

#: Elements of a product from which on it is worth a branch.
FEWEST_ELEMENTS: Final = 4096

#: The magnitudes of a factor that is not summed are computed, so it may have this part of what is summed at most.
_SMALL: Final = 4

#: Nodes that a sum goes through at most, one behind the other.
_DEEPEST: Final = 32

_Axes = frozenset[int]


def sum_factors(graph: Graph) -> Graph:
    """Sum factors instead of products; not inside loops and branches, which would get branches inside."""
    if any(node.primitive.effect.writes for node in graph.nodes):
        return graph
    sums = _Sums(graph)
    nodes = [new for node in graph.nodes for new in sums.rewritten(node) or (node,)]
    if len(nodes) == len(graph.nodes):
        return graph
    return drop_dead(merge_common(replace(graph, nodes=tuple(nodes))))


class _Sums:
    """The sums of a graph."""

    def __init__(self, graph: Graph) -> None:
        self._position = {node: number for number, node in enumerate(graph.nodes)}
        self._makers = {var: node for node in graph.nodes for var in node.outputs}
        self._uses = graph.uses()

    def rewritten(self, node: Node) -> list[Node]:
        """The nodes that replace a sum of a product; none if the node is no such sum."""
        if node.primitive is not sum_ or not isinstance(node.inputs[0], Var):
            return []
        axes, result = frozenset(dict(node.params)["axes"]), node.outputs[0]
        if not axes or result.type.dtype.kind != "f" or node.inputs[0].type.size < FEWEST_ELEMENTS:
            return []
        terms = _Terms(self._makers, self._uses, node.source)
        total = terms.summed(node.inputs[0], axes, 0, shared=False)
        if not terms.products:
            return []
        value = terms.apply(reshape, total.value, shape=result.type.shape)
        everything = tuple(range(len(total.magnitude.type.shape)))
        largest = terms.apply(sum_, total.magnitude, axes=everything, keepdims=False)
        trusted = terms.apply(isfinite, largest)
        written = sorted(dict.fromkeys(terms.passed), key=self._position.__getitem__)
        return [*terms.nodes, taken_or_written(node, written, trusted, value)]


@dataclass(frozen=True, slots=True)
class _Total:
    """A sum, and that of the magnitudes of its terms."""

    value: Atom
    magnitude: Atom


@dataclass(slots=True)
class _Terms:
    """The nodes of a sum, in order."""

    makers: dict[Var, Node]
    uses: Counter[Atom]
    source: str
    nodes: list[Node] = field(default_factory=list)
    passed: list[Node] = field(default_factory=list)
    """The nodes that the sum goes through."""
    products: int = 0
    """The number of matrix products among these."""

    def apply(self, primitive: Primitive, *operands: Atom, **params: Any) -> Atom:
        """The result of a new node."""
        self.nodes.append(applied(primitive, operands, self.source, **params))
        return self.nodes[-1].outputs[0]

    def summed(self, atom: Atom, axes: _Axes, depth: int, *, shared: bool) -> _Total:
        """The sum of an atom over axes, which are kept with one element; what is `shared` is computed in any case."""
        node = self.makers.get(atom) if isinstance(atom, Var) and depth < _DEEPEST else None
        if node is not None:
            shared = shared or self.uses[atom] > 1
            if node.primitive is transpose:
                self.passed.append(node)
                order = dict(node.params)["axes"]
                total = self.summed(node.inputs[0], frozenset(order[axis] for axis in axes), depth + 1, shared=shared)
                return _Total(
                    self.apply(transpose, total.value, axes=order), self.apply(transpose, total.magnitude, axes=order)
                )
            found = None if shared else self._through(node, axes, depth + 1)
            if found is not None:
                return found
        over = tuple(sorted(axes))
        magnitudes = self.apply(absolute, atom)
        return _Total(
            self.apply(sum_, atom, axes=over, keepdims=True), self.apply(sum_, magnitudes, axes=over, keepdims=True)
        )

    def _through(self, node: Node, axes: _Axes, depth: int) -> _Total | None:
        """The sum of the result of a node with one reader, by sums of its operands; None where that is not possible."""
        if any(atom.type.dtype != node.outputs[0].type.dtype and not atom.type.weak for atom in node.inputs):
            return None
        if node.primitive is matmul:
            return self._through_product(node, axes, depth)
        result = node.outputs[0].type.shape
        if node.primitive in (add, sub, neg):
            found = self._through_terms(node, [_own_axes(operand, result, axes) for operand in node.inputs], depth)
        elif node.primitive is mul and _is_same_along(node.inputs[0], result, axes):
            found = self._through_scaling(node, 1, _own_axes(node.inputs[1], result, axes), depth)
        elif node.primitive in (mul, div) and _is_same_along(node.inputs[1], result, axes):
            found = self._through_scaling(node, 0, _own_axes(node.inputs[0], result, axes), depth)
        else:
            found = None
        return found

    def _through_terms(self, node: Node, own: Sequence[_Axes | None], depth: int) -> _Total | None:
        axes = [one for one in own if one is not None]
        if len(axes) < len(own):
            return None
        before = (self.products, len(self.nodes), len(self.passed))
        self.passed.append(node)
        totals = [
            self.summed(operand, one, depth, shared=False) for operand, one in zip(node.inputs, axes, strict=True)
        ]
        if node.primitive is not neg and self.products == before[0]:
            # Terms that cancel are as exact as they are written only together: a product's have errors of their own.
            del self.nodes[before[1] :], self.passed[before[2] :]
            return None
        magnitude = totals[0].magnitude
        if len(totals) > 1:
            magnitude = self.apply(add, *(total.magnitude for total in totals))
        return _Total(self.apply(node.primitive, *(total.value for total in totals)), magnitude)

    def _through_scaling(self, node: Node, place: int, axes: _Axes | None, depth: int) -> _Total | None:
        """A product with, or quotient by, what is the same along the axes."""
        if axes is None:
            return None
        self.passed.append(node)
        total = self.summed(node.inputs[place], axes, depth, shared=False)
        factor = node.inputs[1 - place]
        magnitude = self._magnitude(factor)
        values, magnitudes = (total.value, factor), (total.magnitude, magnitude)
        if place == 1:
            values, magnitudes = values[::-1], magnitudes[::-1]
        return _Total(self.apply(node.primitive, *values), self.apply(node.primitive, *magnitudes))

    def _through_product(self, node: Node, axes: _Axes, depth: int) -> _Total | None:
        a, b = node.inputs
        rank = len(node.outputs[0].type.shape)
        if len(a.type.shape) < 2 or len(b.type.shape) < 2 or not axes <= {rank - 2, rank - 1}:
            return None
        rows, columns = rank - 2 in axes, rank - 1 in axes
        if not (rows or _SMALL * a.type.size <= b.type.size) or not (columns or _SMALL * b.type.size <= a.type.size):
            return None
        self.passed.append(node)
        self.products += 1
        left = self._factor(a, len(a.type.shape) - 2, depth, summed=rows)
        right = self._factor(b, len(b.type.shape) - 1, depth, summed=columns)
        return _Total(self.apply(matmul, left.value, right.value), self.apply(matmul, left.magnitude, right.magnitude))

    def _factor(self, atom: Atom, axis: int, depth: int, *, summed: bool) -> _Total:
        if summed:
            return self.summed(atom, frozenset({axis}), depth, shared=False)
        return _Total(atom, self._magnitude(atom))

    def _magnitude(self, atom: Atom) -> Atom:
        return Literal(abs(atom.value), atom.type) if isinstance(atom, Literal) else self.apply(absolute, atom)


def _own_axes(atom: Atom, result: Shape, axes: _Axes) -> _Axes | None:
    """The axes of an operand that axes of the result are; None where it is stretched along one of them."""
    missing = len(result) - len(atom.type.shape)
    own = frozenset(axis - missing for axis in axes)
    fits = all(axis >= 0 and atom.type.shape[axis] == result[axis + missing] for axis in own)
    return own if fits else None


def _is_same_along(atom: Atom, result: Shape, axes: _Axes) -> bool:
    """True if an operand is the same all along some axes of the result."""
    missing = len(result) - len(atom.type.shape)
    return all(axis < missing or atom.type.shape[axis - missing] == 1 for axis in axes)

"""Sums of products with a common factor are one product, of the sum of the other factors.

    c = matmul a x;  d = matmul b (mul 0.5 x);  e = add (add c d) f

    ->    p = matmul (add a (mul 0.5 b)) x;  t = add p f
          e = t                               if the sum of p is finite
              the sum as it is written        else

The gradient of whatever multiplies a matrix by its own transpose is such a sum: that of x @ x.T is g @ x + g.T @ x. A sum of
factors has as many operations as a factor has elements, a product as many for each row or column of the other one.

The result is other roundings of the same terms, within the same bound: with u the unit of rounding and k the length of the
contracted axis it is about k u (|a| |x| + |b| |x|) in both orders. But a + b may overflow where neither product does, or be zero
where both products meet an infinity of x. In either case a row or a column of p is not finite, and so is its sum; a branch
computes the sum as it is written then.
"""

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from functools import reduce
from typing import Any, Final

from pullback.core.primitive import Primitive
from pullback.core.types import ArrayType
from pullback.dataclass import dataclass
from pullback.ir.graph import Atom, Graph, Node, Var
from pullback.passes.checked_results import taken_or_written
from pullback.passes.loops.form import applied
from pullback.rules.contractions import matmul
from pullback.rules.elementwise import add, mul, neg, sub
from pullback.rules.logic import isfinite
from pullback.rules.reductions import sum_
from pullback.rules.shapes import transpose
from pullback.simplification.common_subexpressions import merge_common
from pullback.simplification.dead_code import drop_dead

#: The least length of all axes of products: of fewer columns a product takes as long as the sum of factors.
LEAST_LENGTH: Final = 32


def factor_out(graph: Graph) -> Graph:
    """Write sums of products with a common factor as one product, inside loops and branches too."""
    if any(node.primitive.effect.writes for node in graph.nodes):
        return graph
    inner = [node.with_bodies(factor_out) for node in graph.nodes]
    sums = _Sums(graph)
    # From the outermost sum inwards: a part of a sum is none of its own.
    rewritten = {node: product for node in reversed(graph.nodes) if (product := sums.rewritten(node))}
    if not rewritten:
        changed = any(new is not old for new, old in zip(inner, graph.nodes, strict=True))
        return replace(graph, nodes=tuple(inner)) if changed else graph
    nodes = [each for old, new in zip(graph.nodes, inner, strict=True) for each in rewritten.get(old, [new])]
    return drop_dead(merge_common(replace(graph, nodes=tuple(nodes))))


@dataclass(frozen=True, slots=True)
class _Matrix:
    """A matrix, or its transpose."""

    atom: Atom
    turns: bool = False


@dataclass(frozen=True, slots=True)
class _Term:
    """A term of a sum: one value, or the product of two; whether it is subtracted, and the numbers it is multiplied by."""

    factors: tuple[_Matrix, ...]
    is_negative: bool = False
    numbers: tuple[Atom, ...] = ()

    def within(self, node: Node) -> "_Term | None":
        """The term by the operand of a node that changes its sign, multiplies it by a number or transposes it."""
        (matrix,) = self.factors
        if node.primitive is neg:
            return replace(self, factors=(replace(matrix, atom=node.inputs[0]),), is_negative=not self.is_negative)
        if node.primitive is transpose and dict(node.params)["axes"] == (1, 0):
            return replace(self, factors=(_Matrix(node.inputs[0], not matrix.turns),))
        for number, other in (node.inputs, node.inputs[::-1]) if node.primitive is mul else ():
            is_number = not number.type.shape and (number.type.weak or number.type.dtype == other.type.dtype)
            if is_number and number.type.dtype.kind in "if" and len(other.type.shape) == 2:
                return replace(self, factors=(replace(matrix, atom=other),), numbers=(*self.numbers, number))
        return None


class _Sums:
    """The sums of a graph."""

    def __init__(self, graph: Graph) -> None:
        self._position = {node: number for number, node in enumerate(graph.nodes)}
        self._makers = {var: node for node in graph.nodes for var in node.outputs}
        self._uses = graph.uses()
        self._has_products = sum(node.primitive is matmul for node in graph.nodes) > 1
        self._passed: set[Node] = set()

    def rewritten(self, node: Node) -> list[Node]:
        """The nodes that replace a sum; none if it stays as it is, or is a part of one that was asked about before."""
        if not self._has_products or node in self._passed or node.primitive not in (add, sub):
            return []
        type_ = node.outputs[0].type
        if type_.dtype.kind != "f" or len(type_.shape) != 2 or min(type_.shape) < LEAST_LENGTH:
            return []
        passed: dict[Node, None] = {}
        terms = list(self._opened(_Term((_Matrix(node.outputs[0]),)), node, type_, passed))
        self._passed.update(passed)
        groups = list(_groups(terms))
        if not groups:
            return []
        del passed[node]
        return _Rewriting(node).nodes_of(terms, groups, sorted(passed, key=self._position.__getitem__))

    def _terms(self, term: _Term, type_: ArrayType, passed: dict[Node, None]) -> Iterator[_Term]:
        """The terms that a term is the sum of; what is between has no other reader."""
        atom = term.factors[0].atom
        node = self._makers.get(atom) if isinstance(atom, Var) and self._uses[atom] == 1 else None
        if node is None or any(one.type.dtype != type_.dtype and not one.type.weak for one in node.inputs):
            yield term
        else:
            yield from self._opened(term, node, type_, passed)

    def _opened(self, term: _Term, node: Node, type_: ArrayType, passed: dict[Node, None]) -> Iterator[_Term]:
        """The terms of a term by the node that makes it."""
        if node.primitive is matmul and all(len(atom.type.shape) == 2 for atom in node.inputs):
            if node.inputs[0].type.shape[1] >= LEAST_LENGTH:
                passed[node] = None
                yield self._product(term, node, passed)
                return
        elif node.primitive in (add, sub) and all(atom.type == type_ for atom in node.inputs):
            passed[node] = None
            for atom, is_negative in zip(node.inputs, (False, node.primitive is sub), strict=True):
                part = replace(term, factors=(_Matrix(atom),), is_negative=term.is_negative != is_negative)
                yield from self._terms(part, type_, passed)
            return
        elif node.primitive is not transpose:
            within = term.within(node)
            if within is not None and within.factors[0].atom.type == type_:
                passed[node] = None
                yield from self._terms(within, type_, passed)
                return
        yield term

    def _product(self, term: _Term, node: Node, passed: dict[Node, None]) -> _Term:
        """The product as a term: signs, numbers and transposes of its factors are taken out of them."""
        left, right = (self._bare(_Term((_Matrix(atom),)), passed) for atom in node.inputs)
        return _Term(
            (*left.factors, *right.factors),
            term.is_negative ^ left.is_negative ^ right.is_negative,
            (*left.numbers, *right.numbers, *term.numbers),
        )

    def _bare(self, factor: _Term, passed: dict[Node, None]) -> _Term:
        atom = factor.factors[0].atom
        node = self._makers.get(atom) if isinstance(atom, Var) else None
        within = None if node is None else factor.within(node)
        if node is None or within is None or within.factors[0].atom.type.dtype != atom.type.dtype:
            return factor
        passed[node] = None
        return self._bare(within, passed)


def _groups(terms: Sequence[_Term]) -> Iterator[tuple[int, list[int]]]:
    """The products that have a factor in common: which of the two that is, and their places among the terms."""
    waiting = [place for place, term in enumerate(terms) if len(term.factors) == 2]
    for side in (1, 0):
        alike: dict[_Matrix, list[int]] = {}
        for place in waiting:
            alike.setdefault(terms[place].factors[side], []).append(place)
        for group in alike.values():
            if len(group) > 1:
                waiting = [place for place in waiting if place not in group]
                yield side, group


@dataclass(slots=True)
class _Rewriting:
    """The nodes that a sum becomes, in order."""

    root: Node
    nodes: list[Node] = field(default_factory=list)

    def nodes_of(
        self, terms: Sequence[_Term], groups: Sequence[tuple[int, list[int]]], passed: Sequence[Node]
    ) -> list[Node]:
        """The products of the groups, the sum of all terms, and the branch that takes it."""
        products = [self._product_of(side, [terms[place] for place in group]) for side, group in groups]
        grouped = {place for _, group in groups for place in group}
        others = [self._value_of(term) for place, term in enumerate(terms) if place not in grouped]
        value, is_negative = self._sum([*products, *others])
        if is_negative:
            value = self._apply(neg, value)
        sums = [self._apply(sum_, product, axes=(0, 1), keepdims=False) for product, _ in products]
        trusted = self._apply(isfinite, reduce(lambda one, other: self._apply(add, one, other), sums))
        return [*self.nodes, taken_or_written(self.root, passed, trusted, value)]

    def _product_of(self, side: int, terms: Sequence[_Term]) -> tuple[Atom, bool]:
        """The product of what terms have in common on one side and the sum of their other factors."""
        summed = [replace(term, factors=(term.factors[1 - side],)) for term in terms]
        total, is_negative = self._sum(list(map(self._value_of, summed)))
        common = self._matrix(terms[0].factors[side])
        return self._apply(matmul, *((total, common) if side else (common, total))), is_negative

    def _value_of(self, term: _Term) -> tuple[Atom, bool]:
        """The value of a term but for its sign, and that."""
        value = reduce(lambda a, b: self._apply(matmul, a, b), map(self._matrix, term.factors))
        return reduce(lambda one, number: self._apply(mul, one, number), term.numbers, value), term.is_negative

    def _sum(self, parts: Sequence[tuple[Atom, bool]]) -> tuple[Atom, bool]:
        """The sum of values with signs, and its sign: negative if all of them are."""
        (value, is_negative), *others = sorted(parts, key=lambda part: part[1])
        for other, other_is_negative in others:
            value = self._apply(add if other_is_negative == is_negative else sub, value, other)
        return value, is_negative

    def _matrix(self, matrix: _Matrix) -> Atom:
        return self._apply(transpose, matrix.atom, axes=(1, 0)) if matrix.turns else matrix.atom

    def _apply(self, primitive: Primitive, *operands: Atom, **params: Any) -> Atom:
        self.nodes.append(applied(primitive, operands, self.root.source, **params))
        return self.nodes[-1].outputs[0]

"""Scalar hoisting: what is the same for every term of a sum is multiplied once, not term by term.

    s = sum(c0 + c1 x + c2 x**2)    ->    t = n c0 + c1 sum(x) + c2 sum(x**2)
                                          s = t                              if sum of |terms of t| < 64 |t|
                                              sum(c0 + c1 x + c2 x**2)       else

Every term of the chain was a product and a sum; it becomes one sum, which processors with ports of their own for additions do
beside the products of the powers, and which the derivatives by the coefficients are anyway.

This changes the order of a sum, which native plans do, but it also distributes products, so the error has another bound. With u
the unit of rounding, b that of a blocked sum in units of it (`llvm/accumulators.py`, about 140), S the sum over i of the
magnitudes of the elements, and T the larger sum over i and k of |ck| |x[i]**k|, it is

    (m u T + b u S) for m terms as written        (b + m) u T as sums of terms

which is at most b / m + 1 times as much, but then not only in the worst case: roundings of elements are as often up as down,
and their sum grows with the root of their number. Where the terms of every element cancel, as in the textbook's variance,
the sum of x**2 - 2 m x + m**2, the difference is all there is. And sums may overflow that do not as written, or be infinite
where they are multiplied by zero. So the result is taken only if its terms are finite and cancel by less than a factor of 64:
of the 53 bits some 46 are left where it is worst, and where they hardly cancel as many as before. (Polynomials of ten random
coefficients at 1000 random places of [-1, 1] are off by 0.94 u in the median and 32 u at most, as written by 0.86 u and 32 u;
at places of [0.9, 1], where they cancel more, by 1.2 u and 50 u, as written by 0.87 u and 11 u.) Else a branch runs the sum as
it is written. So it does for a result of zero, whose sign is then right.

Only sums of everything into one number: of many results one would cancel, nearly always. Only float64: handed over in float32,
every sum would have an error that does not become smaller with the number of terms, as that of the sum as written does. Only
what is computed from the caller's own arrays, since arrays of the plan would have to be kept for the branch.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import field, replace
from typing import Final

import numpy as np

from pullback.core.kinds import Scalar
from pullback.core.primitive import Primitive
from pullback.core.types import ArrayType
from pullback.dataclass import dataclass
from pullback.ir.graph import Atom, Graph, Literal, Node, Var
from pullback.passes.checked_results import read_by, taken_or_written
from pullback.passes.loops.form import applied
from pullback.planning.schedule import flops_of
from pullback.rules.elementwise import absolute, add, div, mul, neg, sub
from pullback.rules.logic import less
from pullback.rules.reductions import sum_
from pullback.rules.shapes import astype, broadcast_to, reshape, transpose
from pullback.simplification.common_subexpressions import merge_common
from pullback.simplification.dead_code import drop_dead

#: The largest sum of the magnitudes of the terms of a result, relative to the result.
CANCELLING: Final = 64.0

#: Sums that have an accumulator in registers each, at most; there are 16 registers, or 32.
MOST_SUMS: Final = 12

#: Fewer terms are summed as they are written: handing over ten sums and looking at the result takes as long as 300 terms.
FEWEST_ELEMENTS: Final = 512

#: Primitives repeated in the branch, beside elementwise nodes: conversions, and views, which cost nothing.
_REPEATED: Final = frozenset({astype, broadcast_to, reshape, transpose})

#: Fewer products than this are not worth a branch, nor are fewer than a quarter of all operations.
FEWEST_PRODUCTS: Final = 2
SHARE: Final = 4


@dataclass(frozen=True, slots=True)
class _Term:
    """A term of a chain: an array that is summed, or a number that all elements have, times and over other numbers."""

    value: Atom
    factors: tuple[tuple[Primitive, Atom], ...] = ()
    is_negative: bool = False

    @property
    def is_number(self) -> bool:
        return self.value.type.size == 1


def hoist_scalars(graph: Graph) -> Graph:
    """Rewrite the sums of a graph that are worth it; not those inside loops and branches, which would get branches inside."""
    if any(node.primitive.effect.writes for node in graph.nodes):
        return graph
    chains = _Chains(graph)
    rewritten = {node: replacement for node in graph.nodes if (replacement := chains.rewritten(node)) is not None}
    if not rewritten:
        return graph
    nodes = [new for node in graph.nodes for new in rewritten.get(node, [node])]
    return drop_dead(merge_common(replace(graph, nodes=tuple(nodes))))


@dataclass
class _Chains:
    """The sums of a graph."""

    graph: Graph
    _makers: dict[Var, Node] = field(init=False)
    _uses: Counter[Atom] = field(init=False)

    def __post_init__(self) -> None:
        self._makers = {var: node for node in self.graph.nodes for var in node.outputs}
        self._uses = self.graph.uses()

    def rewritten(self, node: Node) -> list[Node] | None:
        """The replacement of a sum, or None where it stays as it is."""
        result, summed = node.outputs[0].type, node.inputs[0] if node.inputs else None
        if node.primitive is not sum_ or not isinstance(summed, Var) or summed.type.size < FEWEST_ELEMENTS:
            return None
        if result.size != 1 or result.dtype != np.float64 or summed.type.dtype != np.float64:
            return None
        terms = list(self._terms(summed, _Term(summed)))
        sums = {term.value for term in terms if not term.is_number}
        products = [term for term in terms if term.factors and not term.is_number]
        if len(products) < FEWEST_PRODUCTS or len(sums) > MOST_SUMS:
            return None
        written = self._written(summed)
        operations = sum(map(flops_of, written)) / summed.type.size
        leaves = read_by(written)
        if SHARE * len(products) < operations or not all(map(self._is_given, leaves)):
            return None
        return list(_emitted(node, terms, written))

    def _terms(self, atom: Atom, term: _Term) -> Iterator[_Term]:
        """The terms of a chain; `term` is what stands around it."""
        term = replace(term, value=atom)
        node = self._makers.get(atom) if isinstance(atom, Var) and self._uses[atom] == 1 else None
        parts = [] if node is None else node.inputs
        if node is None or term.is_number or not all(self._fits(part, atom.type) for part in parts):
            yield term
        elif node.primitive in (add, sub):
            first, second = parts
            yield from self._terms(first, term)
            yield from self._terms(second, _negated(term) if node.primitive is sub else term)
        elif node.primitive is neg:
            yield from self._terms(parts[0], _negated(term))
        elif node.primitive in (mul, div) and parts[1].type.size == 1:
            yield from self._terms(parts[0], _times(term, node.primitive, parts[1]))
        elif node.primitive is mul and parts[0].type.size == 1:
            yield from self._terms(parts[1], _times(term, mul, parts[0]))
        else:
            yield term

    @staticmethod
    def _fits(atom: Atom, whole: ArrayType) -> bool:
        """True if an operand is of the whole space, or a number, in the dtype of the sum."""
        in_dtype = atom.type.dtype == whole.dtype or (atom.type.weak and atom.type.dtype.kind in "if")
        return in_dtype and (atom.type.shape == whole.shape or atom.type.size == 1)

    def _written(self, summed: Var) -> list[Node]:
        """The elementwise nodes that a sum is of, in order."""
        needed: set[Atom] = {summed}
        nodes = []
        for node in reversed(self.graph.nodes):
            if node.outputs[0] in needed and (isinstance(node.primitive, Scalar) or node.primitive in _REPEATED):
                nodes.append(node)
                needed.update(node.inputs)
        return nodes[::-1]

    def _is_given(self, atom: Atom) -> bool:
        """True if a value is there for the branch: the caller's, or a number."""
        return atom not in self._makers or atom.type.size == 1


def _negated(term: _Term) -> _Term:
    return replace(term, is_negative=not term.is_negative)


def _times(term: _Term, primitive: Primitive, factor: Atom) -> _Term:
    return replace(term, factors=((primitive, factor), *term.factors))


# --- what is written instead --------------------------------------------------------------------------------------------
def _emitted(node: Node, terms: list[_Term], written: list[Node]) -> Iterator[Node]:
    result, summed = node.outputs[0], node.inputs[0]
    nodes: list[Node] = []

    def apply(primitive: Primitive, *inputs: Atom, **params: object) -> Atom:
        nodes.append(applied(primitive, inputs, node.source, **params))
        return nodes[-1].outputs[0]

    def as_number(atom: Atom) -> Atom:
        return atom if atom.type.shape == () else apply(reshape, atom, shape=())

    def total_of(term: _Term) -> Atom:
        if term.is_number:
            count = Literal(np.float64(summed.type.size), ArrayType((), summed.type.dtype))
            total = apply(mul, count, as_number(term.value))
        else:
            total = apply(sum_, term.value, axes=tuple(range(len(term.value.type.shape))), keepdims=False)
        for primitive, factor in term.factors:
            total = apply(primitive, total, as_number(factor))
        return total

    def sum_of(values: list[Atom]) -> Atom:  # neighbours first: fewer that wait for each other, and less rounding
        while len(values) > 1:
            pairs = [apply(add, a, b) for a, b in zip(values[::2], values[1::2], strict=False)]
            values = pairs + values[len(pairs) * 2 :]
        return values[0]

    # Numbers last: what comes behind the sums is one kernel then.
    terms = sorted(terms, key=lambda term: term.is_number)
    totals = [apply(neg, total_of(term)) if term.is_negative else total_of(term) for term in terms]
    value = sum_of(totals)
    limit = Literal(np.float64(CANCELLING), ArrayType((), summed.type.dtype))
    # False where anything is infinite, not a number, or zero.
    trusted = apply(
        less, sum_of([apply(absolute, total) for total in totals]), apply(mul, limit, apply(absolute, value))
    )
    if result.type.shape:
        value = apply(reshape, value, shape=result.type.shape)
    yield from nodes
    yield taken_or_written(node, written, trusted, value)

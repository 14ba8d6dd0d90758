"""Sums of outer products are one product of the stacked factors.

    c = mul (reshape a1 [80, 1]) b1         a = concatenate a1 a2 ...    [100, 80]
    d = mul (reshape a2 [80, 1]) b2    ->   b = concatenate b1 b2 ...    [100, 80]
    e = add c d; ...                        z = matmul (transpose a) b

The gradient by a matrix that a program multiplies by vectors again and again, or solves with, is such a sum: every term is as
large as the matrix, and is written and read for as many operations as it has elements. Terms are products of few steps, or
outer products by broadcasting; a loop that is a loop of the program has this done by `passes.loops.input_products`.
"""

from collections.abc import Sequence
from dataclasses import field, replace
from functools import reduce
from typing import Any

from pullback.core.primitive import Primitive
from pullback.core.types import ArrayType
from pullback.dataclass import dataclass
from pullback.ir.graph import Atom, Graph, Node, Var
from pullback.passes.loops.form import applied
from pullback.rules.contractions import matmul
from pullback.rules.elementwise import add, mul, neg, sub
from pullback.rules.joining import concatenate
from pullback.rules.shapes import reshape, transpose
from pullback.simplification.dead_code import drop_dead

#: Fewer terms are computed in registers, in one nest.
_FEWEST_TERMS = 4

#: Steps of a product that is a term: one of more reads its factors as often as it writes.
_MOST_STEPS = 4

#: Elements of a sum below which its terms stay in the first cache.
_LEAST_ELEMENTS = 256


def join_outer_products(graph: Graph) -> Graph:
    """Write every sum of enough outer products as one product."""
    uses = graph.uses()
    makers = {var: node for node in graph.nodes for var in node.outputs if uses[var] == 1}
    inner = {atom for node in graph.nodes if node.primitive is add for atom in node.inputs}
    nodes: list[Node] = []
    for node in graph.nodes:
        result = node.outputs[0]
        if node.primitive is add and not (result in inner and result in makers) and _is_matrix(result.type):
            nodes += _Sum.of(node, makers).written() or [node]
        else:
            nodes.append(node)
    return graph if len(nodes) == len(graph.nodes) else drop_dead(replace(graph, nodes=tuple(nodes)))


def _is_matrix(type_: ArrayType) -> bool:
    return len(type_.shape) == 2 and type_.dtype.kind == "f" and type_.size >= _LEAST_ELEMENTS


@dataclass(frozen=True, slots=True)
class _Factor:
    """A factor of an outer product, which as rows is taken as it is or transposed."""

    atom: Atom
    turns: bool


#: The left factor, of few columns, and the right one, of few rows.
_Outer = tuple[_Factor, _Factor]


@dataclass
class _Sum:
    """A tree of additions: pairs of factors of its positive and its negative outer products, and what else it adds."""

    node: Node
    makers: dict[Var, Node]
    terms: dict[bool, list["_Outer"]] = field(default_factory=lambda: {True: [], False: []})
    others: list[Atom] = field(default_factory=list)

    @classmethod
    def of(cls, node: Node, makers: dict[Var, Node]) -> "_Sum":
        """The tree of an addition; what is between has no other reader."""
        sum_of_products = cls(node, makers)
        waiting = list(reversed(node.inputs))
        while waiting:
            atom = waiting.pop()
            maker = makers.get(atom) if isinstance(atom, Var) else None
            if atom.type != node.outputs[0].type:  # broadcast, or converted
                sum_of_products.others.append(atom)
            elif maker is not None and maker.primitive is add:
                waiting.extend(reversed(maker.inputs))
            elif not sum_of_products.take(maker):
                sum_of_products.others.append(atom)
        return sum_of_products

    def take(self, maker: Node | None) -> bool:
        """Take a term in if it is an outer product, or the negative or the transpose of one."""
        positive, transposed = True, False
        while maker is not None and maker.primitive in (neg, transpose):
            operand = maker.inputs[0]
            positive, transposed = positive != (maker.primitive is neg), transposed != (maker.primitive is transpose)
            maker = self.makers.get(operand) if isinstance(operand, Var) else None
        outer = None if maker is None else _outer(maker)
        if outer is None:
            return False
        self.terms[positive].append(outer[::-1] if transposed else outer)
        return True

    def written(self) -> list[Node]:
        """The nodes that compute it; none where it stays as it is."""
        if max(map(len, self.terms.values())) < _FEWEST_TERMS:
            return []
        nodes: list[Node] = []

        def made(primitive: Primitive, inputs: Sequence[Atom], **params: Any) -> Var:
            nodes.append(applied(primitive, inputs, self.node.source, **params))
            return nodes[-1].outputs[0]

        def in_rows(factor: _Factor) -> Atom:
            if not factor.turns and len(factor.atom.type.shape) == 2:
                return factor.atom
            if factor.atom.type.size == max(factor.atom.type.shape):
                return made(reshape, [factor.atom], shape=(1, factor.atom.type.size))
            return made(transpose, [factor.atom], axes=(1, 0))

        def product(terms: Sequence[_Outer]) -> Var:
            stacks = [list(map(in_rows, factors)) for factors in zip(*terms, strict=True)]
            left, right = (stack[0] if len(stack) == 1 else made(concatenate, stack, axis=0) for stack in stacks)
            return made(matmul, [made(transpose, [left], axes=(1, 0)), right])

        parts: list[Atom] = [*self.others, *([product(self.terms[True])] if self.terms[True] else [])]
        total = reduce(lambda one, other: made(add, [one, other]), parts) if parts else None
        if self.terms[False]:
            taken = product(self.terms[False])
            total = made(neg, [taken]) if total is None else made(sub, [total, taken])
        nodes[-1] = replace(nodes[-1], outputs=self.node.outputs)
        return nodes if total is not None else []


def _outer(node: Node) -> _Outer | None:
    """The factors whose product a node is."""
    result = node.outputs[0].type
    if any(atom.type.dtype != result.dtype or not isinstance(atom, Var) for atom in node.inputs):
        return None
    if node.primitive is matmul:
        left, right = node.inputs
        is_thin = len(left.type.shape) == len(right.type.shape) == 2 and left.type.shape[1] <= _MOST_STEPS
        return (_Factor(left, turns=True), _Factor(right, turns=False)) if is_thin else None
    if node.primitive is mul:
        rows, columns = result.shape
        for left, right in (node.inputs, node.inputs[::-1]):
            if left.type.shape == (rows, 1) and right.type.shape in ((columns,), (1, columns)):
                return _Factor(left, turns=True), _Factor(right, turns=False)
    return None

"""Systems of equations by their factors, which are computed once for each matrix.

    x = solve a b                   f, order, parity = lu a
    t = transpose a           ->    x = lu_solve f order b
    v = solve t w                   v = lu_solve f order w  {trans}
    w = inv a                       w = lu_solve f order identity
    s, l = slogdet a                d = diagonal f;  l = sum(log|d|);  s = parity * the signs of d

A matrix that the program shows to be triangular (a Cholesky or QR factor, a triangle, a transpose of these) has no factors: it is
solved as it is. Equal nodes become one afterwards, so solves with one matrix, forward and backward, share its factors. The
transposes of a matrix are solved with the factors of the matrix itself.

Programs that become machine code are written so throughout. The interpreter, for which each rule is a call of LAPACK through
Python, is given factors where two solves share them.
"""

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np

from pullback.control.scan_rule import scan
from pullback.core.primitive import Primitive
from pullback.core.types import type_of
from pullback.ir.graph import Atom, Graph, Literal, Node, Var
from pullback.passes.loops.form import applied
from pullback.rules import elementwise, shapes
from pullback.rules.constants import stop
from pullback.rules.determinants import det, slogdet
from pullback.rules.diagonals import diagonal, lower, on_diagonal, upper
from pullback.rules.exponential import exp
from pullback.rules.factorizations import cholesky, qr
from pullback.rules.inplace import copy
from pullback.rules.logic import equal, less
from pullback.rules.lu_factors import lu, lu_solve
from pullback.rules.reductions import prod, sum_
from pullback.rules.softmax import quiet_log
from pullback.rules.systems import inv, solve
from pullback.rules.triangular import LEAST_ROWS, solve_triangular

_DTYPES = frozenset({np.dtype(np.float32), np.dtype(np.float64)})
_FACTORED = frozenset({solve, inv, slogdet, det})


def factor_systems(graph: Graph, *, native: bool) -> Graph:
    """Write systems of equations and determinants with factors, inside loops and branches too."""
    return _Walk(graph, native=native).run() if _has_systems(graph) else graph


def _has_systems(graph: Graph) -> bool:
    return any(
        node.primitive in _FACTORED or any(_has_systems(body) for _, body in node.bodies()) for node in graph.nodes
    )


class _Walk:
    """One graph, node by node."""

    def __init__(self, graph: Graph, *, native: bool) -> None:
        self.graph = graph
        self.native = native
        self.makers = {var: node for node in graph.nodes for var in node.outputs}
        self.nodes: list[Node] = []
        self.replaced: dict[Var, Atom] = {}
        self.source = ""
        roots = (self.seen_through(node.inputs[0])[0] for node in graph.nodes if node.primitive is solve)
        self.solves = Counter(roots)

    def run(self) -> Graph:
        """The graph, written anew."""
        for old in self.graph.nodes:
            node = old.reading(tuple(map(self.current, old.inputs)))
            self.source = node.source
            results = self.written(node) if node.primitive in _FACTORED and self.is_known(node) else None
            if results is None:
                node = self.transposed_inside(node) if node.primitive is scan else node
                self.nodes.append(node.with_bodies(lambda body: factor_systems(body, native=self.native)))
            else:
                self.replaced.update(zip(old.outputs, results, strict=True))
        return self.graph.rewritten(self.nodes, self.current)

    def current(self, atom: Atom) -> Atom:
        """The current replacement of a value."""
        return self.replaced.get(atom, atom) if isinstance(atom, Var) else atom

    def is_known(self, node: Node) -> bool:
        """True if factors of this dtype are there, and worth it."""
        if node.outputs[0].type.dtype not in _DTYPES or not all(atom.type.size for atom in node.inputs):
            return False
        if self.native:
            return True
        is_stack = any(len(atom.type.shape) > 2 for atom in node.inputs)
        return node.primitive is solve and not is_stack and node.inputs[0].type.shape[-1] >= LEAST_ROWS

    def written(self, node: Node) -> tuple[Atom, ...] | None:
        """The results of a node in other rules; None where it is left as it is."""
        matrix, trans = self.seen_through(node.inputs[0])
        if node.primitive in (solve, inv):
            dtype = node.outputs[0].type.dtype
            right = node.inputs[1] if node.primitive is solve else self.identity(matrix.type.shape[-1], dtype)
            triangle = self.triangle(matrix)
            if triangle is None and not self.native and self.solves[matrix] < 2:
                return None
            matrix, right = self.cast(matrix, dtype), self.cast(right, dtype)
            if triangle is not None:
                return (
                    self.add(solve_triangular, matrix, right, trans=int(trans), lower=triangle, unit_diagonal=False),
                )
            factors, order, _ = self.add_all(lu, matrix)
            return (self.add(lu_solve, factors, order, right, trans=trans),)
        sign, logarithm = self.log_determinant(self.cast(matrix, node.outputs[0].type.dtype))
        if node.primitive is slogdet:
            return (sign, logarithm)
        return (self.add(elementwise.mul, sign, self.add(exp, logarithm)),)

    def transposed_inside(self, node: Node) -> Node:
        """A loop that is given the matrices of its systems, not their transposes: these are taken in the body.

        The body is seen by itself, and the transpose before a loop back is of a matrix that the loop forward factored.
        """
        params = dict(node.params)
        body: Graph = params["body"]
        solved = {inner.inputs[0] for inner in body.nodes if inner.primitive in _FACTORED}
        inputs, names, taken = list(node.inputs), list(body.inputs), []
        for number in range(params["consts"]):
            atom = node.inputs[number]
            maker = self.makers.get(atom) if isinstance(atom, Var) else None
            if names[number] in solved and maker is not None and _is_transposed(maker):
                inputs[number] = self.current(maker.inputs[0])
                given = Var(-1, inputs[number].type)
                transpose = Node(shapes.transpose, (given,), maker.params, (names[number],), node.source)
                names[number] = given
                taken.append(transpose)
        params["body"] = replace(body, inputs=tuple(names), nodes=(*taken, *body.nodes))
        return replace(node, inputs=tuple(inputs), params=tuple(sorted(params.items())))

    # --- what the program shows of a matrix -----------------------------------------------------------------------------
    def seen_through(self, atom: Atom) -> tuple[Atom, bool]:
        """The matrix behind transposes, and True if an odd number of them was passed."""
        transposed = False
        while isinstance(atom, Var) and (maker := self.makers.get(atom)) is not None and _is_transposed(maker):
            atom, transposed = maker.inputs[0], not transposed
        return self.current(atom), transposed

    def triangle(self, atom: Atom) -> bool | None:
        """True if a matrix is a lower triangle, or an upper one; None where that is not known."""
        transposed = False
        while isinstance(atom, Var) and (maker := self.makers.get(atom)) is not None:
            if maker.primitive is cholesky:
                return not transposed
            if maker.primitive is qr and atom is maker.outputs[1]:
                return transposed
            k = dict(maker.params).get("k", 0)
            if (maker.primitive is lower and k <= 0) or (maker.primitive is upper and k >= 0):
                return (maker.primitive is lower) != transposed
            if maker.primitive not in (copy, stop) and not _is_transposed(maker):
                return None
            atom, transposed = maker.inputs[0], transposed != _is_transposed(maker)
        return None

    # --- nodes ------------------------------------------------------------------------------------------------------------
    def add(self, primitive: Primitive, *inputs: Atom, **params: Any) -> Var:
        """A new node of one result."""
        return self.add_all(primitive, *inputs, **params)[0]

    def add_all(self, primitive: Primitive, *inputs: Atom, **params: Any) -> tuple[Var, ...]:
        """A new node."""
        node = applied(primitive, inputs, self.source, **params)
        self.nodes.append(node)
        return node.outputs

    def cast(self, atom: Atom, dtype: np.dtype[Any]) -> Atom:
        """A value in the dtype that is computed in."""
        return atom if atom.type.dtype == dtype else self.add(shapes.astype, atom, dtype=dtype)

    def identity(self, size: int, dtype: np.dtype[Any]) -> Var:
        """An identity matrix."""
        ones = self.add(shapes.broadcast_to, _number(1, dtype), shape=(size,))
        return self.add(on_diagonal, ones, shape=(size, size), offset=0, axis1=0, axis2=1)

    def log_determinant(self, matrix: Atom) -> tuple[Var, Var]:
        """The sign of a determinant and the logarithm of its magnitude, from the diagonal of u as NumPy does."""
        factors, _, parity = self.add_all(lu, matrix)
        dtype, rank = matrix.type.dtype, len(matrix.type.shape)
        d = self.add(diagonal, factors, offset=0, axis1=rank - 2, axis2=rank - 1)
        zero, one, minus = (_number(value, dtype) for value in (0, 1, -1))
        signs = self.add(elementwise.where, self.add(less, d, zero), minus, one)
        signs = self.add(elementwise.where, self.add(equal, d, zero), zero, signs)
        sign = self.add(elementwise.mul, self.add(prod, signs, axis=rank - 2), parity)
        logarithms = self.add(quiet_log, self.add(elementwise.absolute, d))
        return sign, self.add(sum_, logarithms, axes=(rank - 2,), keepdims=False)


def _is_transposed(node: Node) -> bool:
    """True if a node transposes matrices, each by itself."""
    if node.primitive is not shapes.transpose:
        return False
    *stack, row, column = dict(node.params)["axes"]
    return (*stack, column, row) == tuple(range(len(stack) + 2))


def _number(value: int, dtype: np.dtype[Any]) -> Literal:
    number = dtype.type(value)
    return Literal(number, type_of(number))

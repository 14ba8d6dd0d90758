"""Decompositions of one matrix are one, and vectors that are not read are not computed.

    w = eigvalsh a                 w, v = eigh a           where v is read, as by the gradient of w
    s = svdvals a                  u, s, vh = svd a
    y = pinv a                     y = vh^T (u^T by s, where s is large)
    x = least_squares a b          x = vh^T (u^T b by s, where s is large)
    r = matrix_rank a              r = how many of s are large
    m = adjugate a                 m = vh^T (u^T by products of s), with the sign of u and vh

Equal nodes become one afterwards, so uses of one matrix, forward and backward, share its decomposition. When that is
done, those whose vectors are not read give values alone.

Programs that become machine code are written so throughout, and quotients that may be refused in rules that they have (`one_unless`).
The interpreter, for which `pinv` and its like are one call of NumPy, shares eigenvalues and singular values.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from pullback.core.primitive import Primitive
from pullback.core.types import dtype_of, type_of
from pullback.ir.graph import Graph, Node
from pullback.passes.lowering import Form, inside, written_out
from pullback.rules.determinants import MOST_COFACTORS, adjugate
from pullback.rules.eigen import eigh, eigvalsh
from pullback.rules.factorizations import cholesky, qr
from pullback.rules.matrices import as_columns, as_rows, matrix_dtype, transposed
from pullback.rules.pseudoinverse import cutoff_of, least_squares, matrix_rank, pinv
from pullback.rules.quotients import quotient, quotient_steps
from pullback.rules.singular import svd, svdvals


def share_decompositions(graph: Graph, *, native: bool) -> Graph:
    """Write what is found by decompositions as these, inside loops and branches too."""
    forms = _NATIVE if native else _ALWAYS

    def form_of(primitive: Primitive) -> Form:
        return forms.get(primitive)

    graph = written_out(graph, form_of)
    if not any(node.bodies() for node in graph.nodes):
        return graph
    return replace(
        graph,
        nodes=tuple(
            node.with_bodies(lambda body: inside(body, share_decompositions(body, native=native)))
            for node in graph.nodes
        ),
    )


# --- what is read of a decomposition ----------------------------------------------------------------------------------------
#: By decomposition, the number of the result with the values, and the primitive that computes these alone.
_VALUES: dict[Primitive, tuple[int, Primitive]] = {eigh: (0, eigvalsh), svd: (1, svdvals)}


def drop_vectors(graph: Graph) -> Graph:
    """Compute values alone where the vectors are not read, inside loops and branches too."""
    if not any(node.primitive in _VALUES or node.bodies() for node in graph.nodes):
        return graph
    read = set(graph.uses())

    def step(node: Node) -> Node:
        node = node.with_bodies(drop_vectors)
        place, alone = _VALUES.get(node.primitive, (0, None))
        if alone is None or any(var in read for number, var in enumerate(node.outputs) if number != place):
            return node
        return replace(node, primitive=alone, outputs=(node.outputs[place],))

    nodes = tuple(map(step, graph.nodes))
    return graph if nodes == graph.nodes else replace(graph, nodes=nodes)


# --- in terms of decompositions -----------------------------------------------------------------------------------------------
def _eigenvalues(a: Any, *, lower: bool) -> Any:
    return eigh(a, lower=lower)[0]


def _singular_values(a: Any) -> Any:
    return svd(a)[1]


def _large(magnitudes: Any, cutoff: float) -> Any:
    """True if numbers are more than `cutoff` times the largest."""
    return magnitudes > magnitudes.dtype.type(cutoff) * np.max(magnitudes, axis=-1, keepdims=True)


def _inverted(values: Any, cutoff: float) -> Any:
    large = _large(np.abs(values), cutoff)
    return np.where(large, 1 / np.where(large, values, 1), 0)


def _pseudoinverse(a: Any, *, rtol: float | None, hermitian: bool) -> Any:
    _check_real(a)
    cutoff = 1e-15 if rtol is None else rtol  # NumPy's
    if hermitian:
        w, v = eigh(a, lower=True)
        return np.matmul(v * as_columns(_inverted(w, cutoff)), transposed(v))
    u, s, vh = svd(a)
    return np.matmul(transposed(vh), as_rows(_inverted(s, cutoff)) * transposed(u))


def _solution(a: Any, b: Any, *, rcond: float | None) -> Any:
    _check_real(a, b)
    dtype = matrix_dtype("lstsq", type_of(a), type_of(b))
    u, s, vh = svd(a.astype(dtype))
    moved = np.matmul(transposed(u), b.astype(dtype))
    return np.matmul(transposed(vh), as_rows(_inverted(s, cutoff_of(a, b, rcond))) * moved)


def _rank(a: Any, *, tol: float | None, rtol: float | None, hermitian: bool) -> Any:
    _check_real(a)
    s = np.abs(eigh(a, lower=True)[0]) if hermitian else svd(a)[1]
    if tol is None:
        large = _large(s, max(np.shape(a)[-2:]) * np.finfo(s.dtype).eps if rtol is None else rtol)
    else:
        large = s > s.dtype.type(tol)
    return np.sum(large, axis=-1)


def _cofactors(a: Any) -> Any:
    """The adjugate by singular values, as its rule computes it; small matrices have a kernel of their own."""
    _check_real(a)
    if np.shape(a)[-1] <= MOST_COFACTORS:
        raise TypeError("the cofactors of small matrices are written out")
    is_finite = np.all(np.isfinite(a), axis=(-2, -1), keepdims=True)
    u, s, vh = svd(np.where(is_finite, a, 0))
    one = s[..., :1] * 0 + 1
    before = np.cumprod(np.concatenate([one, s[..., :-1]], axis=-1), axis=-1)
    after = np.cumprod(np.concatenate([one, s[..., :0:-1]], axis=-1), axis=-1)[..., ::-1]
    sign = np.linalg.det(u) * np.linalg.det(vh)
    scaled = as_columns(before * after * np.expand_dims(sign, -1)) * transposed(vh)
    return np.where(is_finite, np.matmul(scaled, transposed(u)), np.nan)


def _real_quotient(x: Any, d: Any) -> Any:
    _check_real(x, d)
    return quotient_steps(x, d)


def _check_real(*operands: Any) -> None:
    if np.result_type(*map(dtype_of, operands)).kind == "c":
        raise TypeError("complex numbers are left to the interpreter")


def _of_float(primitive: Primitive) -> Callable[..., Any]:
    """The same of a matrix of floats, which native programs take."""

    def apply(a: Any, **params: Any) -> Any:
        return primitive(a if a.dtype.kind in "fc" else a.astype(np.float64), **params)

    return apply


_ALWAYS: dict[Primitive, Callable[..., Any]] = {eigvalsh: _eigenvalues, svdvals: _singular_values}
_NATIVE: dict[Primitive, Callable[..., Any]] = {
    **_ALWAYS,
    **{primitive: _of_float(primitive) for primitive in (cholesky, eigh, svd, qr)},
    pinv: _pseudoinverse,
    least_squares: _solution,
    matrix_rank: _rank,
    adjugate: _cofactors,
    quotient: _real_quotient,
}

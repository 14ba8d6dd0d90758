"""gemm_into(c, a, b, alpha, beta, kept): c <- alpha op(a) @ op(b) + beta c, with op one of N, T, C for each factor.

N is the matrix itself, T its transpose, C its conjugate transpose. As in BLAS, where beta is 0 the old contents of c are
not read: they may be NaN. Where one BLAS call does it all (numbers of one precision, matrices it can take as they lie), it
makes no array; elsewhere NumPy makes one for the product. Saved, overwritten and restored: c, as in `rules.inplace`.
Derivatives are in op(a), op(b), alpha, beta and in what c held. Orders and modes: first order reverse, any order forward.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from pullback.core.cases import tested_in
from pullback.core.kinds import cast, unbroadcast
from pullback.core.types import ArrayType, dtype_of
from pullback.rules.contractions import matmul
from pullback.rules.inplace import OverwritingPrimitive

_BLAS_PREFIXES = {"f": "s", "d": "d", "F": "c", "D": "z"}


def op(matrix: Any, flag: str) -> Any:
    """The matrix, its transpose or its conjugate transpose."""
    if flag == "N":
        return matrix
    swapped = np.swapaxes(matrix, -1, -2)
    return np.conj(swapped) if flag == "C" and swapped.dtype.kind == "c" else swapped


def _times(number: Any, value: Any) -> Any:
    """A product that is skipped for a plain 1."""
    return value if issubclass(type(number), float | int) and number == 1 else number * value


def _plain(number: Any) -> Any:
    """A number that a plan holds as an array of shape (), as itself: comparing the array would make another."""
    return number.item() if issubclass(type(number), np.ndarray) else number


def _is_zero(number: Any) -> bool:
    """True if a factor is a plain 0, known before it is traced."""
    return issubclass(type(number), float | int) and number == 0


def _number_cotangent(v: Any, number: Any) -> Any:
    """The sum of all elements, as a cotangent of alpha or beta."""
    total = np.sum(v)
    dtype = dtype_of(number)
    # A Python number stands for a number of any precision.
    return cast(total, dtype) if hasattr(number, "dtype") or dtype.kind != "c" else total


class _GemmInto(OverwritingPrimitive):
    """Parameters: trans_a and trans_b, each N, T or C."""

    does = "pb.inplace.gemm(c, a, b, alpha, beta)"

    def reads_target(self, operands: Sequence[Any]) -> bool:
        return not _is_zero(operands[4])

    def infer_result(self, *types: ArrayType, **params: Any) -> ArrayType:
        c, a, b, alpha, beta = types
        for name, type_ in (("a", a), ("b", b)):
            if len(type_.shape) != 2:
                raise ValueError(f"{self.does}: {name} has shape {type_.shape}; it takes matrices, matmul takes stacks")
        for name, type_ in (("alpha", alpha), ("beta", beta)):
            if type_.shape:
                raise ValueError(f"{self.does}: {name} has shape {type_.shape}; it takes a number")
        a, b = (
            type_ if params[flag] == "N" else ArrayType(type_.shape[::-1], type_.dtype)
            for type_, flag in ((a, "trans_a"), (b, "trans_b"))
        )
        if a.shape[1] != b.shape[0]:
            raise ValueError(f"{self.does}: op(a) has shape {a.shape} and op(b) {b.shape}, which do not fit")
        (product,) = matmul.infer(a, b)
        numbers = [_as_factor(type_) for type_ in (alpha, beta)]
        return ArrayType(product.shape, np.result_type(product.dtype, c.dtype, *numbers))

    def computed(self, *operands: Any, **params: Any) -> Any:
        c, a, b, alpha, beta = operands
        result = _times(alpha, matmul(op(a, params["trans_a"]), op(b, params["trans_b"])))
        return result if _is_zero(beta) else result + _times(beta, c)

    def write(self, *operands: Any, **params: Any) -> Any:
        c, a, b = operands[:3]
        alpha, beta = map(_plain, operands[3:])
        trans_a, trans_b = params["trans_a"], params["trans_b"]
        if _suits_blas(c, a, b, alpha, beta, trans_a, trans_b):
            done = _by_blas(c, a, b, alpha, beta, trans_a, trans_b)
            if done is not None:
                return done
        op_a, op_b = op(a, trans_a), op(b, trans_b)
        if (*op_a.shape[:1], *op_b.shape[1:]) != c.shape or op_a.ndim != 2:
            raise ValueError("the product does not fit")  # the caller finds out in what
        product = np.matmul(op_a, op_b)
        result = _times(alpha, product)
        if beta != 0:
            result = result + _times(beta, c)
        np.copyto(c, result, casting="same_kind")
        return c

    def pull_result(
        self, needed: Sequence[bool], y_bar: Any, y: Any, operands: Sequence[Any], saved: Any, params: dict[str, Any]
    ) -> Sequence[Any]:
        c, a, b, alpha, beta = operands
        op_a, op_b = op(a, params["trans_a"]), op(b, params["trans_b"])
        c_bar = a_bar = b_bar = alpha_bar = beta_bar = None
        if needed[0] and not _is_zero(beta):
            c_bar = unbroadcast(_times(beta, y_bar), np.shape(c), c.dtype)
        if needed[1] or needed[2]:
            scaled = _times(alpha, y_bar)
            op_a_bar, op_b_bar = matmul.pull(needed[1:3], scaled, None, (op_a, op_b), {})
            a_bar = None if op_a_bar is None else op(op_a_bar, params["trans_a"])
            b_bar = None if op_b_bar is None else op(op_b_bar, params["trans_b"])
        if needed[3]:
            alpha_bar = _number_cotangent(y_bar * np.matmul(op_a, op_b), alpha)
        if needed[4]:
            beta_bar = _number_cotangent(y_bar * saved, beta)
        return (c_bar, a_bar, b_bar, alpha_bar, beta_bar)

    def push_result(self, tangents: Sequence[Any], y: Any, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        dc, da, db, d_alpha, d_beta = tangents
        c, a, b, alpha, beta = operands
        op_a, op_b = op(a, params["trans_a"]), op(b, params["trans_b"])
        moved = [None if dx is None else op(dx, params[flag]) for dx, flag in ((da, "trans_a"), (db, "trans_b"))]
        terms = []
        if da is not None or db is not None:
            terms.append(_times(alpha, matmul.push(moved, None, (op_a, op_b), {})))
        if d_alpha is not None:
            terms.append(d_alpha * np.matmul(op_a, op_b))
        if d_beta is not None:
            terms.append(d_beta * c)
        if dc is not None:
            terms.append(_times(beta, dc))
        total = None
        for term in terms:
            total = term if total is None else total + term
        return total

    def flops(self, types: Sequence[ArrayType], result: ArrayType) -> int:
        rows, columns = result.shape
        return (2 * types[1].size // rows if rows else 0) * rows * columns + 2 * result.size


gemm_into = _GemmInto("gemm_into")

tested_in("rules/test_gemm.py", "gemm_into")


def _as_factor(type_: ArrayType) -> Any:
    """A factor as NumPy's promotion takes it: its dtype, or a Python number if it is weak."""
    return {"f": 0.0, "c": 0j}.get(type_.dtype.kind, 0) if type_.weak else type_.dtype


def _suits_blas(c: Any, a: Any, b: Any, alpha: Any, beta: Any, trans_a: str, trans_b: str) -> bool:
    """True if one BLAS call, in the precision NumPy would use, can write the result straight into c."""
    dtype = c.dtype
    if dtype.char not in _BLAS_PREFIXES or not (_is_exact(alpha, dtype) and _is_exact(beta, dtype)) or alpha == 0:
        return False
    for matrix in (c, a, b):
        if matrix.ndim != 2 or matrix.dtype != dtype or not matrix.size:
            return False
        if not (matrix.flags.c_contiguous or matrix.flags.f_contiguous):
            return False
    rows, inner = a.shape if trans_a == "N" else a.shape[::-1]
    inner_of_b, columns = b.shape if trans_b == "N" else b.shape[::-1]
    return bool(inner == inner_of_b and c.shape == (rows, columns))


def _is_exact(number: Any, dtype: np.dtype[Any]) -> bool:
    """True if NumPy too would use this number in the precision of the matrices."""
    own = getattr(number, "dtype", None)
    return own == dtype if own is not None else dtype.kind == "c" or not issubclass(type(number), complex)


@cache
def _blas_gemm(prefix: str) -> Any:
    from scipy.linalg import blas  # noqa: PLC0415 (SciPy is loaded when it is first needed)

    return getattr(blas, f"{prefix}gemm")


def _stored(matrix: Any, flag: str, *, transposes: bool) -> tuple[Any, int | None]:
    """A matrix as BLAS takes it, in columns, and BLAS's code for what to do with it; None where there is none.

    Wanted is op(matrix), or its transpose if BLAS computes the transpose of c; a matrix that lies in rows is its
    transpose lying in columns.
    """
    transposed = (flag != "N") != transposes
    if not matrix.flags.f_contiguous:
        matrix, transposed = matrix.T, not transposed
    if flag == "C" and matrix.dtype.kind == "c":
        return matrix, 2 if transposed else None
    return matrix, int(transposed)


def _by_blas(c: Any, a: Any, b: Any, alpha: Any, beta: Any, trans_a: str, trans_b: str) -> Any:
    """One BLAS call into c; None if BLAS has no code for the operation (a conjugate without a transpose)."""
    transposes = not c.flags.f_contiguous  # then c.T <- alpha op(b).T @ op(a).T + beta c.T
    left, right = _stored(a, trans_a, transposes=transposes), _stored(b, trans_b, transposes=transposes)
    if left[1] is None or right[1] is None:
        return None
    target = c
    if transposes:
        left, right, target = right, left, c.T
    gemm = _blas_gemm(_BLAS_PREFIXES[c.dtype.char])
    gemm(alpha, left[0], right[0], beta, target, left[1], right[1], 1)
    return c

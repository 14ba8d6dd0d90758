"""Common parts of the rules of linear algebra: functions of stacks of matrices, and expressions on them.

A stack of matrices has any number of leading axes, and every matrix in it is on its own; so a batch of stacks is a
stack. Cotangents follow the engine's convention for complex numbers (no conjugation), while the literature's formulas
for decompositions are stated for gradients in the inner product <g, dx> = Re tr(g^H dx). The two are each other's
conjugate, so such a pull conjugates the cotangents it gets and the one it gives; `conjugate` does nothing to real values.

References: M. Giles, Collected matrix derivative results for forward and reverse mode algorithmic differentiation
(2008); M. Seeger, A. Hetzel, Z. Dai, E. Meissner, N. Lawrence, Auto-differentiating linear algebra (2017).
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.core.cases import tested_in
from pullback.core.kinds import behind_batch, cast, unbroadcast
from pullback.core.primitive import Primitive
from pullback.core.types import ArrayType, Shape, dtype_of


class MatrixFunction(Primitive):
    """A function of stacks of matrices, with its rule in four functions.

    `evaluate(*operands, **params)`; `infer(*types, **params)`; `push(tangents, y, operands, **params)`;
    `pull(needed, y_bar, y, operands, **params)`. The last two may forget broadcasting and dtypes: cotangents are summed
    and cast to their operands here, tangents to their results.
    """

    def __init__(
        self,
        name: str,
        evaluate: Callable[..., Any],
        infer: Callable[..., tuple[ArrayType, ...]],
        push: Callable[..., Any],
        pull: Callable[..., Any],
        *,
        results: int = 1,
        stacks: bool = True,
    ) -> None:
        super().__init__(name)
        self.results = results
        self._evaluate = evaluate
        self._infer = infer
        self._push = push
        self._pull = pull
        self._stacks = stacks

    def evaluate(self, *operands: Any, **params: Any) -> Any:
        """Apply the declared function."""
        return self._evaluate(*operands, **params)

    def infer(self, *types: ArrayType, **params: Any) -> tuple[ArrayType, ...]:
        """Apply the declared inference."""
        return self._infer(*types, **params)

    def pull(
        self, needed: Sequence[bool], y_bar: Any, y: Any, operands: Sequence[Any], params: dict[str, Any]
    ) -> Sequence[Any]:
        """Apply the declared pull, summed over the axes along which an operand was broadcast."""
        cotangents = self._pull(needed, y_bar, y, operands, **params)
        return [
            unbroadcast(cotangent, np.shape(x), dtype_of(x)) if need and cotangent is not None else None
            for need, cotangent, x in zip(needed, cotangents, operands, strict=True)
        ]

    def push(self, tangents: Sequence[Any], y: Any, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        """Apply the declared push, in the dtype of the results."""
        pushed = self._push(tangents, y, operands, **params)
        if self.results == 1:
            return cast(pushed, dtype_of(y))
        return tuple(None if dy is None else cast(dy, dtype_of(part)) for dy, part in zip(pushed, y, strict=True))

    def batch(self, operands: Sequence[Any], batched: Sequence[bool], params: dict[str, Any]) -> Any:
        """A batch of stacks is a stack."""
        if not self._stacks:
            return super().batch(operands, batched, params)
        rank = max(np.ndim(x) - own for x, own in zip(operands, batched, strict=True))
        return self(*(behind_batch(x, rank) if own else x for x, own in zip(operands, batched, strict=True)), **params)

    def flops(self, types: Sequence[ArrayType], result: ArrayType) -> int:
        """The order of magnitude: a cubic number per matrix."""
        size = max(types[0].shape[-2:], default=1)
        return size * types[0].size


# --- types ----------------------------------------------------------------------------------------------------------
def matrix_dtype(name: str, *types: ArrayType) -> np.dtype[Any]:
    """Dtype that numpy.linalg computes in."""
    dtype = np.result_type(*(type_.dtype for type_ in types))
    if dtype.kind in "biu":
        return np.dtype(np.float64)
    if dtype.char not in "fdFD":
        raise TypeError(f"{name} does not compute in {dtype}; convert to float32 or float64")
    return dtype


def real_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Dtype of the real part."""
    return np.empty(0, dtype).real.dtype


def matrix_type(name: str, type_: ArrayType, *, square: bool = False) -> ArrayType:
    """Type of an operand as numpy.linalg takes it; raises if it is no stack of (square) matrices."""
    if len(type_.shape) < 2 or (square and type_.shape[-1] != type_.shape[-2]):
        wanted = "square matrices" if square else "matrices"
        raise np.linalg.LinAlgError(f"{name} takes {wanted}, not an array of shape {type_.shape}")
    return ArrayType(type_.shape, matrix_dtype(name, type_))


def stack_shape(type_: ArrayType) -> Shape:
    """Shape without the axes of the matrices."""
    return type_.shape[:-2]


# --- expressions ----------------------------------------------------------------------------------------------------
def is_complex(a: Any) -> bool:
    """True if a value is of a complex dtype."""
    return dtype_of(a).kind == "c"


def conjugate(a: Any) -> Any:
    """The complex conjugate; real values as they are."""
    return np.conjugate(a) if a is not None and is_complex(a) else a


def real(a: Any) -> Any:
    """The real part; real values as they are."""
    return np.real(a) if is_complex(a) else a


def transposed(a: Any) -> Any:
    """The transpose of every matrix."""
    return np.swapaxes(a, -1, -2)


def adjoint(a: Any) -> Any:
    """The conjugate transpose of every matrix."""
    return conjugate(transposed(a))


def hermitian_part(a: Any) -> Any:
    """The Hermitian matrix nearest to each: half the sum with its adjoint."""
    return (a + adjoint(a)) / 2


def diagonal(a: Any) -> Any:
    """The diagonal of every square matrix, as a sum: it has no index of its own to differentiate."""
    return np.sum(a * identity_like(a), axis=-1)


def trace(a: Any) -> Any:
    """The trace of every square matrix, with the axes of the matrix kept: it scales a matrix."""
    return np.sum(a * identity_like(a), axis=(-2, -1), keepdims=True)


def as_diagonal(d: Any) -> Any:
    """Matrices with a given diagonal."""
    return np.expand_dims(d, -1) * np.eye(np.shape(d)[-1], dtype=dtype_of(d))


def as_columns(d: Any) -> Any:
    """One factor per column, for a product with a diagonal matrix from the right."""
    return np.expand_dims(d, -2)


def as_rows(d: Any) -> Any:
    """A factor per row: `as_rows(d) * a` is diag(d) @ a."""
    return np.expand_dims(d, -1)


def off_diagonal(a: Any) -> Any:
    """Every square matrix with zeros on its diagonal."""
    return a * (1 - identity_like(a))


def lower_half(a: Any) -> Any:
    """The lower triangle with half of the diagonal; with its adjoint it makes up a Hermitian matrix."""
    mask = np.tril(np.ones(np.shape(a)[-2:], real_dtype(dtype_of(a))))
    return a * (mask - identity_like(a) / 2)


def strictly_lower(a: Any) -> Any:
    """Every square matrix without its diagonal and what is above."""
    return a * np.tril(np.ones(np.shape(a)[-2:], real_dtype(dtype_of(a))), -1)


def identity_like(a: Any) -> Any:
    """One identity matrix, real, in the precision and size of square matrices."""
    return np.eye(np.shape(a)[-1], dtype=real_dtype(dtype_of(a)))


tested_in(
    "numpy_api/test_linalg.py",
    "slogdet",
    "phase_free",
    "eigh",
    "eigvalsh",
    "eig",
    "eigvals",
    "cholesky",
    "qr",
    "svd",
    "svdvals",
)

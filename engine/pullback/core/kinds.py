"""The kinds of primitives. From one declaration each kind derives forward and reverse mode.

| kind     | one rule is                                          | forward               | reverse                       |
|----------|------------------------------------------------------|-----------------------|-------------------------------|
| Scalar   | per operand, the map v -> v * dy/dx in terms of x, y | sum of the maps of dx | the same maps of y_bar        |
| Linear   | its transpose                                        | the operation itself  | the transpose                 |
| Bilinear | a transpose per operand                              | two terms             | the transposes that are needed|

Anything else derives from Primitive directly and writes `push` and `pull` out.

A scalar map serves both modes because a diagonal Jacobian is its own transpose. Complex values follow JAX: the
cotangent is multiplied by dy/dx without conjugation.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from pullback.core.primitive import Primitive
from pullback.core.types import ArrayType, Shape, dtype_of, shape_of

ScalarMap = Callable[..., Any] | None


def unbroadcast(v: Any, shape: Shape, dtype: np.dtype[Any]) -> Any:
    """Sum a cotangent over the axes along which an operand of that shape was broadcast; cast to its dtype.

    A real operand has a real cotangent: the imaginary part belongs to directions it cannot move in.
    """
    if issubclass(type(v), (float, int, complex)) and not issubclass(type(v), np.generic):
        # A Python scalar stands for a scalar operand of any precision.
        return v.real if issubclass(type(v), complex) and dtype.kind != "c" else v
    if v.shape != shape:
        extra = v.ndim - len(shape)
        if extra:
            v = v.sum(axis=tuple(range(extra)))
        stretched = tuple(axis for axis, size in enumerate(shape) if size == 1 and v.shape[axis] != 1)
        if stretched:
            v = v.sum(axis=stretched, keepdims=True)
    return cast(v, dtype)


def broadcast_shape(first: Shape, *others: Shape) -> Shape:
    """The shape that operands of these shapes have together; most have the same, or are numbers."""
    for shape in others:
        if shape != first and shape:
            return np.broadcast_shapes(first, *others) if first else broadcast_shape(*others)
    return first


def cast(v: Any, dtype: np.dtype[Any]) -> Any:
    """A tangent or cotangent in the dtype of the value it belongs to; the real part, where that is real."""
    if v.dtype.kind == "c" and dtype.kind != "c":
        v = v.real
    return v if v.dtype == dtype else v.astype(dtype)


class Scalar(Primitive):
    """An elementwise function with NumPy broadcasting.

    `ufunc` is NumPy's, or a function composed of ufuncs; then `into` may say how it is written into an existing array.
    `maps` has one entry per operand, called as `map(v, *operands, y)`; None means that the derivative is zero
    everywhere it exists (floor, comparisons), which is a fact about the function and not a missing rule.
    """

    in_place = True

    def __init__(
        self,
        name: str,
        ufunc: Any,
        *maps: ScalarMap,
        operator: Callable[..., Any] | None = None,
        into: Callable[..., Any] | None = None,
    ) -> None:
        super().__init__(name)
        self.ufunc = ufunc
        self.maps = maps
        self.moves = any(map_ is not None for map_ in maps)
        # Python's own operator keeps Python scalars Python scalars, and is the cheaper call on arrays.
        self.operator = operator
        self._evaluate = operator or ufunc
        self.into = into or (ufunc if isinstance(ufunc, np.ufunc) else None)
        # A function composed of ufuncs has arrays between them, but where its own `into` says otherwise.
        self.needs_scratch = not isinstance(ufunc, np.ufunc)

    def evaluate(self, *operands: Any, **params: Any) -> Any:
        """Apply the ufunc."""
        return self._evaluate(*operands, **params)

    def infer(self, *types: ArrayType, **params: Any) -> tuple[ArrayType, ...]:
        """Broadcast shape, promoted dtype."""
        if params:
            raise TypeError(f"{self.name} takes no parameters, got {sorted(params)}")
        shape = broadcast_shape(*[type_.shape for type_ in types])
        weak = self.operator is not None and all(type_.weak for type_ in types)
        operands = tuple(promotable(type_) for type_ in types)
        if weak:  # Python counts its truth values as integers
            operands = tuple(int if operand == np.dtype(bool) else operand for operand in operands)
        dtype = _result_dtype(self.ufunc, operands)
        return (ArrayType(shape, dtype, weak=weak),)

    def pull(
        self,
        needed: Sequence[bool],
        y_bar: Any,
        y: Any,
        operands: Sequence[Any],
        params: dict[str, Any],
    ) -> Sequence[Any]:
        """Map the cotangent for each needed operand, summed over broadcast axes."""
        return [
            unbroadcast(map_(y_bar, *operands, y), shape_of(x), dtype_of(x)) if need and map_ is not None else None
            for need, map_, x in zip(needed, self.maps, operands, strict=True)
        ]

    def push(self, tangents: Sequence[Any], y: Any, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        """Sum of the mapped tangents, in the shape of the result."""
        dy = None
        for dx, map_ in zip(tangents, self.maps, strict=True):
            if dx is not None and map_ is not None:
                term = map_(dx, *operands, y)
                dy = term if dy is None else dy + term
        if dy is None:
            return None
        if issubclass(type(dy), complex) and dtype_of(y).kind != "c":
            dy = dy.real  # y is real, so it moves along the real part
        elif hasattr(dy, "dtype"):
            dy = cast(dy, dtype_of(y))
        return dy if shape_of(dy) == shape_of(y) else np.broadcast_to(dy, shape_of(y))

    def batch(self, operands: Sequence[Any], batched: Sequence[bool], params: dict[str, Any]) -> Any:
        """Line the examples up: axes of length one behind the batch axis stand for those an operand lacks."""
        rank = max(len(shape_of(x)) - own for x, own in zip(operands, batched, strict=True))
        return self(*(behind_batch(x, rank) if own else x for x, own in zip(operands, batched, strict=True)), **params)


class DeclaredPrimitive(Primitive):
    """A primitive whose values, types, memory and batches are functions it is declared with."""

    def __init__(
        self,
        name: str,
        evaluate: Callable[..., Any],
        infer: Callable[..., ArrayType],
        *,
        into: Callable[..., Any] | None = None,
        batch: Callable[..., Any] | None = None,
        scratch: Callable[..., Sequence[ArrayType]] | None = None,
    ) -> None:
        super().__init__(name)
        self._evaluate = evaluate
        self._infer = infer
        self.into = into
        self._batch = batch
        self._scratch = scratch

    def evaluate(self, *operands: Any, **params: Any) -> Any:
        """Apply the NumPy function."""
        return self._evaluate(*operands, **params)

    def infer(self, *types: ArrayType, **params: Any) -> tuple[ArrayType, ...]:
        """Type by the declared function."""
        return (self._infer(*types, **params),)

    def scratch(self, *types: ArrayType, **params: Any) -> Sequence[ArrayType]:
        """Types of the scratch arrays, by the declared function."""
        return () if self._scratch is None else self._scratch(*types, **params)

    @property
    def has_batch(self) -> bool:
        """True where a batch has a rule of its own, and is not computed example by example."""
        return self._batch is not None


class Linear(DeclaredPrimitive):
    """A linear function of its one operand; parameters are constants.

    `transpose(y_bar, x, **params)` may look at the shape and dtype of x, never at its values. `batch(x, **params)` is the
    function for an x with one more, leading axis, along which every example is on its own; without it examples are
    taken one by one.
    """

    reads_types = True

    def __init__(
        self,
        name: str,
        evaluate: Callable[..., Any],
        infer: Callable[..., ArrayType],
        transpose: Callable[..., Any],
        *,
        is_view: bool = False,
        into: Callable[..., Any] | None = None,
        flops: Callable[[Sequence[ArrayType]], int] | None = None,
        batch: Callable[..., Any] | None = None,
        scratch: Callable[..., Sequence[ArrayType]] | None = None,
    ) -> None:
        super().__init__(name, evaluate, infer, into=into, batch=batch, scratch=scratch)
        self._transpose = transpose
        self._flops = flops
        self.aliases_operand = is_view

    def pull(
        self,
        needed: Sequence[bool],
        y_bar: Any,
        y: Any,
        operands: Sequence[Any],
        params: dict[str, Any],
    ) -> Sequence[Any]:
        """Apply the transpose."""
        return (self._transpose(y_bar, operands[0], **params),)

    def push(self, tangents: Sequence[Any], y: Any, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        """Apply the function itself."""
        return self(tangents[0], **params)

    def batch(self, operands: Sequence[Any], batched: Sequence[bool], params: dict[str, Any]) -> Any:
        """Apply the declared batching, or the function one example at a time."""
        return super().batch(operands, batched, params) if self._batch is None else self._batch(operands[0], **params)

    def flops(self, types: Sequence[ArrayType], result: ArrayType) -> int:
        """The declared number of operations; moving elements counts as none."""
        return 0 if self._flops is None else self._flops(types)


class Bilinear(DeclaredPrimitive):
    """A function linear in each of its two operands.

    `batch(a, b, batched, **params)` is the function for operands of which those flagged have one more, leading axis.
    """

    def __init__(
        self,
        name: str,
        evaluate: Callable[..., Any],
        infer: Callable[..., ArrayType],
        transpose_a: Callable[..., Any],
        transpose_b: Callable[..., Any],
        flops: Callable[[Sequence[ArrayType], ArrayType], int],
        into: Callable[..., Any] | None = None,
        batch: Callable[..., Any] | None = None,
        scratch: Callable[..., Sequence[ArrayType]] | None = None,
    ) -> None:
        super().__init__(name, evaluate, infer, into=into, batch=batch, scratch=scratch)
        self._transposes = (transpose_a, transpose_b)
        self._flops = flops

    def pull(
        self,
        needed: Sequence[bool],
        y_bar: Any,
        y: Any,
        operands: Sequence[Any],
        params: dict[str, Any],
    ) -> Sequence[Any]:
        """Apply the transposes that are needed: a constant operand costs nothing."""
        return [
            transpose(y_bar, *operands, **params) if need else None
            for need, transpose in zip(needed, self._transposes, strict=True)
        ]

    def push(self, tangents: Sequence[Any], y: Any, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        """Apply the function to each tangent with the other operand held."""
        (da, db), (a, b) = tangents, operands
        left = None if da is None else self(da, b, **params)
        right = None if db is None else self(a, db, **params)
        return right if left is None else left if right is None else left + right

    def batch(self, operands: Sequence[Any], batched: Sequence[bool], params: dict[str, Any]) -> Any:
        """Apply the declared batching, or the function one example at a time."""
        if self._batch is None:
            return super().batch(operands, batched, params)
        return self._batch(*operands, batched, **params)

    def flops(self, types: Sequence[ArrayType], result: ArrayType) -> int:
        """The declared number of operations."""
        return self._flops(types, result)


def behind_batch(x: Any, rank: int) -> Any:
    """A batch of examples, each stretched to a rank by axes of length one in front of its own."""
    shape = shape_of(x)
    missing = rank - (len(shape) - 1)
    return np.reshape(x, (shape[0], *([1] * missing), *shape[1:])) if missing else x


def all_batched(operands: Sequence[Any], batched: Sequence[bool]) -> list[Any]:
    """The operands with an axis of the batch each; what the examples share is stretched along it."""
    count = next(np.shape(x)[0] for x, own in zip(operands, batched, strict=True) if own)
    return [x if own else np.broadcast_to(x, (count, *np.shape(x))) for x, own in zip(operands, batched, strict=True)]


def promotable(type_: ArrayType) -> Any:
    """The operand for `ufunc.resolve_dtypes`: a Python type for a weak operand, else the dtype."""
    if not type_.weak:
        return type_.dtype
    # A Python bool is an ordinary bool to NumPy's promotion.
    return {"i": int, "f": float, "c": complex}.get(type_.dtype.kind, type_.dtype)


@lru_cache(maxsize=4096)
def _result_dtype(ufunc: Any, operands: tuple[Any, ...]) -> np.dtype[Any]:
    """Dtype NumPy would choose, found by asking NumPy."""
    if isinstance(ufunc, np.ufunc) and not all(isinstance(operand, type) for operand in operands):
        return ufunc.resolve_dtypes((*operands, *([None] * ufunc.nout)))[-1]
    # Composed functions (where, relu, …), and operands that are all Python scalars: ask with the smallest arrays.
    probes = [operand(1) if isinstance(operand, type) else np.ones((), operand) for operand in operands]
    return np.asarray(ufunc(*probes)).dtype

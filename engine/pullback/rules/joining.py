"""Joining arrays along an axis: linear in every operand, the transpose cuts the cotangent up again."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from pullback.core.cases import cases, normal
from pullback.core.kinds import all_batched, unbroadcast
from pullback.core.primitive import Primitive
from pullback.core.types import ArrayType


def along(axis: int, part: Any) -> tuple[Any, ...]:
    """The key of a part of one axis."""
    return (*[slice(None)] * axis, part)


class _Concatenate(Primitive):
    """Operands of equal shape but for one axis, one behind the other along it."""

    into = staticmethod(lambda out, *operands, axis: np.concatenate(operands, axis=axis, out=out))

    def evaluate(self, *operands: Any, **params: Any) -> Any:
        return np.concatenate(operands, axis=params["axis"])

    def infer(self, *types: ArrayType, **params: Any) -> tuple[ArrayType, ...]:
        axis, shape = params["axis"], list(types[0].shape)
        for type_ in types[1:]:
            if len(type_.shape) != len(shape) or any(
                size != other for i, (size, other) in enumerate(zip(type_.shape, shape, strict=True)) if i != axis
            ):
                raise ValueError(f"concatenate: shapes {types[0].shape} and {type_.shape} differ beside axis {axis}")
        shape[axis] = sum(type_.shape[axis] for type_ in types)
        return (ArrayType(tuple(shape), np.result_type(*(type_.dtype for type_ in types))),)

    def pull(
        self, needed: Sequence[bool], y_bar: Any, y: Any, operands: Sequence[Any], params: dict[str, Any]
    ) -> Sequence[Any]:
        axis = params["axis"]
        ends = list(accumulate((np.shape(x)[axis] for x in operands), initial=0))
        return [
            unbroadcast(y_bar[along(axis, slice(start, stop))], np.shape(x), x.dtype) if need else None
            for need, x, start, stop in zip(needed, operands, ends[:-1], ends[1:], strict=True)
        ]

    def push(self, tangents: Sequence[Any], y: Any, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        parts = [np.zeros(np.shape(x), y.dtype) if dx is None else dx for dx, x in zip(tangents, operands, strict=True)]
        return self(*parts, **params)

    def batch(self, operands: Sequence[Any], batched: Sequence[bool], params: dict[str, Any]) -> Any:
        return self(*all_batched(operands, batched), axis=params["axis"] + 1)

    def flops(self, types: Sequence[ArrayType], result: ArrayType) -> int:
        return 0


concatenate = _Concatenate("concatenate")

cases(concatenate, normal(2, 3), normal(4, 3), axis=0)
cases(concatenate, normal(2, 3), normal(2, 1), normal(2, 2), axis=1, because="more than two")

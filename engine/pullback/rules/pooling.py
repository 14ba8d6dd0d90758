"""Pooling over one to three axes of (batch, channels, …): the mean or the maximum of every window.

The mean divides by the size of the window, padding counted as zeros. The maximum does not see padding. Elements that tie
for the maximum of a window share its cotangent equally, which is the tie rule of `np.maximum`.

mean_pool is linear, mean_spread is its transpose. The derivative of max_pool chooses elements and is constant between
ties: `max_select(dx, x, y)` takes from every window what belongs to its maximum, `max_spread(v, x, y)` is the transpose.
Nothing is made that is larger than the input, whatever the window.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from pullback.core.cases import cases, normal, tested_in
from pullback.core.kinds import Linear
from pullback.core.primitive import Primitive
from pullback.ir.types import ArrayType, Shape
from pullback.rules.sliding import Pads, Sliding


def _sliding(size: Shape, window: Shape, stride: Shape, pad: Pads) -> Sliding:
    return Sliding(size, window, stride, pad, (1,) * len(window))


def _pooled_type(type_: ArrayType, window: Shape, stride: Shape, pad: Pads) -> ArrayType:
    sliding = _sliding(type_.shape[2:], window, stride, pad)
    sliding.check("pooling")
    return ArrayType((*type_.shape[:2], *sliding.out), type_.dtype)


# --- the mean -------------------------------------------------------------------------------------------------------


def _mean(x: Any, window: Shape, stride: Shape, pad: Pads) -> Any:
    sliding = _sliding(x.shape[2:], window, stride, pad)
    sliding.check("mean_pool")
    wide = sliding.padded_copy(x)
    y = np.zeros((*x.shape[:2], *sliding.out), x.dtype)
    for _, key in sliding.elements():
        y += wide[key]
    y /= prod(window)
    return y


def _spread_mean(v: Any, size: Shape, window: Shape, stride: Shape, pad: Pads) -> Any:
    sliding = _sliding(size, window, stride, pad)
    wide = np.zeros((*v.shape[:2], *sliding.padded), v.dtype)
    share = v / prod(window)
    for _, key in sliding.elements():
        wide[key] += share
    return np.ascontiguousarray(wide[sliding.interior])


def _batch(primitive: Linear, x: Any, **params: Any) -> Any:
    shape = np.shape(x)
    y = primitive(np.reshape(x, (shape[0] * shape[1], *shape[2:])), **params)
    return np.reshape(y, (*shape[:2], *np.shape(y)[1:]))


mean_pool: Linear = Linear(
    "mean_pool",
    _mean,
    _pooled_type,
    lambda v, x, **params: mean_spread(v, size=np.shape(x)[2:], **params),
    flops=lambda types: types[0].size,
    batch=lambda x, **params: _batch(mean_pool, x, **params),
)
mean_spread: Linear = Linear(
    "mean_spread",
    _spread_mean,
    lambda type_, size, **params: ArrayType((*type_.shape[:2], *size), type_.dtype),
    lambda v, x, size, **params: mean_pool(v, **params),
    flops=lambda types: types[0].size,
    batch=lambda x, **params: _batch(mean_spread, x, **params),
)

# --- the maximum ----------------------------------------------------------------------------------------------------


def _lowest(dtype: np.dtype[Any]) -> Any:
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


def _hits(wide: Any, key: Any, y: Any) -> Any:
    """Where one element of every window is its maximum; a nan is the maximum of its window."""
    met = wide[key]
    return (met == y) | (met != met)  # noqa: PLR0124 (what a nan is)


def _max(x: Any, window: Shape, stride: Shape, pad: Pads) -> Any:
    sliding = _sliding(x.shape[2:], window, stride, pad)
    sliding.check("max_pool")
    wide = sliding.padded_copy(x, _lowest(x.dtype))
    y = np.full((*x.shape[:2], *sliding.out), _lowest(x.dtype), x.dtype)
    for _, key in sliding.elements():
        np.maximum(y, wide[key], out=y)
    return y


def _ties(wide: Any, y: Any, sliding: Sliding) -> Any:
    count = np.zeros(y.shape, y.dtype)
    for _, key in sliding.elements():
        count += _hits(wide, key, y)
    return count


def _select(dx: Any, x: Any, y: Any, window: Shape, stride: Shape, pad: Pads) -> Any:
    sliding = _sliding(x.shape[2:], window, stride, pad)
    wide = sliding.padded_copy(x, _lowest(x.dtype))
    moves = sliding.padded_copy(dx)
    dy = np.zeros(y.shape, dx.dtype)
    for _, key in sliding.elements():
        dy += np.where(_hits(wide, key, y), moves[key], 0)
    dy /= _ties(wide, y, sliding)
    return dy


def _spread_max(v: Any, x: Any, y: Any, window: Shape, stride: Shape, pad: Pads) -> Any:
    sliding = _sliding(x.shape[2:], window, stride, pad)
    wide = sliding.padded_copy(x, _lowest(x.dtype))
    share = v / _ties(wide, y, sliding)
    x_bar = np.zeros((*x.shape[:2], *sliding.padded), share.dtype)
    for _, key in sliding.elements():
        x_bar[key] += np.where(_hits(wide, key, y), share, 0)
    return np.ascontiguousarray(x_bar[sliding.interior])


class _MaxPool(Primitive):
    """Parameters: window, stride, pad."""

    def evaluate(self, *operands: Any, **params: Any) -> Any:
        return _max(*operands, **params)

    def infer(self, *types: ArrayType, **params: Any) -> tuple[ArrayType, ...]:
        return (_pooled_type(types[0], **params),)

    def pull(
        self, needed: Sequence[bool], y_bar: Any, y: Any, operands: Sequence[Any], params: dict[str, Any]
    ) -> Sequence[Any]:
        return (max_spread(y_bar, operands[0], y, **params),)

    def push(self, tangents: Sequence[Any], y: Any, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        return max_select(tangents[0], operands[0], y, **params)

    def flops(self, types: Sequence[ArrayType], result: ArrayType) -> int:
        return types[0].size


class _Choosing(Primitive):
    """Linear in its first operand; the others, x and y of the pooling, say which elements are meant and do not move it."""

    def __init__(self, name: str, function: Callable[..., Any], result: int, other: Callable[[], Primitive]) -> None:
        super().__init__(name)
        self._function = function
        self._result = result  # the operand whose shape the result has
        self._other = other

    def evaluate(self, *operands: Any, **params: Any) -> Any:
        return self._function(*operands, **params)

    def infer(self, *types: ArrayType, **params: Any) -> tuple[ArrayType, ...]:
        return (ArrayType(types[self._result].shape, types[0].dtype),)

    def pull(
        self, needed: Sequence[bool], y_bar: Any, y: Any, operands: Sequence[Any], params: dict[str, Any]
    ) -> Sequence[Any]:
        return (self._other()(y_bar, *operands[1:], **params) if needed[0] else None, None, None)

    def push(self, tangents: Sequence[Any], y: Any, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        return None if tangents[0] is None else self(tangents[0], *operands[1:], **params)

    def flops(self, types: Sequence[ArrayType], result: ArrayType) -> int:
        return types[1].size


max_pool = _MaxPool("max_pool")
max_select: Primitive = _Choosing("max_select", _select, 2, lambda: max_spread)
max_spread: Primitive = _Choosing("max_spread", _spread_max, 1, lambda: max_select)

_OVERLAPPING: dict[str, Any] = {"window": (3, 2), "stride": (2, 1), "pad": ((1, 0), (0, 1))}
for _pool in (mean_pool, max_pool):
    cases(_pool, normal(2, 3, 7), window=(2,), stride=(2,), pad=((0, 0),))
    cases(_pool, normal(1, 2, 5, 6), **_OVERLAPPING, because="windows that overlap, and padding")
    cases(_pool, normal(1, 1, 4, 3, 4), window=(2, 3, 2), stride=(2, 1, 1), pad=((0, 0),) * 3)
cases(mean_spread, normal(1, 2, 2, 6), size=(5, 6), **_OVERLAPPING)

tested_in("nn/test_pooling.py", "max_select", "max_spread")

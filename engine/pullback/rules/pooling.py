"""Pooling over one to three axes of (batch, channels, …): the mean or the maximum of every window.

The mean divides by the size of the window, padding counted as zeros. The maximum does not see padding. Elements that tie
for the maximum of a window share its cotangent equally, which is the tie rule of `np.maximum`. The maximum of a window with
NaN is NaN: a cotangent other than zero becomes NaN at those of its elements that are NaN.

mean_pool is linear, mean_spread is its transpose. The derivative of max_pool chooses elements and is constant between
ties: `max_select(dx, x, y)` takes from every window what belongs to its maximum, `max_spread(v, x, y)` is the transpose.
Nothing is made that is larger than the input, whatever the window.
"""

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from pullback.core.bit_masks import write_masked
from pullback.core.cases import cases, normal, tested_in
from pullback.core.constant_arrays import number
from pullback.core.kinds import Linear, all_batched
from pullback.core.primitive import Primitive
from pullback.core.types import ArrayType, Shape
from pullback.rules.example_order import following, is_lined, laid
from pullback.rules.sliding import Pads, SlidingWindow


def _sliding(size: Shape, window: Shape, stride: Shape, pad: Pads) -> SlidingWindow:
    return SlidingWindow(size, window, stride, pad, (1,) * len(window))


def _pooled_type(type_: ArrayType, window: Shape, stride: Shape, pad: Pads) -> ArrayType:
    sliding = _sliding(type_.shape[2:], window, stride, pad)
    sliding.check("pooling")
    return ArrayType((*type_.shape[:2], *sliding.out), type_.dtype)


# --- the mean -------------------------------------------------------------------------------------------------------


def _padded_types(type_: ArrayType, size: Shape, window: Shape, stride: Shape, pad: Pads) -> list[ArrayType]:
    """One array with the padding, where there is any."""
    sliding = _sliding(size, window, stride, pad)
    return [ArrayType((*type_.shape[:2], *sliding.padded), type_.dtype)] if any(map(any, pad)) else []


def _padded(x: Any, sliding: SlidingWindow, fill: Any, spare: Sequence[Any]) -> Any:
    for room in spare:
        room.fill(fill)
        wide = laid(room, lined=is_lined(x))
        np.copyto(wide[sliding.interior], x)
        return wide
    return x


def _write_mean(y: Any, x: Any, window: Shape, stride: Shape, pad: Pads, scratch: Sequence[Any] = ()) -> None:
    sliding = _sliding(x.shape[2:], window, stride, pad)
    wide = _padded(x, sliding, 0, scratch)
    y.fill(0)
    for _, key in sliding.elements():
        np.add(y, wide[key], out=y)
    np.divide(y, number(prod(window), y.dtype), out=y)


def _write_spread_mean(
    x: Any, v: Any, size: Shape, window: Shape, stride: Shape, pad: Pads, scratch: Sequence[Any]
) -> None:
    sliding = _sliding(size, window, stride, pad)
    lined = is_lined(v)
    share, *padded = (laid(room, lined=lined) for room in scratch)
    wide = padded[0] if padded else x
    wide.fill(0)
    np.divide(v, number(prod(window), v.dtype), out=share)
    for _, key in sliding.elements():
        np.add(wide[key], share, out=wide[key])
    if padded:
        np.copyto(x, wide[sliding.interior])


def _mean_scratch(type_: ArrayType, window: Shape, stride: Shape, pad: Pads) -> list[ArrayType]:
    return _padded_types(type_, type_.shape[2:], window, stride, pad)


def _spread_mean_type(type_: ArrayType, size: Shape, **_: Any) -> ArrayType:
    return ArrayType((*type_.shape[:2], *size), type_.dtype)


def _spread_mean_scratch(type_: ArrayType, size: Shape, window: Shape, stride: Shape, pad: Pads) -> list[ArrayType]:
    return [type_, *_padded_types(type_, size, window, stride, pad)]


def _batch(primitive: Primitive, operands: Sequence[Any], **params: Any) -> Any:
    """Batches of batches as one larger batch."""
    shape = np.shape(operands[0])
    y = primitive(*(np.reshape(x, (shape[0] * shape[1], *np.shape(x)[2:])) for x in operands), **params)
    return np.reshape(y, (*shape[:2], *np.shape(y)[1:]))


mean_pool: Linear = Linear(
    "mean_pool",
    following(_write_mean, _pooled_type, _mean_scratch),
    _pooled_type,
    lambda v, x, **params: mean_spread(v, size=np.shape(x)[2:], **params),
    flops=lambda types: types[0].size,
    batch=lambda x, **params: _batch(mean_pool, [x], **params),
    into=_write_mean,
    scratch=_mean_scratch,
)
mean_spread: Linear = Linear(
    "mean_spread",
    following(_write_spread_mean, _spread_mean_type, _spread_mean_scratch),
    _spread_mean_type,
    lambda v, x, size, **params: mean_pool(v, **params),
    flops=lambda types: types[0].size,
    batch=lambda x, **params: _batch(mean_spread, [x], **params),
    into=_write_spread_mean,
    scratch=_spread_mean_scratch,
)

# --- the maximum ----------------------------------------------------------------------------------------------------


def _lowest(dtype: np.dtype[Any]) -> Any:
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


#: Up to so many elements in a window, which of them are its maximum is kept and not looked up again.
MARKS_KEPT = 8


def _choose(out: Any, values: Any, hits: Any) -> None:
    """Write values, which may be there already, where they are chosen, 0 elsewhere."""
    if not write_masked(out, values, hits):
        np.copyto(out, values)
        np.logical_not(hits, out=hits)
        np.copyto(out, 0, where=hits)
        np.logical_not(hits, out=hits)


def _write_max(y: Any, x: Any, window: Shape, stride: Shape, pad: Pads, scratch: Sequence[Any] = ()) -> None:
    sliding = _sliding(x.shape[2:], window, stride, pad)
    wide = _padded(x, sliding, _lowest(x.dtype), scratch)
    first, *others = (wide[key] for _, key in sliding.elements())
    if not others:
        np.copyto(y, first)
    for other in others:
        np.maximum(first, other, out=y)
        first = y


class _Maxima:
    """The elements of windows that are their maxima, and the number of ties. A nan is a maximum.

    They are marked in one array for each element of a window if there are so many, else in one for all of them by turns.
    """

    def __init__(self, sliding: SlidingWindow, wide: Any, y: Any, scratch: Sequence[Any]) -> None:
        marks, holes, any_hole, count = scratch
        lined = is_lined(y)
        self._marks = [laid(mark, lined=lined) for mark in marks]
        self._holes, self._count = laid(holes, lined=lined), laid(count, lined=lined)
        self._keys = [key for _, key in sliding.elements()]
        self._wide = wide
        self._y = y
        np.not_equal(y, y, out=self._holes)
        np.logical_or.reduce(holes.reshape(1, -1), axis=1, out=any_hole)
        self._any_hole = bool(any_hole[0])  # elements need not be asked one by one where there is none
        if len(self._marks) > 1:
            for key, mark in zip(self._keys, self._marks, strict=True):
                self._mark(key, mark)

    def _mark(self, key: Any, mark: Any) -> None:
        window = self._wide[key]
        np.equal(window, self._y, out=mark)
        if self._any_hole:
            np.not_equal(window, window, out=self._holes)
            np.logical_or(mark, self._holes, out=mark)

    def marked(self) -> Iterator[tuple[Any, Any]]:
        """Every element of the windows: its key, and where it is a maximum."""
        for position, key in enumerate(self._keys):
            if len(self._marks) == 1:
                self._mark(key, self._marks[0])
            yield key, self._marks[position % len(self._marks)]

    def write_ties(self, share: Any) -> None:
        """The number of times that the maximum of every window is met, counted as whole numbers and written as numbers."""
        self._count.fill(0)
        for _, mark in self.marked():
            np.add(self._count, mark.view(np.uint8), out=self._count)
        np.copyto(share, self._count, casting="same_kind")

    def divide(self, out: Any, values: Any, ties: Any) -> None:
        """Values of windows over their ties: NaN where the maximum is, unless the value is zero. `out` may be either."""
        if self._any_hole:
            np.not_equal(self._y, self._y, out=self._holes)
            np.copyto(ties, number(np.nan, ties.dtype), where=self._holes)
            np.equal(values, number(0, values.dtype), out=self._holes)
            np.copyto(ties, number(1, ties.dtype), where=self._holes)
        np.divide(values, ties, out=out)


def _choosing_scratch(v: ArrayType, x: ArrayType, y: ArrayType, **params: Any) -> list[ArrayType]:
    """Types of the scratch arrays: those of `_Maxima`, shares of windows, chosen shares, padded copies."""
    truth = np.dtype(bool)
    length = prod(params["window"])
    marks = length if length <= MARKS_KEPT else 1
    count = np.dtype(np.uint8 if length < 256 else np.int32)
    share = ArrayType(y.shape, v.dtype)
    padded = [
        part for dtype in (x.dtype, v.dtype) for part in _padded_types(ArrayType(x.shape, dtype), x.shape[2:], **params)
    ]
    return [
        ArrayType((marks, *y.shape), truth),
        ArrayType(y.shape, truth),
        ArrayType((1,), truth),
        ArrayType(y.shape, count),
        share,
        *([] if _apart(**params) else [share]),
        *padded,
    ]


def _apart(window: Shape, stride: Shape, **_: Any) -> bool:
    """True if no two windows share an element."""
    return all(step >= length for step, length in zip(stride, window, strict=True))


def _write_select(
    dy: Any, dx: Any, x: Any, y: Any, window: Shape, stride: Shape, pad: Pads, scratch: Sequence[Any]
) -> None:
    sliding = _sliding(x.shape[2:], window, stride, pad)
    marks, (share, *rest) = scratch[:4], scratch[4:]
    share = laid(share, lined=is_lined(y))
    if not _apart(window, stride):
        del rest[0]
    wide = _padded(x, sliding, _lowest(x.dtype), rest[:1])
    moves = _padded(dx, sliding, 0, rest[1:])
    maxima = _Maxima(sliding, wide, y, marks)
    dy.fill(0)
    for key, mark in maxima.marked():
        np.copyto(share, moves[key])
        _choose(share, share, mark)
        np.add(dy, share, out=dy)
    maxima.write_ties(share)
    maxima.divide(dy, dy, share)


def _tiles(size: Shape, window: Shape, stride: Shape, pad: Pads) -> bool:
    """True if every element is in one window."""
    return stride == window and not any(map(any, pad)) and not any(n % w for n, w in zip(size, window, strict=True))


def _write_spread_max(
    x_bar: Any, v: Any, x: Any, y: Any, window: Shape, stride: Shape, pad: Pads, scratch: Sequence[Any]
) -> None:
    sliding = _sliding(x.shape[2:], window, stride, pad)
    marks, (share, *rest) = scratch[:4], scratch[4:]
    share = laid(share, lined=is_lined(y))
    chosen = None if _apart(window, stride) else laid(rest.pop(0), lined=is_lined(y))
    wide = _padded(x, sliding, _lowest(x.dtype), rest[:1])
    target = laid(rest[1], lined=is_lined(y)) if rest else x_bar
    maxima = _Maxima(sliding, wide, y, marks)
    maxima.write_ties(share)
    maxima.divide(share, v, share)
    if not _tiles(x.shape[2:], window, stride, pad):
        target.fill(0)
    for key, mark in maxima.marked():
        if chosen is None:  # nothing else is added to these elements
            _choose(target[key], share, mark)
        else:
            _choose(chosen, share, mark)
            np.add(target[key], chosen, out=target[key])
    if rest:
        np.copyto(x_bar, target[sliding.interior])


class _MaxPool(Primitive):
    """Parameters: window, stride, pad."""

    into = staticmethod(_write_max)
    _evaluate = staticmethod(following(_write_max, _pooled_type, _mean_scratch))

    def evaluate(self, *operands: Any, **params: Any) -> Any:
        return self._evaluate(*operands, **params)

    def scratch(self, *types: ArrayType, **params: Any) -> Sequence[ArrayType]:
        return _mean_scratch(types[0], **params)

    def infer(self, *types: ArrayType, **params: Any) -> tuple[ArrayType, ...]:
        return (_pooled_type(types[0], **params),)

    def pull(
        self, needed: Sequence[bool], y_bar: Any, y: Any, operands: Sequence[Any], params: dict[str, Any]
    ) -> Sequence[Any]:
        return (max_spread(y_bar, operands[0], y, **params),)

    def push(self, tangents: Sequence[Any], y: Any, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        return max_select(tangents[0], operands[0], y, **params)

    def batch(self, operands: Sequence[Any], batched: Sequence[bool], params: dict[str, Any]) -> Any:
        return _batch(self, operands, **params)

    def flops(self, types: Sequence[ArrayType], result: ArrayType) -> int:
        return types[0].size


class _WindowSelection(Primitive):
    """Linear in its first operand; the others, x and y of the pooling, say which elements are meant and do not move it."""

    def __init__(self, name: str, into: Callable[..., Any], result: int, other: Callable[[], Primitive]) -> None:
        super().__init__(name)
        self.into = into
        self._function = following(
            into, lambda *types, **params: self.infer(*types, **params)[0], _choosing_scratch, operand=result
        )
        self._result = result  # the operand whose shape the result has
        self._other = other

    def evaluate(self, *operands: Any, **params: Any) -> Any:
        return self._function(*operands, **params)

    def scratch(self, *types: ArrayType, **params: Any) -> Sequence[ArrayType]:
        return _choosing_scratch(*types, **params)

    def infer(self, *types: ArrayType, **params: Any) -> tuple[ArrayType, ...]:
        return (ArrayType(types[self._result].shape, types[0].dtype),)

    def writes_over(self, *types: ArrayType, **params: Any) -> bool:
        """True if every element is in one window: each share is read for the last time when it is written over."""
        return self.into is _write_spread_max and _tiles(types[1].shape[2:], **params)

    def pull(
        self, needed: Sequence[bool], y_bar: Any, y: Any, operands: Sequence[Any], params: dict[str, Any]
    ) -> Sequence[Any]:
        return (self._other()(y_bar, *operands[1:], **params) if needed[0] else None, None, None)

    def push(self, tangents: Sequence[Any], y: Any, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        return None if tangents[0] is None else self(tangents[0], *operands[1:], **params)

    def batch(self, operands: Sequence[Any], batched: Sequence[bool], params: dict[str, Any]) -> Any:
        return _batch(self, all_batched(operands, batched), **params)

    def flops(self, types: Sequence[ArrayType], result: ArrayType) -> int:
        return types[1].size


max_pool = _MaxPool("max_pool")
max_select: Primitive = _WindowSelection("max_select", _write_select, 2, lambda: max_spread)
max_spread: Primitive = _WindowSelection("max_spread", _write_spread_max, 1, lambda: max_select)

_OVERLAPPING: dict[str, Any] = {"window": (3, 2), "stride": (2, 1), "pad": ((1, 0), (0, 1))}
for _pool in (mean_pool, max_pool):
    cases(_pool, normal(2, 3, 7), window=(2,), stride=(2,), pad=((0, 0),))
    cases(_pool, normal(1, 2, 5, 6), **_OVERLAPPING, because="windows that overlap, and padding")
    cases(_pool, normal(1, 1, 4, 3, 4), window=(2, 3, 2), stride=(2, 1, 1), pad=((0, 0),) * 3)
cases(mean_spread, normal(1, 2, 2, 6), size=(5, 6), **_OVERLAPPING)

tested_in("nn/test_pooling.py", "max_select", "max_spread")

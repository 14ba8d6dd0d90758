"""Convolutions over one to three axes: `conv(w, x)` and its two transposes, which are bilinear too.

    conv(w, x)                   y[n, o, t] = sum over c, k of w[o, c, k] * x[n, c, stride * t + dilation * k]
    conv_data_gradient(w, y)     the transpose with respect to x
    conv_weight_gradient(y, x)   the transpose with respect to w

x is (batch, channels, …), w is (outputs, channels / groups, …) and is not flipped, as in most libraries (a correlation);
`pullback.nn.conv` flips it on request. Each of the three is bilinear and the other two are its transposes, so there are
derivatives of every order.

Evaluated as products of matrices: the windows of a few examples, or of some rows of one, are copied into a buffer of
COLUMN_BYTES and multiplied there while it is in the cache. Bytes beside the result, for K elements in a window, C
channels, T places and N examples:

    all windows at once, one product    K * C * T * N     nine times the input for a window of 3 x 3
    K products of shifted inputs        (C + O) * T * N   and the output is read and written K times
    windows in pieces (this file)       COLUMN_BYTES      every window element is written once, into the cache

float16 is multiplied and summed in float32.
"""

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from pullback.core.cases import cases, normal
from pullback.core.kinds import Bilinear, cast
from pullback.ir.types import ArrayType, Shape, type_of
from pullback.rules.sliding import Pads, Sliding

#: Half a second-level cache of 1 MiB; all of a common one of 512 KiB.
COLUMN_BYTES = 512 * 1024


class _Products:
    """One convolution seen as products of matrices, block by block of examples and band by band of output rows."""

    def __init__(self, sliding: Sliding, groups: int, channels: int, dtype: np.dtype[Any]) -> None:
        self.sliding = sliding
        self.groups = groups
        self.dtype = np.dtype(np.float32) if dtype == np.float16 else dtype
        self.depth = channels // groups * prod(sliding.kernel)
        self.row = prod(sliding.out[1:])
        self._row_bytes = max(1, groups * self.depth * self.row * self.dtype.itemsize)
        self._buffer: np.ndarray[Any, Any] | None = None

    def blocks(self, examples: int) -> Iterator[tuple[slice, list[slice]]]:
        """Blocks of examples and the bands of each: several whole examples, or one in bands, whose windows fit the buffer."""
        rows = self.sliding.out[0]
        count = max(1, COLUMN_BYTES // (self._row_bytes * rows))
        band = min(rows, max(1, COLUMN_BYTES // self._row_bytes))
        bands = [slice(row, min(row + band, rows)) for row in range(0, rows, band)]
        for first in range(0, examples, count):
            yield slice(first, min(first + count, examples)), bands

    def columns(self, padded: np.ndarray[Any, Any], band: slice) -> np.ndarray[Any, Any]:
        """The windows of a band, (examples, groups, depth, places), copied; pointwise windows are the input itself."""
        count, places = padded.shape[0], (band.stop - band.start) * self.row
        if self.sliding.is_pointwise:
            rows = padded[:, :, band].reshape(count, self.groups, self.depth, places)
            return rows.astype(self.dtype, copy=False)
        windows = self.sliding.windows(padded)[(slice(None),) * (2 + len(self.sliding.kernel)) + (band,)]
        columns = self.buffer(count, places)
        np.copyto(columns.reshape(windows.shape), windows)
        return columns

    def buffer(self, count: int, places: int) -> np.ndarray[Any, Any]:
        """The one buffer, in the shape of the windows of a band."""
        shape = (count, self.groups, self.depth, places)
        if self._buffer is None or self._buffer.size < prod(shape):
            self._buffer = np.empty(prod(shape), self.dtype)
        return self._buffer[: prod(shape)].reshape(shape)

    def places(self, part: np.ndarray[Any, Any], band: slice) -> np.ndarray[Any, Any]:
        """The part of an output that belongs to a band, as a view (examples, groups, outputs of a group, places)."""
        count, outputs = part.shape[:2]
        in_groups = part.reshape(count, self.groups, outputs // self.groups, prod(self.sliding.out))
        return in_groups[..., band.start * self.row : band.stop * self.row]

    def matrices(self, w: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The weights as one matrix a group."""
        return w.reshape(self.groups, w.shape[0] // self.groups, self.depth).astype(self.dtype, copy=False)


def _convolve(w: Any, x: Any, **params: Any) -> Any:
    type_ = _conv_type(type_of(w), type_of(x), **params)
    return _convolve_into(np.empty(type_.shape, type_.dtype), w, x, **params)


def _convolve_into(y: Any, w: Any, x: Any, stride: Shape, pad: Pads, dilation: Shape, groups: int) -> Any:
    sliding = Sliding(x.shape[2:], w.shape[2:], stride, pad, dilation)
    if not (y.size and w.size):
        y.fill(0)
        return y
    products = _Products(sliding, groups, x.shape[1], y.dtype)
    matrices = products.matrices(w)
    for block, bands in products.blocks(x.shape[0]):
        padded = sliding.padded_copy(x[block])
        for band in bands:
            np.matmul(matrices, products.columns(padded, band), out=products.places(y[block], band))
    return y


def _data_gradient(w: Any, y: Any, **params: Any) -> Any:
    type_ = _data_type(type_of(w), type_of(y), **params)
    return _data_gradient_into(np.empty(type_.shape, type_.dtype), w, y, **params)


def _data_gradient_into(
    x: Any, w: Any, y: Any, size: Shape, stride: Shape, pad: Pads, dilation: Shape, groups: int
) -> Any:
    sliding = Sliding(size, w.shape[2:], stride, pad, dilation)
    x.fill(0)
    if not (x.size and w.size and y.size):
        return x
    products = _Products(sliding, groups, x.shape[1], x.dtype)
    transposed = np.swapaxes(products.matrices(w), 1, 2)
    y = np.ascontiguousarray(y)
    direct = x.dtype == products.dtype and not any(map(any, pad))
    for block, bands in products.blocks(y.shape[0]):
        part = x[block]
        wide = part if direct else np.zeros((*part.shape[:2], *sliding.padded), products.dtype)
        for band in bands:
            own = products.places(y[block], band).astype(products.dtype, copy=False)
            columns = np.matmul(transposed, own, out=products.buffer(own.shape[0], own.shape[-1]))
            _add_windows(wide, columns, band, sliding)
        if not direct:
            part[...] = wide[sliding.interior]
    return x


def _add_windows(wide: np.ndarray[Any, Any], columns: np.ndarray[Any, Any], band: slice, sliding: Sliding) -> None:
    """Add the windows of a band to where they were taken from."""
    rows = band.stop - band.start
    windows = columns.reshape(*wide.shape[:2], *sliding.kernel, rows, *sliding.out[1:])
    for place, (_, first, *rest) in sliding.elements():
        start = first.start + band.start * first.step
        met = slice(start, start + (rows - 1) * first.step + 1, first.step)
        here: Any = (slice(None), slice(None), *place)
        wide[(..., met, *rest)] += windows[here]


def _weight_gradient(y: Any, x: Any, **params: Any) -> Any:
    type_ = _weight_type(type_of(y), type_of(x), **params)
    return _weight_gradient_into(np.empty(type_.shape, type_.dtype), y, x, **params)


def _weight_gradient_into(
    w: Any, y: Any, x: Any, kernel: Shape, stride: Shape, pad: Pads, dilation: Shape, groups: int
) -> Any:
    sliding = Sliding(x.shape[2:], kernel, stride, pad, dilation)
    products = _Products(sliding, groups, x.shape[1], w.dtype)
    w.fill(0)
    if w.size and y.size:
        direct = w.dtype == products.dtype
        sums = products.matrices(w) if direct else np.zeros_like(products.matrices(w))
        y = np.ascontiguousarray(y)
        for block, bands in products.blocks(x.shape[0]):
            padded = sliding.padded_copy(x[block])
            for band in bands:
                columns = products.columns(padded, band)
                own = products.places(y[block], band).astype(products.dtype, copy=False)
                sums += np.add.reduce(np.matmul(own, np.swapaxes(columns, 2, 3)), axis=0)
        if not direct:
            w[...] = sums.reshape(w.shape)
    return w


def _conv_type(w: ArrayType, x: ArrayType, stride: Shape, pad: Pads, dilation: Shape, groups: int) -> ArrayType:
    if len(x.shape) != len(w.shape) or w.shape[1] * groups != x.shape[1] or w.shape[0] % groups:
        raise ValueError(
            f"conv: w of shape {w.shape} does not fit x of shape {x.shape} in {groups} groups; w is (outputs, channels "
            "/ groups, …), x is (batch, channels, …), and groups divides both"
        )
    sliding = Sliding(x.shape[2:], w.shape[2:], stride, pad, dilation)
    sliding.check("conv")
    return ArrayType((x.shape[0], w.shape[0], *sliding.out), np.result_type(w.dtype, x.dtype))


def _data_type(w: ArrayType, y: ArrayType, size: Shape, groups: int, **_: Any) -> ArrayType:
    return ArrayType((y.shape[0], w.shape[1] * groups, *size), np.result_type(w.dtype, y.dtype))


def _weight_type(y: ArrayType, x: ArrayType, kernel: Shape, groups: int, **_: Any) -> ArrayType:
    return ArrayType((y.shape[1], x.shape[1] // groups, *kernel), np.result_type(y.dtype, x.dtype))


def _flops_of(places: int, weights: Shape) -> int:
    return 2 * places * prod(weights[1:])


# --- batching: examples of weights become groups, examples of data alone become a larger batch -----------------------


def _folded(a: Any, axis: int) -> Any:
    """A batch of arrays as one array: the batch axis goes in front of `axis` and into it."""
    order = (*range(1, axis + 1), 0, *range(axis + 1, np.ndim(a)))
    moved = np.transpose(a, order)
    shape = np.shape(moved)
    return np.reshape(moved, (*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :]))


def _unfolded(a: Any, axis: int, count: int) -> Any:
    shape = np.shape(a)
    split = np.reshape(a, (*shape[:axis], count, shape[axis] // count, *shape[axis + 1 :]))
    return np.transpose(split, (axis, *range(axis), *range(axis + 1, np.ndim(split))))


def _stretched(a: Any, count: int, *, batched: bool) -> Any:
    return a if batched else np.broadcast_to(a, (count, *np.shape(a)))


def _batch_data(primitive: Bilinear, w: Any, x: Any, batched: Sequence[bool], groups: int, **params: Any) -> Any:
    """`conv` and its data gradient: the second operand is data, and so is the result."""
    count = np.shape(w if batched[0] else x)[0]
    if not batched[0]:
        return _unfolded(primitive(w, _folded(x, 0), groups=groups, **params), 0, count)
    x = _stretched(x, count, batched=batched[1])
    return _unfolded(primitive(_folded(w, 0), _folded(x, 1), groups=count * groups, **params), 1, count)


def _batch_weights(y: Any, x: Any, batched: Sequence[bool], groups: int, **params: Any) -> Any:
    count = np.shape(y if batched[0] else x)[0]
    y, x = _stretched(y, count, batched=batched[0]), _stretched(x, count, batched=batched[1])
    folded = conv_weight_gradient(_folded(y, 1), _folded(x, 1), groups=count * groups, **params)
    return _unfolded(folded, 0, count)


def _wanted_x(v: Any, w: Any, x: Any, **params: Any) -> Any:
    return cast(conv_data_gradient(w, v, size=np.shape(x)[2:], **params), x.dtype)


def _wanted_w(v: Any, w: Any, x: Any, **params: Any) -> Any:
    return cast(conv_weight_gradient(v, x, kernel=np.shape(w)[2:], **params), w.dtype)


conv: Bilinear = Bilinear(
    "conv",
    _convolve,
    _conv_type,
    _wanted_w,
    _wanted_x,
    lambda types, result: _flops_of(result.size, types[0].shape),
    into=_convolve_into,
    batch=lambda w, x, batched, **params: _batch_data(conv, w, x, batched, **params),
)
conv_data_gradient: Bilinear = Bilinear(
    "conv_data_gradient",
    _data_gradient,
    _data_type,
    lambda v, w, y, size, **params: cast(conv_weight_gradient(y, v, kernel=np.shape(w)[2:], **params), w.dtype),
    lambda v, w, y, size, **params: cast(conv(w, v, **params), y.dtype),
    lambda types, result: _flops_of(types[1].size, types[0].shape),
    into=_data_gradient_into,
    batch=lambda w, y, batched, **params: _batch_data(conv_data_gradient, w, y, batched, **params),
)
conv_weight_gradient: Bilinear = Bilinear(
    "conv_weight_gradient",
    _weight_gradient,
    _weight_type,
    lambda v, y, x, kernel, **params: cast(conv(v, x, **params), y.dtype),
    lambda v, y, x, kernel, **params: cast(conv_data_gradient(v, y, size=np.shape(x)[2:], **params), x.dtype),
    lambda types, result: _flops_of(types[0].size, result.shape),
    into=_weight_gradient_into,
    batch=_batch_weights,
)

for _rule in (conv, conv_data_gradient, conv_weight_gradient):
    _rule.needs_scratch = True

_PLAIN: dict[str, Any] = {"stride": (1,), "pad": ((0, 0),), "dilation": (1,), "groups": 1}
_BROAD: dict[str, Any] = {"stride": (2, 1), "pad": ((1, 0), (2, 1)), "dilation": (1, 2), "groups": 2}
cases(conv, normal(3, 2, 3), normal(2, 2, 7), **_PLAIN)
cases(conv, normal(4, 2, 2, 3), normal(2, 4, 5, 6), **_BROAD, because="stride, padding, dilation and groups at once")
cases(
    conv,
    normal(2, 3, 1, 1),
    normal(2, 3, 4, 5),
    **{**_PLAIN, "stride": (1, 1), "pad": ((0, 0),) * 2, "dilation": (1, 1)},
)
cases(
    conv,
    normal(2, 1, 2, 2, 2),
    normal(1, 1, 4, 3, 4),
    stride=(2, 1, 1),
    pad=((0, 1), (0, 0), (1, 1)),
    dilation=(1, 1, 2),
    groups=1,
)
cases(conv_data_gradient, normal(3, 2, 3), normal(2, 3, 5), size=(7,), **_PLAIN)
cases(conv_data_gradient, normal(4, 2, 2, 3), normal(2, 4, 3, 5), size=(5, 6), **_BROAD)
cases(conv_weight_gradient, normal(2, 3, 5), normal(2, 2, 7), kernel=(3,), **_PLAIN)
cases(conv_weight_gradient, normal(2, 4, 3, 5), normal(2, 4, 5, 6), kernel=(2, 3), **_BROAD)

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

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from pullback.core.cases import cases, normal
from pullback.core.kinds import Bilinear, cast
from pullback.core.writing import by_writing
from pullback.ir.types import ArrayType, Shape, type_of
from pullback.rules.sliding import Pads, Sliding

#: Half a second-level cache of 1 MiB; all of a common one of 512 KiB.
COLUMN_BYTES = 512 * 1024


Spare = Mapping[str, Any]


class _Products:
    """One convolution seen as products of matrices, block by block of examples and band by band of output rows.

    Examples are the last axis on the way, so that windows are copied and added in runs of a row of all examples of a
    block. In rows of one example a run is as short as an image is small, and costs more than its numbers: on 128
    examples of 8 x 8 windows the data gradient took 3.7 ms and takes 2.5, the weight gradient 2.3 and 1.4.

    It works in the arrays it is given by name, of the shapes it says: `columns`, the windows of a band; `padded`, a block
    of examples in this order and with their padding; `turned`, the outputs of a band in this order.
    """

    def __init__(
        self,
        sliding: Sliding,
        examples: int,
        groups: int,
        channels: int,
        outputs: int,
        dtype: np.dtype[Any],
        spare: Spare,
    ) -> None:
        self.sliding = sliding
        self.groups = groups
        self.channels = channels
        self.outputs = outputs
        self.examples = examples
        self.spare = spare
        self.dtype = np.dtype(np.float32) if dtype == np.float16 else dtype
        self.depth = channels // groups * prod(sliding.kernel)
        self.row = prod(sliding.out[1:])
        row_bytes = max(1, groups * self.depth * self.row * self.dtype.itemsize)
        rows = sliding.out[0]
        beside = (channels * prod(sliding.padded) + outputs * rows * self.row) * self.dtype.itemsize
        self.count = max(1, min(examples, COLUMN_BYTES // (row_bytes * max(1, rows) + beside)))
        self.band = min(rows, max(1, COLUMN_BYTES // row_bytes))

    def spares(self, x_dtype: np.dtype[Any], y_dtype: np.dtype[Any]) -> dict[str, ArrayType]:
        """What is needed between x and y, which need not be turned where a block is one example."""
        spare = {"columns": ArrayType((self.groups, self.depth, self.band * self.row * self.count), self.dtype)}
        if self.count > 1 or any(map(any, self.sliding.pad)):
            spare["padded"] = ArrayType((self.channels, *self.sliding.padded, self.count), x_dtype)
        if self.count > 1 or y_dtype != self.dtype:
            spare["turned"] = ArrayType((self.outputs, self.band * self.row, self.count), self.dtype)
        return spare

    def blocks(self) -> Iterator[tuple[slice, list[slice]]]:
        """Blocks of examples and the bands of each: several whole examples, or one in bands, whose windows fit the buffer."""
        rows = self.sliding.out[0]
        bands = [slice(row, min(row + self.band, rows)) for row in range(0, rows, self.band)]
        for first in range(0, self.examples, self.count):
            yield slice(first, min(first + self.count, self.examples)), bands

    def padded(self, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """A block of examples with their padding, (channels, …, examples)."""
        turned = _examples_last(x)
        if "padded" not in self.spare:
            return turned
        wide = _front(self.spare["padded"], (self.channels, *self.sliding.padded, len(x)))
        if any(map(any, self.sliding.pad)):
            wide.fill(0)
        np.copyto(wide[(*self.sliding.interior, slice(None))], turned)
        return wide

    def columns(self, padded: np.ndarray[Any, Any], band: slice) -> np.ndarray[Any, Any]:
        """The windows of a band, (groups, depth, places of all examples), copied."""
        windows = _examples_last(self.sliding.windows(_examples_first(padded)))
        windows = windows[(slice(None),) * (1 + len(self.sliding.kernel)) + (band,)]
        columns = self.buffer(band, padded.shape[-1])
        np.copyto(columns.reshape(windows.shape), windows)
        return columns

    def buffer(self, band: slice, count: int) -> np.ndarray[Any, Any]:
        """The buffer of windows in the shape of those of a band."""
        return _front(self.spare["columns"], (self.groups, self.depth, (band.stop - band.start) * self.row * count))

    def places(self, part: np.ndarray[Any, Any], band: slice) -> np.ndarray[Any, Any]:
        """The part of an output that belongs to a band, as a view (groups, outputs of a group, places, examples)."""
        in_groups = part.reshape(len(part), self.groups, self.outputs // self.groups, prod(self.sliding.out))
        return _examples_last(in_groups[..., band.start * self.row : band.stop * self.row])

    def turned(self, places: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """An array (groups, outputs of a group, places of all examples) for `places`: they themselves if that is a view."""
        if "turned" not in self.spare:
            return places[..., 0]
        return _front(self.spare["turned"], (*places.shape[:2], places.shape[2] * places.shape[3]))

    def matrices(self, w: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The weights as one matrix a group."""
        return w.reshape(self.groups, w.shape[0] // self.groups, self.depth).astype(self.dtype, copy=False)


def _examples_last(a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return a.transpose(*range(1, a.ndim), 0)  # np.moveaxis takes ten times as long


def _examples_first(a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return a.transpose(-1, *range(a.ndim - 1))


def _front(array: np.ndarray[Any, Any], shape: Shape) -> np.ndarray[Any, Any]:
    """The first elements of an array, in another shape."""
    return array.reshape(-1)[: prod(shape)].reshape(shape)


def _by_examples(a: np.ndarray[Any, Any], groups: int, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Data as (examples, groups, channels of a group, places): what pointwise windows are multiplied in, uncopied."""
    rows = a.reshape(len(a), groups, a.shape[1] // groups, prod(a.shape[2:]))
    return rows.astype(dtype, copy=False)


def _convolution(
    w: ArrayType, x: ArrayType, stride: Shape, pad: Pads, dilation: Shape, groups: int, scratch: Sequence[Any] = ()
) -> tuple[_Products, dict[str, ArrayType]]:
    """The products of `conv`, in arrays that are there, and the types of these arrays."""
    sliding = Sliding(x.shape[2:], w.shape[2:], stride, pad, dilation)
    dtype = np.result_type(w.dtype, x.dtype)
    products = _Products(sliding, x.shape[0], groups, x.shape[1], w.shape[0], dtype, {})
    spare = {} if sliding.is_pointwise else products.spares(x.dtype, dtype)
    products.spare = dict(zip(spare, scratch, strict=False))
    return products, spare


def _convolve_spare(w: ArrayType, x: ArrayType, stride: Shape, pad: Pads, dilation: Shape, groups: int) -> Spare:
    return _convolution(w, x, stride, pad, dilation, groups)[1]


def _convolve_into(
    y: Any,
    w: Any,
    x: Any,
    stride: Shape,
    pad: Pads,
    dilation: Shape,
    groups: int,
    scratch: Sequence[Any] = (),
) -> Any:
    if not (y.size and w.size):
        y.fill(0)
        return y
    products, _ = _convolution(type_of(w), type_of(x), stride, pad, dilation, groups, scratch)
    matrices = products.matrices(w)
    if products.sliding.is_pointwise:
        np.matmul(matrices, _by_examples(x, groups, products.dtype), out=_by_examples(y, groups, y.dtype))
        return y
    for block, bands in products.blocks():
        padded = products.padded(x[block])
        for band in bands:
            places = products.places(y[block], band)
            turned = products.turned(places)
            np.matmul(matrices, products.columns(padded, band), out=turned)
            if "turned" in products.spare:
                np.copyto(places, turned.reshape(places.shape), casting="same_kind")
    return y


def _data_gradient(
    w: ArrayType,
    y: ArrayType,
    size: Shape,
    stride: Shape,
    pad: Pads,
    dilation: Shape,
    groups: int,
    scratch: Sequence[Any] = (),
) -> tuple[_Products, dict[str, ArrayType]]:
    sliding = Sliding(size, w.shape[2:], stride, pad, dilation)
    dtype = np.result_type(w.dtype, y.dtype)
    products = _Products(sliding, y.shape[0], groups, w.shape[1] * groups, y.shape[1], dtype, {})
    spare = products.spares(products.dtype, y.dtype)
    if dtype != products.dtype:
        spare["padded"] = ArrayType((products.channels, *sliding.padded, products.count), products.dtype)
    products.spare = dict(zip(spare, scratch, strict=False))
    return products, spare


def _data_gradient_spare(
    w: ArrayType, y: ArrayType, size: Shape, stride: Shape, pad: Pads, dilation: Shape, groups: int
) -> Spare:
    return _data_gradient(w, y, size, stride, pad, dilation, groups)[1]


def _data_gradient_into(
    x: Any,
    w: Any,
    y: Any,
    size: Shape,
    stride: Shape,
    pad: Pads,
    dilation: Shape,
    groups: int,
    scratch: Sequence[Any] = (),
) -> Any:
    if not (x.size and w.size and y.size):
        x.fill(0)
        return x
    products, _ = _data_gradient(type_of(w), type_of(y), size, stride, pad, dilation, groups, scratch)
    transposed = np.swapaxes(products.matrices(w), 1, 2)
    y = np.ascontiguousarray(y)
    for block, bands in products.blocks():
        part = _examples_last(x[block])
        count = part.shape[-1]
        is_direct = "padded" not in products.spare
        shape = (products.channels, *products.sliding.padded, count)
        wide = part if is_direct else _front(products.spare["padded"], shape)
        wide.fill(0)
        for band in bands:
            places = products.places(y[block], band)
            turned = products.turned(places)
            if "turned" in products.spare:
                np.copyto(turned.reshape(places.shape), places)
            columns = products.buffer(band, count)
            np.matmul(transposed, turned, out=columns)
            _add_windows(wide, columns, band, products.sliding)
        if not is_direct:
            np.copyto(part, wide[(*products.sliding.interior, slice(None))], casting="same_kind")
    return x


def _add_windows(wide: np.ndarray[Any, Any], columns: np.ndarray[Any, Any], band: slice, sliding: Sliding) -> None:
    """Add the windows of a band to where they were taken from; examples are the last axis of both."""
    rows = band.stop - band.start
    windows = columns.reshape(wide.shape[0], *sliding.kernel, rows, *sliding.out[1:], wide.shape[-1])
    for place, (_, first, *rest) in sliding.elements():
        start = first.start + band.start * first.step
        taken: Any = (slice(None), *place)
        met = wide[(slice(None), slice(start, start + (rows - 1) * first.step + 1, first.step), *rest)]
        np.add(met, windows[taken], out=met)


def _weight_gradient(
    y: ArrayType,
    x: ArrayType,
    kernel: Shape,
    stride: Shape,
    pad: Pads,
    dilation: Shape,
    groups: int,
    scratch: Sequence[Any] = (),
) -> tuple[_Products, dict[str, ArrayType]]:
    sliding = Sliding(x.shape[2:], kernel, stride, pad, dilation)
    products = _Products(sliding, x.shape[0], groups, x.shape[1], y.shape[1], np.result_type(y.dtype, x.dtype), {})
    matrices = (groups, y.shape[1] // groups, products.depth)
    if sliding.is_pointwise:
        spare = {"products": ArrayType((products.count, *matrices), products.dtype)}
    else:
        spare = products.spares(x.dtype, y.dtype)
    spare["product"] = ArrayType(matrices, products.dtype)
    products.spare = dict(zip(spare, scratch, strict=False))
    return products, spare


def _weight_gradient_spare(
    y: ArrayType, x: ArrayType, kernel: Shape, stride: Shape, pad: Pads, dilation: Shape, groups: int
) -> Spare:
    return _weight_gradient(y, x, kernel, stride, pad, dilation, groups)[1]


def _weight_gradient_into(
    w: Any,
    y: Any,
    x: Any,
    kernel: Shape,
    stride: Shape,
    pad: Pads,
    dilation: Shape,
    groups: int,
    scratch: Sequence[Any] = (),
) -> Any:
    w.fill(0)
    if not (w.size and y.size):
        return w
    products, _ = _weight_gradient(type_of(y), type_of(x), kernel, stride, pad, dilation, groups, scratch)
    direct = w.dtype == products.dtype
    sums = products.matrices(w) if direct else np.zeros_like(products.matrices(w))
    y = np.ascontiguousarray(y)
    product = products.spare["product"]
    for block, bands in products.blocks():
        if products.sliding.is_pointwise:
            own, rows = (_by_examples(part[block], groups, products.dtype) for part in (y, x))
            each = products.spare["products"][: len(own)]
            np.matmul(own, np.swapaxes(rows, 2, 3), out=each)
            np.add.reduce(each, axis=0, out=product)
            np.add(sums, product, out=sums)
            continue
        padded = products.padded(x[block])
        for band in bands:
            columns = products.columns(padded, band)
            places = products.places(y[block], band)
            turned = products.turned(places)
            if "turned" in products.spare:
                np.copyto(turned.reshape(places.shape), places)
            np.matmul(turned, np.swapaxes(columns, 1, 2), out=product)
            np.add(sums, product, out=sums)
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


def _types(spare: Callable[..., Spare]) -> Callable[..., list[ArrayType]]:
    return lambda *types, **params: list(spare(*types, **params).values())


class _Convolution(Bilinear):
    def makes_arrays(self, *types: ArrayType, **params: Any) -> bool:
        """Half precision is multiplied in single."""
        return any(type_.dtype == np.float16 for type_ in types) or types[0].dtype != types[1].dtype


conv: Bilinear = _Convolution(
    "conv",
    by_writing(_convolve_into, _conv_type, _types(_convolve_spare)),
    _conv_type,
    _wanted_w,
    _wanted_x,
    lambda types, result: _flops_of(result.size, types[0].shape),
    into=_convolve_into,
    scratch=_types(_convolve_spare),
    batch=lambda w, x, batched, **params: _batch_data(conv, w, x, batched, **params),
)
conv_data_gradient: Bilinear = _Convolution(
    "conv_data_gradient",
    by_writing(_data_gradient_into, _data_type, _types(_data_gradient_spare)),
    _data_type,
    lambda v, w, y, size, **params: cast(conv_weight_gradient(y, v, kernel=np.shape(w)[2:], **params), w.dtype),
    lambda v, w, y, size, **params: cast(conv(w, v, **params), y.dtype),
    lambda types, result: _flops_of(types[1].size, types[0].shape),
    into=_data_gradient_into,
    scratch=_types(_data_gradient_spare),
    batch=lambda w, y, batched, **params: _batch_data(conv_data_gradient, w, y, batched, **params),
)
conv_weight_gradient: Bilinear = _Convolution(
    "conv_weight_gradient",
    by_writing(_weight_gradient_into, _weight_type, _types(_weight_gradient_spare)),
    _weight_type,
    lambda v, y, x, kernel, **params: cast(conv(v, x, **params), y.dtype),
    lambda v, y, x, kernel, **params: cast(conv_data_gradient(v, y, size=np.shape(x)[2:], **params), x.dtype),
    lambda types, result: _flops_of(types[0].size, result.shape),
    into=_weight_gradient_into,
    scratch=_types(_weight_gradient_spare),
    batch=_batch_weights,
)

conv.in_lines = (0,)
conv_data_gradient.in_lines = (0, 1)
conv_weight_gradient.in_lines = (0,)

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

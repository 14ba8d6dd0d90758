"""Convolutions over one to three axes: `conv(w, x)` and its two transposes, which are bilinear too.

    conv(w, x)                   y[n, o, t] = sum over c, k of w[o, c, k] * x[n, c, stride * t + dilation * k]
    conv_data_gradient(w, y)     the transpose with respect to x
    conv_weight_gradient(y, x)   the transpose with respect to w

x is (batch, channels, …), w is (outputs, channels / groups, …) and is not flipped, as in most libraries (a correlation);
`pullback.nn.conv` flips it on request. Each of the three is bilinear and the other two are its transposes, so there are
derivatives of every order.

Evaluated as products of matrices: see `pullback.rules.window_products`. float16 is multiplied and summed in float32.
"""

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from pullback.core.cases import cases, normal
from pullback.core.into_arrays import by_writing
from pullback.core.kinds import Bilinear, all_batched, cast
from pullback.core.types import ArrayType, Shape, type_of
from pullback.rules.example_order import is_lined, make
from pullback.rules.sliding import Pads, SlidingWindow
from pullback.rules.window_products import Finish, WindowProducts

Spare = Mapping[str, ArrayType]
"""The arrays that a rule needs while it runs, by name."""


def _by_examples(a: np.ndarray[Any, Any], groups: int, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Data as (examples, groups, channels of a group, places): what pointwise windows are multiplied in, uncopied."""
    rows = a.reshape(len(a), groups, a.shape[1] // groups, prod(a.shape[2:]))
    return rows.astype(dtype, copy=False)


def _convolution(
    w: ArrayType,
    x: ArrayType,
    stride: Shape,
    pad: Pads,
    dilation: Shape,
    groups: int,
    *,
    lined: bool = False,
    x_is_lined: bool = False,
) -> tuple[WindowProducts, Spare]:
    """The products of `conv`, and the types of the arrays they need."""
    sliding = SlidingWindow(x.shape[2:], w.shape[2:], stride, pad, dilation)
    dtype = np.result_type(w.dtype, x.dtype)
    lined = lined and not sliding.is_pointwise
    products = WindowProducts(
        sliding, x.shape[0], groups, x.shape[1], w.shape[0], dtype, lined=lined, x_is_lined=x_is_lined
    )
    return products, {} if sliding.is_pointwise else products.spares(x.dtype, dtype)


def _writing(needs: Callable[..., tuple[WindowProducts, Spare]], write: Callable[..., Any]) -> Callable[..., Any]:
    """The function that writes a result, in the arrays that it is given to work in."""

    def into(out: Any, a: Any, b: Any, *, scratch: Sequence[Any] = (), **params: Any) -> Any:
        products, spare = needs(type_of(a), type_of(b), **params)
        products.spare = dict(zip(spare, scratch, strict=False))
        return write(products, out, a, b)

    return into


def _convolve(products: WindowProducts, y: Any, w: Any, x: Any, finish: Finish | None = None) -> Any:
    if y.size and w.size and not products.sliding.is_pointwise:
        products.correlate(y, w, x, finish)
        return y
    whole = _by_examples(y, products.groups, y.dtype)
    if y.size and w.size:
        np.matmul(products.matrices(w), _by_examples(x, products.groups, products.dtype), out=whole)
    else:
        y.fill(0)
    if finish is not None:
        finish(whole)
    return y


def convolve(w: Any, x: Any, finish: Finish, **params: Any) -> Any:
    """The value of `conv`, changed in place by `finish` part by part, with its examples side by side where that pays."""
    types = type_of(w), type_of(x)
    products, spare = _convolution(*types, **params, lined=True, x_is_lined=is_lined(x))
    products.spare = {name: make(type_, lined=False) for name, type_ in spare.items()}
    return _convolve(products, make(_conv_type(*types, **params), lined=products.lined), w, x, finish)


def _data_gradient(
    w: ArrayType,
    y: ArrayType,
    size: Shape,
    stride: Shape,
    pad: Pads,
    dilation: Shape,
    groups: int,
    *,
    lined: bool = False,
) -> tuple[WindowProducts, Spare]:
    sliding = SlidingWindow(size, w.shape[2:], stride, pad, dilation)
    dtype = np.result_type(w.dtype, y.dtype)
    is_half = dtype == np.float16
    products = WindowProducts(
        sliding,
        y.shape[0],
        groups,
        w.shape[1] * groups,
        y.shape[1],
        dtype,
        lined=lined,
        x_is_lined=not is_half,
        folds=True,
    )
    spare = products.spares(products.dtype, y.dtype)
    if is_half:
        spare["padded"] = ArrayType((products.channels, *sliding.padded, products.count), products.dtype)
    return products, spare


def _spread(products: WindowProducts, x: Any, w: Any, y: Any) -> Any:
    if x.size and w.size and y.size:
        products.spread(x, w, y)
    else:
        x.fill(0)
    return x


def _data_gradient_of(w: Any, y: Any, **params: Any) -> Any:
    """The data gradient, with its examples as those of y lie."""
    types = type_of(w), type_of(y)
    products, spare = _data_gradient(*types, **params, lined=is_lined(y))
    products.spare = {name: make(type_, lined=False) for name, type_ in spare.items()}
    return _spread(products, make(_data_type(*types, **params), lined=products.lined), w, y)


def _weight_gradient(
    y: ArrayType,
    x: ArrayType,
    kernel: Shape,
    stride: Shape,
    pad: Pads,
    dilation: Shape,
    groups: int,
    *,
    lined: bool = False,
    x_is_lined: bool = False,
) -> tuple[WindowProducts, Spare]:
    sliding = SlidingWindow(x.shape[2:], kernel, stride, pad, dilation)
    dtype = np.result_type(y.dtype, x.dtype)
    products = WindowProducts(
        sliding, x.shape[0], groups, x.shape[1], y.shape[1], dtype, lined=lined, x_is_lined=x_is_lined
    )
    if not sliding.is_pointwise:
        return products, {**products.spares(x.dtype, y.dtype), **products.weighing_spares()}
    matrices = (groups, y.shape[1] // groups, products.depth)
    return products, {
        "products": ArrayType((products.count, *matrices), products.dtype),
        "product": ArrayType(matrices, products.dtype),
    }


def _weight_gradient_of(y: Any, x: Any, **params: Any) -> Any:
    """The weight gradient, by rows of all examples if those of y lie so."""
    types = type_of(y), type_of(x)
    products, spare = _weight_gradient(*types, **params, lined=is_lined(y), x_is_lined=is_lined(x))
    products.spare = {name: make(type_, lined=False) for name, type_ in spare.items()}
    return _weigh(products, make(_weight_type(*types, **params), lined=False), y, x)


def _weigh(products: WindowProducts, w: Any, y: Any, x: Any) -> Any:
    w.fill(0)
    if not (w.size and y.size):
        return w
    direct = w.dtype == products.dtype
    sums = products.matrices(w) if direct else np.zeros_like(products.matrices(w))
    if products.sliding.is_pointwise:
        _weigh_points(products, sums, y, x)
    else:
        products.weigh(sums, y, x)
    if not direct:
        w[...] = sums.reshape(w.shape)
    return w


def _weigh_points(products: WindowProducts, sums: Any, y: Any, x: Any) -> None:
    """Add to sums the products of outputs with windows of one element, which are x itself."""
    product = products.spare["product"]
    for first in range(0, len(y), products.count):
        own, rows = (
            _by_examples(part[first : first + products.count], products.groups, products.dtype) for part in (y, x)
        )
        point_products = products.spare["products"][: len(own)]
        np.matmul(own, np.swapaxes(rows, 2, 3), out=point_products)
        np.add.reduce(point_products, axis=0, out=product)
        np.add(sums, product, out=sums)


def _conv_type(w: ArrayType, x: ArrayType, stride: Shape, pad: Pads, dilation: Shape, groups: int) -> ArrayType:
    if len(x.shape) != len(w.shape) or w.shape[1] * groups != x.shape[1] or w.shape[0] % groups:
        raise ValueError(
            f"conv: w of shape {w.shape} does not fit x of shape {x.shape} in {groups} groups; w is (outputs, channels "
            "/ groups, …), x is (batch, channels, …), and groups divides both"
        )
    sliding = SlidingWindow(x.shape[2:], w.shape[2:], stride, pad, dilation)
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


def _batch_data(primitive: Bilinear, w: Any, x: Any, batched: Sequence[bool], groups: int, **params: Any) -> Any:
    """`conv` and its data gradient: the second operand is data, and so is the result."""
    count = np.shape(w if batched[0] else x)[0]
    if not batched[0]:
        return _unfolded(primitive(w, _folded(x, 0), groups=groups, **params), 0, count)
    _, x = all_batched((w, x), batched)
    return _unfolded(primitive(_folded(w, 0), _folded(x, 1), groups=count * groups, **params), 1, count)


def _batch_weights(y: Any, x: Any, batched: Sequence[bool], groups: int, **params: Any) -> Any:
    y, x = all_batched((y, x), batched)
    count = np.shape(y)[0]
    folded = conv_weight_gradient(_folded(y, 1), _folded(x, 1), groups=count * groups, **params)
    return _unfolded(folded, 0, count)


def _wanted_x(v: Any, w: Any, x: Any, **params: Any) -> Any:
    return cast(conv_data_gradient(w, v, size=np.shape(x)[2:], **params), x.dtype)


def _wanted_w(v: Any, w: Any, x: Any, **params: Any) -> Any:
    return cast(conv_weight_gradient(v, x, kernel=np.shape(w)[2:], **params), w.dtype)


def _types(needs: Callable[..., tuple[WindowProducts, Spare]]) -> Callable[..., list[ArrayType]]:
    return lambda *types, **params: list(needs(*types, **params)[1].values())


class _Convolution(Bilinear):
    def makes_arrays(self, *types: ArrayType, **params: Any) -> bool:
        """Half precision is multiplied in single."""
        return any(type_.dtype == np.float16 for type_ in types) or types[0].dtype != types[1].dtype


conv: Bilinear = _Convolution(
    "conv",
    by_writing(_writing(_convolution, _convolve), _conv_type, _types(_convolution)),
    _conv_type,
    _wanted_w,
    _wanted_x,
    lambda types, result: _flops_of(result.size, types[0].shape),
    into=_writing(_convolution, _convolve),
    scratch=_types(_convolution),
    batch=lambda w, x, batched, **params: _batch_data(conv, w, x, batched, **params),
)
conv_data_gradient: Bilinear = _Convolution(
    "conv_data_gradient",
    _data_gradient_of,
    _data_type,
    lambda v, w, y, size, **params: cast(conv_weight_gradient(y, v, kernel=np.shape(w)[2:], **params), w.dtype),
    lambda v, w, y, size, **params: cast(conv(w, v, **params), y.dtype),
    lambda types, result: _flops_of(types[1].size, types[0].shape),
    into=_writing(_data_gradient, _spread),
    scratch=_types(_data_gradient),
    batch=lambda w, y, batched, **params: _batch_data(conv_data_gradient, w, y, batched, **params),
)
conv_weight_gradient: Bilinear = _Convolution(
    "conv_weight_gradient",
    _weight_gradient_of,
    _weight_type,
    lambda v, y, x, kernel, **params: cast(conv(v, x, **params), y.dtype),
    lambda v, y, x, kernel, **params: cast(conv_data_gradient(v, y, size=np.shape(x)[2:], **params), x.dtype),
    lambda types, result: _flops_of(types[0].size, result.shape),
    into=_writing(_weight_gradient, _weigh),
    scratch=_types(_weight_gradient),
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

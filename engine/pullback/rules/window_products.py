"""Convolutions as products of matrices: the windows of some examples are copied into a buffer and multiplied there.

The windows of a few examples, or of some rows of them, are copied into a buffer of COLUMN_BYTES and multiplied while it is
in the cache. Bytes beside the result, for K elements in a window, C channels, T places and N examples:

    all windows at once, one product    K * C * T * N     nine times the input for a window of 3 x 3
    K products of shifted inputs        (C + O) * T * N   and the output is read and written K times
    windows in pieces (this file)       COLUMN_BYTES      every window element is written once, into the cache

Examples are the last axis in between, so that windows are copied and added in runs of a row of all examples of a block.
In rows of one example a run is as short as an image is small, and costs more than its numbers. Where input and output lie
so themselves (`pullback.rules.example_order`), nothing is transposed, and a block is a row of all examples.
"""

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from pullback.core.types import ArrayType, Shape
from pullback.core.ufunc_buffers import rows_in_place
from pullback.dataclass import dataclass
from pullback.rules.example_order import examples_first, examples_last
from pullback.rules.sliding import SlidingWindow

#: More than half a second-level cache of 1 MiB.
COLUMN_BYTES = 640 * 1024

#: So many multiplications OpenBLAS does without packing its operands first, where it has AVX-512: products of 16 x 150
#: with many columns run at 92 to 105 GFLOP/s and not at 44 to 79 in pieces of this size (single precision).
SMALL_PRODUCT = 1_000_000
#: Fewer columns than this are not worth a call.
FEWEST_COLUMNS = 96

#: Runs of so many examples are worth lying side by side, if not all of a smaller batch are in one.
LONG_RUN = 64
SHORTEST_RUN = 16

Finish = Callable[[np.ndarray[Any, Any]], object]
"""A function of a product (groups, outputs of a group, places) in the cache, which it changes in place."""


class WindowProducts:
    """One convolution seen as products of matrices, block by block of examples and band by band of output rows.

    It works in arrays that are passed by name, of the types of `spares`: `columns`, the windows of a band; `padded`, a
    block of examples in this order and with their padding; `transposed`, the outputs of a band in this order; `folds`,
    windows that are added up along some axes only.

    `lined`: for outputs that lie with their examples side by side, where that can be done in these arrays.
    """

    def __init__(
        self,
        sliding: SlidingWindow,
        examples: int,
        groups: int,
        channels: int,
        outputs: int,
        dtype: np.dtype[Any],
        *,
        lined: bool = False,
        x_is_lined: bool = False,
        folds: bool = False,
    ) -> None:
        self.sliding = sliding
        self.groups = groups
        self.channels = channels
        self.outputs = outputs
        self.examples = examples
        self.folds = folds
        self.spare: dict[str, Any] = {}
        self.dtype = np.dtype(np.float32) if dtype == np.float16 else dtype
        self.depth = channels // groups * prod(sliding.kernel)
        self.row = prod(sliding.out[1:])
        self._row_bytes = max(1, groups * self.depth * self.row * self.dtype.itemsize)
        self._is_copied = any(map(any, sliding.pad)) or not x_is_lined  # where the examples are to lie side by side
        self.lined = lined and self._examples_in_a_row() > 0
        # Where bands are single rows, most is added up along the other axes; else along this one, in runs of whole bands.
        axes = range(len(sliding.kernel))
        self.fold_order = tuple(reversed(axes)) if self.lined else tuple(axes)
        rows = sliding.out[0]
        if self.lined:
            self.count = self._examples_in_a_row()
            self.band = min(rows, max(1, COLUMN_BYTES // (self._row_bytes * self.count)))
        else:
            beside = channels * prod(sliding.padded) + outputs * rows * self.row
            if folds:
                beside += sum(map(prod, self.fold_shapes(rows, 1)))
            count = COLUMN_BYTES // (self._row_bytes * max(1, rows) + beside * self.dtype.itemsize)
            self.count = max(1, min(examples, count // 4 * 4 or count))  # runs of fours are transposed faster
            self.band = min(rows, max(1, COLUMN_BYTES // self._row_bytes))
        self._blocks: dict[int, _Block] = {}

    def _examples_in_a_row(self) -> int:
        """The number of examples of a block whose bands are single rows; 0 if too few fit beside their copies."""
        example_bytes = self._row_bytes
        if self._is_copied:
            example_bytes = max(example_bytes, self.channels * prod(self.sliding.padded) * self.dtype.itemsize)
        most = max(1, COLUMN_BYTES // example_bytes)
        count = -(-self.examples // -(-self.examples // most)) if self.examples else 0
        return count if count >= LONG_RUN or count == self.examples >= SHORTEST_RUN else 0

    def spares(self, x_dtype: np.dtype[Any], y_dtype: np.dtype[Any]) -> dict[str, ArrayType]:
        """Types of the buffers between x and y; `padded` and `transposed` only where examples have to be copied."""
        spare = {"columns": ArrayType((self.groups, self.depth, self.band * self.row * self.count), self.dtype)}
        if self._is_copied if self.lined else self.count > 1 or any(map(any, self.sliding.pad)):
            spare["padded"] = ArrayType((self.channels, *self.sliding.padded, self.count), x_dtype)
        is_transposed = self.count != self.examples if self.lined else self.count > 1
        if is_transposed or y_dtype != self.dtype:
            spare["transposed"] = ArrayType((self.outputs, self.band * self.row, self.count), self.dtype)
        if self.folds:
            for number, shape in enumerate(self.fold_shapes(self.band, self.count)):
                spare[f"fold {number}"] = ArrayType(shape, self.dtype)
        return spare

    def fold_shapes(self, rows: int, count: int) -> list[Shape]:
        """Shapes of the windows of a band, added up along the first axis of `fold_order`, along the first two and so on."""
        shapes: list[Shape] = []
        for done in range(1, len(self.fold_order)):
            folded = self.fold_order[:done]
            left = [length for axis, length in enumerate(self.sliding.kernel) if axis not in folded]
            sizes = [
                self.met(axis, rows) if axis in folded else self.out(axis, rows) for axis in range(len(self.fold_order))
            ]
            shapes.append((self.channels, *left, *sizes, count))
        return shapes

    def out(self, axis: int, rows: int) -> int:
        """Places of the windows of a band along an axis."""
        return self.sliding.out[axis] if axis else rows

    def met(self, axis: int, rows: int) -> int:
        """The extent of the padded input along an axis that a band of so many rows meets."""
        if axis:
            return self.sliding.padded[axis]
        return (rows - 1) * self.sliding.stride[0] + (self.sliding.kernel[0] - 1) * self.sliding.dilation[0] + 1

    def blocks(self) -> "Iterator[tuple[slice, _Block]]":
        """Blocks of examples and their views of the buffers."""
        for first in range(0, self.examples, self.count):
            last = min(first + self.count, self.examples)
            if last - first not in self._blocks:
                self._blocks[last - first] = _Block.of(self, last - first)
            yield slice(first, last), self._blocks[last - first]

    def windows_read(self, x: np.ndarray[Any, Any]) -> "Iterator[tuple[slice, _Band]]":
        """Copy the windows of every band into its columns, band by band of block by block."""
        x_last = examples_last(x)
        # Where nothing lies between x and its windows they are read from x itself.
        direct = None if "padded" in self.spare else examples_last(self.sliding.windows(x))
        for examples, block in self.blocks():
            if block.interior is not None:
                np.copyto(block.interior, x_last[..., examples])
            for band in block.bands:
                windows = band.windows
                if direct is not None:
                    windows = direct[(*band.key, examples)]
                np.copyto(band.elements, windows)
                yield examples, band

    def places(self, y: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """An output as a view (groups, outputs of a group, places, examples)."""
        return examples_last(y.reshape(len(y), self.groups, self.outputs // self.groups, prod(self.sliding.out)))

    def in_line(self, y: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """An output in the layout that `places` can view."""
        return y if self.lined else np.ascontiguousarray(y)

    def matrices(self, w: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The weights as one matrix a group."""
        return w.reshape(self.groups, w.shape[0] // self.groups, self.depth).astype(self.dtype, copy=False)

    # --- the three products ---------------------------------------------------------------------------------------------

    def correlate(self, y: np.ndarray[Any, Any], w: Any, x: Any, finish: Finish | None = None) -> None:
        """Write to y the products of the weights with all windows of x, finished one by one."""
        matrices, y_places = self.matrices(w), self.places(y)
        for examples, band in self.windows_read(x):
            places = y_places[..., band.places, examples]
            product = _in_one(places) if band.transposed is None else band.transposed
            _multiply(matrices, band.columns, product)
            if finish is not None:
                finish(product)
            if band.transposed is not None:
                np.copyto(places, band.transposed_examples, casting="same_kind")

    def spread(self, x: np.ndarray[Any, Any], w: Any, y: Any) -> None:
        """Write to x the transpose of `correlate`: products of the weights with y, added up over the windows."""
        transposed = np.swapaxes(self.matrices(w), 1, 2)
        x_last, y_places = examples_last(x), self.places(self.in_line(y))
        with rows_in_place():
            for examples, block in self.blocks():
                wide = x_last[..., examples] if block.wide is None else block.wide
                wide.fill(0)
                for band in block.bands:
                    _multiply(transposed, band.outputs_of(y_places[..., band.places, examples]), band.columns)
                    band.fold(wide)
                if block.interior is not None:
                    np.copyto(x_last[..., examples], block.interior, casting="same_kind")

    def weigh(self, sums: np.ndarray[Any, Any], y: Any, x: Any) -> None:
        """Add to sums, one matrix a group, the products of the outputs y with the windows of x.

        BLAS is given the longer of the two as rows: 16 outputs by 150 elements of a window run at 75 instead of 40 GFLOP/s.
        """
        y_places = self.places(self.in_line(y))
        total, product = self.spare.get("total"), self.spare["product"]
        if total is not None:
            total.fill(0)
        for examples, band in self.windows_read(x):
            transposed = band.outputs_of(y_places[..., band.places, examples])
            if total is None:
                np.matmul(transposed, np.swapaxes(band.columns, 1, 2), out=product)
                np.add(sums, product, out=sums)
            else:
                np.matmul(band.columns, np.swapaxes(transposed, 1, 2), out=product)
                np.add(total, product, out=total)
        if total is not None:
            np.add(sums, np.swapaxes(total, 1, 2), out=sums)

    def weighing_spares(self) -> dict[str, ArrayType]:
        """Types of the buffers that `weigh` needs beside the windows."""
        outputs = self.outputs // self.groups
        if outputs >= self.depth:
            return {"product": ArrayType((self.groups, outputs, self.depth), self.dtype)}
        type_ = ArrayType((self.groups, self.depth, outputs), self.dtype)
        return {"product": type_, "total": type_}


def _multiply(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any], out: np.ndarray[Any, Any]) -> None:
    """A product of matrices, some columns at a time."""
    columns = SMALL_PRODUCT // max(1, a.shape[1] * a.shape[2]) // 16 * 16
    if columns < FEWEST_COLUMNS or columns >= b.shape[2]:
        np.matmul(a, b, out=out)
        return
    for first in range(0, b.shape[2], columns):
        piece = slice(first, first + columns)
        np.matmul(a, b[:, :, piece], out=out[:, :, piece])


def _in_one(places: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Outputs (groups, outputs of a group, places, examples) as one matrix a group: a view, if `transposed` is None."""
    return places.reshape(*places.shape[:2], places.shape[2] * places.shape[3])


@dataclass(frozen=True, slots=True)
class _Band:
    """Some rows of the outputs of a block, with their views of the buffers.

    Views are made once in a run and not for every block: making them takes as long as copying a small window.
    """

    rows: slice
    """Along the first axis of the outputs."""
    places: slice
    """Along all axes of the outputs, in one."""
    key: tuple[Any, ...]
    """Key of the windows of these rows in all windows (channels, kernel…, out…)."""
    columns: np.ndarray[Any, Any]
    """(groups, depth, places of all examples)."""
    elements: np.ndarray[Any, Any]
    """The same as (channels, kernel…, out…, examples)."""
    windows: Any
    """The view of the padded examples that is copied there."""
    transposed: Any
    """(groups, outputs of a group, places of all examples), and the same with the examples apart; None where y is used."""
    transposed_examples: Any
    folding: tuple[tuple[Any, Sequence[Any], Sequence[Any]], ...]
    """Steps of adding windows up: the array added to (None: the padded examples), keys of it, keys of what is added."""

    def outputs_of(self, places: np.ndarray[Any, Any]) -> Any:
        """Outputs as one matrix a group, copied where their examples are not the last axis already."""
        if self.transposed is None:
            return _in_one(places)
        np.copyto(self.transposed_examples, places)
        return self.transposed

    def fold(self, wide: np.ndarray[Any, Any]) -> None:
        """Add the windows to where they were taken from, axis by axis.

        Along the first axis of the window whole bands are added, which lie in one run; what is left to add along the last,
        in runs of a row, is as many times less as the window is high. Element by element of the window it took twice as long.
        """
        added = self.elements
        for target, input_keys, taken in self.folding:
            if target is not None:
                target.fill(0)
            met_in = wide if target is None else target
            for key, place in zip(input_keys, taken, strict=True):
                part = met_in[key]
                np.add(part, added[place], out=part)
            added = met_in


@dataclass(frozen=True, slots=True)
class _Block:
    """The views of the buffers for a number of examples."""

    wide: Any
    """(channels, padded…, examples); None where nothing lies between x and its windows."""
    interior: Any
    """The view of it without the padding."""
    bands: tuple[_Band, ...]

    @staticmethod
    def of(products: WindowProducts, count: int) -> "_Block":
        sliding, spare = products.sliding, products.spare
        wide = interior = windows = None
        if "padded" in spare:
            wide = _front(spare["padded"], (products.channels, *sliding.padded, count))
            if any(map(any, sliding.pad)):
                wide.fill(0)  # and stays so: only what is not padding is written to
            interior = wide[(*sliding.interior, slice(None))]
            windows = examples_last(sliding.windows(examples_first(wide)))
        rows = sliding.out[0]
        bands = [slice(row, min(row + products.band, rows)) for row in range(0, rows, products.band)]
        return _Block(wide, interior, tuple(_band(products, windows, band, count) for band in bands))


def _band(products: WindowProducts, windows: Any, rows: slice, count: int) -> _Band:
    sliding, spare = products.sliding, products.spare
    height = rows.stop - rows.start
    places = slice(rows.start * products.row, rows.stop * products.row)
    columns = _front(spare["columns"], (products.groups, products.depth, height * products.row * count))
    elements = columns.reshape(products.channels, *sliding.kernel, height, *sliding.out[1:], count)
    key = (*[slice(None)] * (1 + len(sliding.kernel)), rows, ...)
    transposed = examples_apart = None
    if "transposed" in spare:
        outputs = products.outputs // products.groups
        transposed = _front(spare["transposed"], (products.groups, outputs, height * products.row * count))
        examples_apart = transposed.reshape(products.groups, outputs, height * products.row, count)
    folding = _folding(products, rows, count) if products.folds else ()
    own = None if windows is None else windows[key]
    return _Band(rows, places, key, columns, elements, own, transposed, examples_apart, folding)


def _folding(products: WindowProducts, rows: slice, count: int) -> tuple[Any, ...]:
    """The steps of adding up the windows of a band, one for each of their axes; the last adds to the padded examples."""
    sliding, order = products.sliding, products.fold_order
    height = rows.stop - rows.start
    shapes = products.fold_shapes(height, count)
    steps = []
    for number, axis in enumerate(order):
        is_last = number == len(shapes)
        target = None if is_last else _front(products.spare[f"fold {number}"], shapes[number])
        left = sorted(order[number:])  # axes of the window that are still to be added up
        spatial = [slice(None)] * len(order)
        first = rows.start * sliding.stride[0] if is_last else 0
        if is_last:
            spatial[0] = slice(first, first + products.met(0, height))
        input_keys, taken = [], []
        for place in range(sliding.kernel[axis]):
            start = place * sliding.dilation[axis] + (0 if axis else first)
            stop = start + (products.out(axis, height) - 1) * sliding.stride[axis] + 1
            spatial[axis] = slice(start, stop, sliding.stride[axis])
            input_keys.append((*[slice(None)] * len(left), *spatial))
            taken.append((*[slice(None)] * (1 + left.index(axis)), place))
        steps.append((target, input_keys, taken))
    return tuple(steps)


def _front(array: np.ndarray[Any, Any], shape: Shape) -> np.ndarray[Any, Any]:
    """The first elements of an array, in another shape."""
    return array.reshape(-1)[: prod(shape)].reshape(shape)

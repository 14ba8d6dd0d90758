"""A nest over the result of a product as the epilogue of the product.

    C = A B, then y = tanh(C + b)    ->    every tile of C gets b added and tanh taken as soon as it is stored

The first read of the nest is the product; there are no reductions, and every write has the axes of the product.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.backends.native.elementary import scalars
from pullback.backends.native.emission import Emission
from pullback.backends.native.kernels import cut_off
from pullback.backends.native.kernels.epilogues import Epilogue, Place
from pullback.backends.native.kernels.nest import Constant, Nest, Read, Step, Write
from pullback.backends.native.kernels.nests import emit_nest
from pullback.backends.native.kernels.product import Product
from pullback.backends.native.kernels.products import emit_product
from pullback.backends.native.writing.function import Function, Index
from pullback.backends.native.writing.lanes import Lanes
from pullback.rules.activations import identity


def can_finish(product: Product, nest: Nest) -> bool:
    """Whether a nest is one that a product can end with."""
    space = tuple(size for size in (*product.batch, product.m, product.n) if size != 1)
    dtypes = [dtype for step in nest.steps for dtype in (step.dtype, *step.operand_dtypes)]
    return (
        not nest.reductions
        and tuple(size for size in nest.space if size != 1) == space
        and nest.reads[0].dtype == product.dtype
        # A lane that does not count holds 0, and dividing integers by it would stop the process.
        and all(dtype.kind in "fb" for dtype in dtypes)
    )


def emit_finished_product(
    emission: Emission, product: Product, factors: Sequence[str], nest: Nest, pointers: Sequence[str]
) -> None:
    """A product and the nest behind it: one kernel where the nest is one that a product can end with, else two.

    The pointers are those of the nest; that of its first read is where the product is stored. A write may be the same memory.
    """
    place = pointers[nest.reads[0].pointer]
    if can_finish(product, nest) and not cut_off.is_beyond(product.simplified(), emission.vector_bits):
        epilogue = Epilogue(repr(nest), _Steps(product, nest).write)
        emit_product(emission, product, (*factors, place, *pointers), epilogue=epilogue)
    else:
        emit_product(emission, product, (*factors, place))
        emit_nest(emission, nest, pointers)


class _Steps:
    """The steps of a nest on a piece of a product."""

    def __init__(self, product: Product, nest: Nest) -> None:
        self.nest = nest
        sizes = (*product.batch, product.m, product.n)
        own = [axis for axis, size in enumerate(sizes) if size != 1]
        theirs = [axis for axis, size in enumerate(nest.space) if size != 1]
        self.axes = dict(zip(own, theirs, strict=True))
        """Axes of the space by axes of the product; those of one place have no part in it."""

    def write(self, pointers: Sequence[str], lanes: Lanes, value: str, place: Place) -> None:
        """Read what the nest reads there, compute, and store what it writes."""
        values: list[tuple[np.dtype[Any], str]] = [(self.nest.reads[0].dtype, value)]
        for read in self.nest.reads[1:]:
            form = lanes.as_dtype(read.dtype)
            index, stride = self._find(lanes.function, read, place)
            values.append((read.dtype, form.load(pointers[read.pointer], index, stride=stride, active=place.active)))
        for step in self.nest.steps:
            values.append((step.dtype, self._step(step, lanes, values)))
        for write in self.nest.writes:
            dtype, name = values[write.value]
            form = lanes.as_dtype(write.dtype)
            index, stride = self._find(lanes.function, write, place)
            converted = lanes.as_dtype(dtype).convert(name, form)
            form.store(converted, pointers[write.pointer], index, stride=stride, active=place.active)

    def _find(self, function: Function, operand: Read | Write, place: Place) -> tuple[Index, int]:
        """The offset of the first lane, and how far apart lanes are."""
        terms = [(place.indices[own], operand.strides[theirs]) for own, theirs in self.axes.items()]
        lane = self.axes.get(place.axis)
        return function.offset(*terms), 0 if lane is None else operand.strides[lane]

    def _step(self, step: Step, lanes: Lanes, values: Sequence[tuple[np.dtype[Any], str]]) -> str:
        names = []
        for operand, dtype in zip(step.operands, step.operand_dtypes, strict=True):
            form = lanes.as_dtype(dtype)
            if isinstance(operand, Constant):
                names.append(form.constant(operand.value))
            else:
                own, name = values[operand]
                names.append(lanes.as_dtype(own).convert(name, form))
        if step.primitive is identity:
            return lanes.as_dtype(step.operand_dtypes[0]).convert(names[0], lanes.as_dtype(step.dtype))
        return scalars.compute(
            step.primitive, lanes.function, lanes.width, names, step.operand_dtypes, step.dtype, step.params
        )

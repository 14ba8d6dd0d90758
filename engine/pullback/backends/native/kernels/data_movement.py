"""Moving of elements by keys that are known: writing a part into zeros, adding a part, joining arrays.

A part of an array is a view of it, so each of these is a nest or two that writes to a view.
"""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from pullback.backends.llvm.builder.lanes import memory_type
from pullback.backends.native.emission import Emission, Site, StoredArray, emits
from pullback.backends.native.kernels.nests import emit_nest
from pullback.backends.nests.nest import Constant, Nest, NestRead, NestWrite, Step
from pullback.backends.nests.views import part
from pullback.core.types import Shape
from pullback.ir.graph import Node
from pullback.ir.strides import places
from pullback.rules.activations import identity
from pullback.rules.elementwise import add
from pullback.rules.indexing import scatter
from pullback.rules.joining import along, concatenate


@emits(scatter)
def _emit_scatter(emission: Emission, node: Node, site: Site) -> None:
    (result,) = site.results
    fill(emission, result, 0)
    copy_into(emission, site.operands[0], part_of(emission, result, dict(node.params)["key"]))


def add_into(emission: Emission, added: StoredArray, target: StoredArray) -> None:
    """Add to the stored elements, broadcasting and converting as NumPy does."""
    reads = (_read(target, target.shape, 0), _read(added, target.shape, 1))
    step = Step(add, (0, 1), (target.dtype, target.dtype), target.dtype)
    nest = Nest(target.shape, reads, (step,), (NestWrite(2, 0, target.strides, target.dtype),), ())
    emit_nest(emission, nest, [target.pointer, added.pointer])


@emits(concatenate)
def _emit_concatenate(emission: Emission, node: Node, site: Site) -> None:
    emit_joined(emission, node, site.operands, site.results[0], range(len(site.operands)))


def emit_joined(
    emission: Emission, node: Node, operands: Sequence[StoredArray], result: StoredArray, copied: Collection[int]
) -> None:
    """Copy some operands of a concatenation to their parts of the result; the others are there."""
    axis, begin = dict(node.params)["axis"], 0
    for number, operand in enumerate(operands):
        end = begin + operand.shape[axis]
        if number in copied:
            copy_into(emission, operand, part_of(emission, result, along(axis, slice(begin, end))))
        begin = end


def part_of(emission: Emission, stored: StoredArray, key: Any) -> StoredArray:
    """The selection of a basic key from an array in C order."""
    offset, shape, strides = part(stored.shape, key)
    pointer = emission.function.element(stored.pointer, offset, memory_type(stored.dtype))
    return StoredArray(pointer, shape, strides, stored.dtype)


def fill(emission: Emission, target: StoredArray, value: Any) -> None:
    """Give a number to every element."""
    step = Step(identity, (Constant(value),), (target.dtype,), target.dtype)
    write = NestWrite(0, 0, target.strides, target.dtype)
    emit_nest(emission, Nest(target.shape, (), (step,), (write,), ()), [target.pointer])


def copy_into(emission: Emission, source: StoredArray, target: StoredArray) -> None:
    """Copy, broadcasting and converting as NumPy does."""
    step = Step(identity, (0,), (target.dtype,), target.dtype)
    write = NestWrite(1, 1, target.strides, target.dtype)
    nest = Nest(target.shape, (_read(source, target.shape, 0),), (step,), (write,), ())
    emit_nest(emission, nest, [source.pointer, target.pointer])


def _read(stored: StoredArray, space: Shape, pointer: int) -> NestRead:
    return NestRead(pointer, np.broadcast_to(places(stored.shape, stored.strides), space).strides, stored.dtype)

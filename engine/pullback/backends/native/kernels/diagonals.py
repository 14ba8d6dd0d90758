"""Diagonals, which are parts of an array, and triangles, which are chosen column by column."""

from collections.abc import Sequence

from pullback.backends.llvm.builder.function import Function, Index
from pullback.backends.llvm.builder.lanes import Lanes, memory_type
from pullback.backends.native.emission import Emission, Site, StoredArray, emits
from pullback.backends.native.kernels.data_movement import copy_into, fill
from pullback.backends.native.kernels.index_loops import each
from pullback.ir.graph import Node
from pullback.rules.diagonals import diagonal, lower, on_diagonal, upper


def _diagonal_of(emission: Emission, stored: StoredArray, node: Node) -> StoredArray:
    """The part of an array that is a diagonal, along the last axis."""
    params = dict(node.params)
    axes, offset = (params["axis1"], params["axis2"]), params["offset"]
    rows, columns = (stored.strides[axis] for axis in axes)
    pointer = emission.function.element(
        stored.pointer, max(-offset, 0) * rows + max(offset, 0) * columns, memory_type(stored.dtype)
    )
    sizes = stored.shape[axes[0]] + min(offset, 0), stored.shape[axes[1]] - max(offset, 0)
    others = [axis for axis in range(len(stored.shape)) if axis not in axes]
    shape = (*(stored.shape[axis] for axis in others), min(sizes))
    return StoredArray(pointer, shape, (*(stored.strides[axis] for axis in others), rows + columns), stored.dtype)


@emits(diagonal)
def _emit_diagonal(emission: Emission, node: Node, site: Site) -> None:
    copy_into(emission, _diagonal_of(emission, site.operands[0], node), site.results[0])


@emits(on_diagonal)
def _emit_on_diagonal(emission: Emission, node: Node, site: Site) -> None:
    fill(emission, site.results[0], 0)
    copy_into(emission, site.operands[0], _diagonal_of(emission, site.results[0], node))


@emits(lower, upper)
def _emit_triangle(emission: Emission, node: Node, site: Site) -> None:
    (x,), (result,), k = site.operands, site.results, dict(node.params)["k"]
    keeps = "<=" if node.primitive is lower else ">="
    columns, width = x.shape[-1], emission.lanes_of(x.dtype)

    def build(function: Function, pointers: Sequence[str]) -> None:
        lanes = Lanes(function, x.dtype, width)
        places, wide = lanes.as_dtype("i4"), lanes.narrowed().as_dtype("i8")
        order = f"<{', '.join(f'i32 {lane}' for lane in range(width))}>" if width > 1 else "0"

        def write(last: Index, begin: Index, at: Index, to: Index, active: int | None = None) -> None:
            first = places.splat(wide.convert(str(begin), places.narrowed()))
            limit = places.splat(wide.convert(str(last), places.narrowed()))
            mask = places.compare(keeps, places.add(first, order), limit)
            value = lanes.load(
                pointers[0], function.offset((at, 1), (begin, x.strides[-1])), stride=x.strides[-1], active=active
            )
            kept = lanes.select(mask, value, lanes.constant(0))
            lanes.store(kept, pointers[1], function.add(to, begin), active=active)

        def row(places: Sequence[Index], at: Index, to: Index) -> None:
            last, whole = function.add(places[-1], k), columns - columns % width
            if whole:
                with function.loop(0, whole, width) as begin:
                    write(last, begin, at, to)
            if columns > whole:
                write(last, whole, at, to, columns - whole)

        each(function, [*range(len(x.shape) - 1)], (x, result), row)

    key = ("triangle", keeps, k, x.layout)
    emission.kernel(key, "triangle", [x.pointer, result.pointer], build)

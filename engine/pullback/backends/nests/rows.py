"""Nests that reduce rows, and compute with the results along the same rows, put together: a row is read once.

    top = max x {axes=1}                         nest 1          nest: reads x; max, below_largest, exp, sum, div; writes y
    e = exp (below_largest x top);
      total = sum e {axes=1}                     nest 2    ->
    y = div e total                              nest 3

A nest takes in a later one over its space that reads what it makes, element for element or by row, and one of a number for each row
(`log total`). All that they reduce are the same axes. A machine that keeps a row where all who work on it can read it, as a GPU
does in the shared memory of a block, computes such a nest in turns: what waits for a result comes after it. Whether a row can be kept
is for the machine to say.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from pullback.backends.nests.fusion import (
    MOST_NODES,
    REDUCTIONS,
    FusedNodes,
    Kernel,
    Kernels,
    nodes_of,
    read_elsewhere,
    reduced_axes,
)
from pullback.backends.nests.views import Views
from pullback.core.types import Shape
from pullback.ir.graph import Atom

#: Earlier kernels that a nest is compared with: bounds the time that long programs take.
_KERNELS_SEEN = 16


def rows_joined(found: Kernels, fits: Callable[[FusedNodes], bool]) -> Kernels:
    """The kernels with nests put together whose rows can be kept, as `fits` says."""
    kernels, second = list(found.kernels), 0
    while second < len(kernels):
        for first in range(second - 1, max(-1, second - 1 - _KERNELS_SEEN), -1):
            nest = _together(kernels[first], kernels[second], found.views)
            place = None if nest is None else _place(found, kernels, first, second)
            if nest is not None and place is not None and fits(nest):
                kernels[place] = nest
                del kernels[second if place == first else first]
                second -= 1
                break
        second += 1
    return replace(found, kernels=tuple(kernels))


def _together(one: Kernel, other: Kernel, views: Views) -> FusedNodes | None:
    """Two nests as one, if the second computes with rows of the first."""
    if (
        not isinstance(one, FusedNodes)
        or not isinstance(other, FusedNodes)
        or len(one.nodes) + len(other.nodes) > MOST_NODES
    ):
        return None
    made = _made(one)
    read = {atom for node in other.nodes for atom in node.inputs if views.access(atom).root in made}
    reduced = _axes_of_rows(one, other) if read else None
    if reduced is None or not read.isdisjoint(atom for node in other.nodes for atom in read_elsewhere(node)):
        return None
    if not all(_is_of_own_row(atom, one, other.space, views, reduced) for atom in read):
        return None
    return FusedNodes(one.space, [*one.nodes, *other.nodes], one.values | other.values, one.read | other.read)


def _made(kernel: Kernel) -> set[Atom]:
    return {var for node in nodes_of(kernel) for var in node.outputs}


def _axes_of_rows(one: FusedNodes, other: FusedNodes) -> frozenset[int] | None:
    """The axes that both nests reduce, if those of the second are rows of the first, or a number for each."""
    reducing = [node for nest in (one, other) for node in nest.nodes if node.primitive in REDUCTIONS]
    axes = {reduced_axes(node) for node in reducing}
    if len(axes) != 1:
        return None
    (reduced,) = axes
    rows = _rows(one.space, reduced)
    is_of_numbers = other.space == rows and not any(node in reducing for node in other.nodes)
    is_one = math.prod(one.space) == math.prod(rows)
    return reduced if not is_one and (other.space == one.space or is_of_numbers) else None


def _rows(space: Shape, reduced: frozenset[int]) -> Shape:
    return tuple(1 if axis in reduced else size for axis, size in enumerate(space))


def _is_of_own_row(atom: Atom, one: FusedNodes, space: Shape, views: Views, reduced: frozenset[int]) -> bool:
    """True if a nest over a space reads, of what the first one makes, the element at its own place or a number of its own row."""
    access, shape = views.access(atom), atom.type.shape
    if atom in one.values and shape == space:
        return True
    rows = _rows(one.space, reduced)
    makers = (node for node in one.nodes if access.root in node.outputs)
    if not all(node.primitive in REDUCTIONS or node.outputs[0].type.shape == rows for node in makers):
        return False
    own = views.access(access.root)
    strides = own.strides
    if len(strides) < len(rows):  # reduced axes are not kept with one element
        given = iter(strides)
        strides = tuple(0 if axis in reduced else next(given) for axis in range(len(rows)))
    wanted = tuple(0 if size == 1 else stride for size, stride in zip(rows, strides, strict=True))
    return access.offset == own.offset and access.over(shape, one.space) == wanted


def _place(found: Kernels, kernels: Sequence[Kernel], first: int, second: int) -> int | None:
    """The place that two kernels can take as one: what the second reads is there at the first, or nothing between reads the first."""
    roots = {found.views.access(atom).root for node in nodes_of(kernels[second]) for atom in node.inputs}
    between = kernels[first + 1 : second]
    if all(roots.isdisjoint(_made(kernel)) for kernel in between):
        return first
    made = _made(kernels[first])
    read = {found.views.access(atom).root for kernel in between for node in nodes_of(kernel) for atom in node.inputs}
    return second if made.isdisjoint(read) and found.can_wait(kernels[first], between) else None

"""Convolutions and their two transposes: nodes to kernels.

What is large enough for several threads is cut into parts of as many examples, each a convolution of its own with memory of its
own. Gradients of the weights are added up over the parts.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import lru_cache
from typing import Any

from pullback.backends.llvm.builder.function import Function, Index
from pullback.backends.llvm.builder.lanes import Lanes, memory_type
from pullback.backends.native.emission import Emission, Site, StoredArray, emits, why_not_floats
from pullback.backends.native.kernels.convolution.channel_weight_sums import SummingPlan, make_summing_plan, write_sums
from pullback.backends.native.kernels.convolution.correlation import Correlation, forward, transposed
from pullback.backends.native.kernels.convolution.correlation_kernel import write_correlation
from pullback.backends.native.kernels.convolution.plans import Plan, make_plan, scratch_bytes
from pullback.backends.native.kernels.convolution.row_loops import clear_all
from pullback.backends.native.kernels.convolution.row_weight_sums import DottingPlan, make_dotting_plan, write_dots
from pullback.backends.native.kernels.convolution.weight_sums import WeightSums, weight_sums
from pullback.backends.native.kernels.convolution.winograd.correlation_kernel import write_winograd
from pullback.backends.native.kernels.convolution.winograd.packed_weights import write_weights
from pullback.backends.native.kernels.convolution.winograd.plans import WinogradPlan, make_winograd_plan
from pullback.backends.native.kernels.tiles import add_pairwise
from pullback.backends.native.threads.scratch_slots import Rooms, share_with_rooms
from pullback.backends.native.threads.sharing import estimated_ns
from pullback.ir.graph import Node
from pullback.rules.convolution import conv, conv_data_gradient, conv_weight_gradient
from pullback.rules.sliding import SlidingWindow

#: The most parts, for each needs memory, and what one takes at the least: each transforms all weights.
_MOST_PARTS, _PART_NS = 8, 1_000_000.0

_LINE = 64

#: The largest part of the direct form's cycles that tiles may take: they need more memory, and some are redone.
_WORTH = 0.92


def _sliding(params: dict[str, Any], size: Sequence[int], kernel: Sequence[int]) -> SlidingWindow:
    return SlidingWindow(tuple(size), tuple(kernel), params["stride"], params["pad"], params["dilation"])


def _correlation(node: Node, w: StoredArray, data: StoredArray, result: StoredArray) -> Correlation:
    params = dict(node.params)
    if node.primitive is conv:
        return forward(_sliding(params, data.shape[2:], w.shape[2:]), params["groups"], w, data, result)
    return transposed(_sliding(params, params["size"], w.shape[2:]), params["groups"], w, data, result)


def _parts(node: Node) -> int:
    """The number of parts: a divisor of the number of examples."""
    examples = node.inputs[1].type.shape[0]
    flops = node.primitive.flops([atom.type for atom in node.inputs], node.outputs[0].type)
    most = min(_MOST_PARTS, round(estimated_ns(flops=flops) / _PART_NS))
    return max((count for count in range(1, most + 1) if examples % count == 0), default=1)


def _part(value: StoredArray, parts: int) -> StoredArray:
    """The first part of an array of examples."""
    return replace(value, shape=(value.shape[0] // parts, *value.shape[1:]))


def _moved(function: Function, value: StoredArray, part: StoredArray, pointer: str, number: Index) -> str:
    """Pointer to a part of an array of examples."""
    return function.element(pointer, function.mul(number, part.shape[0] * value.strides[0]), memory_type(value.dtype))


def _in_order(node: Node) -> list[StoredArray]:
    return [StoredArray.in_order("", atom.type) for atom in (*node.inputs, *node.outputs)]


def _part_in_order(node: Node) -> Correlation:
    parts, (w, data, result) = _parts(node), _in_order(node)
    return _correlation(node, w, _part(data, parts), _part(result, parts))


def _scratch(node: Node, vector_bits: int) -> int:
    if not node.outputs[0].type.size:
        return 0
    correlation = _part_in_order(node)
    if correlation.is_empty:
        return 0
    tiles = winograd_that_pays(correlation, vector_bits)
    if tiles is None:
        return _parts(node) * _in_lines(scratch_bytes(correlation, vector_bits))
    return _in_lines(tiles.weight_bytes) + _parts(node) * _in_lines(tiles.bytes)


def _in_lines(nbytes: int) -> int:
    """The number of bytes rounded up to whole lines of the cache, so that no two parts share one."""
    return -(-nbytes // _LINE) * _LINE


@lru_cache(maxsize=256)
def winograd_that_pays(correlation: Correlation, vector_bits: int) -> WinogradPlan | None:
    """The plan by Winograd tiles where it is expected to be faster than the direct one; of operands in C order, whatever their layouts."""
    tiles = make_winograd_plan(correlation, vector_bits)
    if tiles is None:
        return None
    return tiles if tiles.cycles < _WORTH * direct_plan(correlation, vector_bits).cycles else None


def direct_plan(correlation: Correlation, vector_bits: int) -> Plan:
    """The direct plan of operands in C order."""
    return make_plan(correlation, vector_bits, scratch_bytes(correlation, vector_bits))


@emits(conv, conv_data_gradient, supports=why_not_floats, scratch=_scratch)
def emit_correlation(emission: Emission, node: Node, site: Site) -> None:
    """A convolution or its transpose with respect to the data."""
    (result,) = site.results
    if not result.size:
        return
    w, data = site.operands
    parts = _parts(node)
    own_data, own_result = _part(data, parts), _part(result, parts)
    correlation = _correlation(node, w, own_data, own_result)
    if correlation.is_empty:
        _emit_zeros(emission, result)
        return
    in_order = _part_in_order(node)
    tiles = winograd_that_pays(in_order, emission.vector_bits)
    if tiles is None:
        weights, rooms = w.pointer, site.scratch
        nbytes = _in_lines(scratch_bytes(in_order, emission.vector_bits))
    else:
        tiles = replace(tiles, correlation=correlation)
        weights, rooms = site.scratch, emission.function.element(site.scratch, _in_lines(tiles.weight_bytes), "i8")
        nbytes = _in_lines(tiles.bytes)
        _emit_weights(emission, tiles, w.pointer, weights)

    def build(function: Function, pointers: Sequence[str], number: Index, room: str) -> None:
        own = (
            pointers[0],
            _moved(function, data, own_data, pointers[1], number),
            _moved(function, result, own_result, pointers[2], number),
            room,
        )
        if tiles is None:
            write_correlation(function, make_plan(correlation, emission.vector_bits, nbytes), *own)
        else:
            write_winograd(function, tiles, *own)

    pointers = [weights, data.pointer, result.pointer]
    key = (correlation, tiles is not None)
    share_with_rooms(emission, key, node.primitive.name, pointers, parts, Rooms(rooms, nbytes), build)


def _emit_weights(emission: Emission, tiles: WinogradPlan, weights: str, memory: str) -> None:
    def build(function: Function, pointers: Sequence[str]) -> None:
        write_weights(function, tiles, *pointers)

    emission.kernel(("weights of tiles", tiles), "weights", [weights, memory], build)


def _emit_zeros(emission: Emission, result: StoredArray) -> None:
    def build(function: Function, pointers: Sequence[str]) -> None:
        clear_all(function, replace(result, pointer=pointers[0]))

    emission.kernel(("zeros", result.layout), "zeros", [result.pointer], build)


def _sums_of(node: Node, y: StoredArray, x: StoredArray, w: StoredArray) -> WeightSums:
    params = dict(node.params)
    return weight_sums(_sliding(params, x.shape[2:], params["kernel"]), params["groups"], y, x, w)


def _has_terms(node: Node) -> bool:
    """True if anything is summed: there are results of the convolution, and weights."""
    return all(atom.type.size for atom in (*node.inputs, *node.outputs))


def _sums_scratch(node: Node, vector_bits: int) -> int:
    if not _has_terms(node):
        return 0
    parts, (y, x, w) = _parts(node), _in_order(node)
    own = _in_lines(choose_sums_plan(_sums_of(node, _part(y, parts), _part(x, parts), w), vector_bits).bytes)
    return own if parts == 1 else parts * (own + _in_lines(w.size * w.dtype.itemsize))


def choose_sums_plan(sums: WeightSums, vector_bits: int) -> SummingPlan | DottingPlan:
    """The way that is expected to be the faster; it depends on sizes, not on layouts."""
    summing, dotting = make_summing_plan(sums, vector_bits), make_dotting_plan(sums, vector_bits)
    return dotting if dotting and dotting.cycles < summing.cycles else summing


@emits(conv_weight_gradient, supports=why_not_floats, scratch=_sums_scratch)
def emit_weight_gradient(emission: Emission, node: Node, site: Site) -> None:
    """The transpose of a convolution with respect to its weights."""
    (result,) = site.results
    if not result.size:
        return
    if not _has_terms(node):
        _emit_zeros(emission, result)
        return
    (y, x), parts = site.operands, _parts(node)
    own_y, own_x = _part(y, parts), _part(x, parts)
    found = result if parts == 1 else StoredArray.in_order("", node.outputs[0].type)
    sums = _sums_of(node, own_y, own_x, found)
    plan = choose_sums_plan(sums, emission.vector_bits)
    nbytes, found_bytes = _in_lines(plan.bytes), _in_lines(result.size * result.dtype.itemsize)

    def build(function: Function, pointers: Sequence[str], number: Index, room: str) -> None:
        own = (
            _moved(function, y, own_y, pointers[0], number),
            _moved(function, x, own_x, pointers[1], number),
            pointers[2] if parts == 1 else function.element(pointers[2], function.mul(number, found_bytes), "i8"),
            room,
        )
        if isinstance(plan, DottingPlan):
            write_dots(function, plan, *own)
        else:
            write_sums(function, plan, *own)

    together = result.pointer if parts == 1 else emission.function.element(site.scratch, parts * nbytes, "i8")
    pointers = [y.pointer, x.pointer, together]
    share_with_rooms(emission, sums, node.primitive.name, pointers, parts, Rooms(site.scratch, nbytes), build)
    if parts > 1:
        _add_parts(emission, replace(found, pointer=together), found_bytes, parts, result)


def _add_parts(emission: Emission, found: StoredArray, distance: int, parts: int, result: StoredArray) -> None:
    """Add up what parts have found, in order."""

    def build(function: Function, pointers: Sequence[str]) -> None:
        one = Lanes(function, result.dtype, 1)
        with ExitStack() as stack:
            indices = [stack.enter_context(function.loop(0, count)) for count in result.shape]
            place = function.offset(*zip(indices, found.strides, strict=True))
            values = [one.load(function.element(pointers[0], part * distance, "i8"), place) for part in range(parts)]
            target = function.offset(*zip(indices, result.strides, strict=True))
            one.store(add_pairwise(one, values), pointers[1], target)

    key = ("parts", found.layout, distance, parts, result.layout)
    emission.kernel(key, "add_parts", [found.pointer, result.pointer], build)

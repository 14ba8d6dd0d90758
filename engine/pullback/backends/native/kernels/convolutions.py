"""Convolutions and their two transposes: nodes to kernels."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from pullback.backends.native.emission import Emission, Stored, emits
from pullback.backends.native.kernels.convolution.correlating import write_correlation
from pullback.backends.native.kernels.convolution.correlation import Correlation, forward, transposed
from pullback.backends.native.kernels.convolution.dotting import DottingPlan, make_dotting_plan, write_dots
from pullback.backends.native.kernels.convolution.plans import Plan, make_plan, scratch_bytes
from pullback.backends.native.kernels.convolution.rows import clear_all
from pullback.backends.native.kernels.convolution.summing import SummingPlan, make_summing_plan, write_sums
from pullback.backends.native.kernels.convolution.weight_sums import WeightSums, weight_sums
from pullback.backends.native.kernels.convolution.winograd.correlating import write_quads
from pullback.backends.native.kernels.convolution.winograd.plans import QuadPlan, make_quad_plan
from pullback.backends.native.writing.function import Function
from pullback.ir.graph import Node
from pullback.rules.convolution import conv, conv_data_gradient, conv_weight_gradient
from pullback.rules.sliding import Sliding

#: What quads must gain: they take more memory, and some of them are computed again.
_WORTH = 0.92


def _refusal(node: Node) -> str | None:
    """Why a node is not emitted."""
    dtypes = {atom.type.dtype for atom in (*node.inputs, *node.outputs)}
    if len(dtypes) > 1:
        return f"{node.primitive.name} of operands of different dtypes"
    if any(dtype.kind != "f" for dtype in dtypes):
        return f"{node.primitive.name} of {dtypes.pop().name}"
    return None


def _sliding(params: dict[str, Any], size: Sequence[int], kernel: Sequence[int]) -> Sliding:
    return Sliding(tuple(size), tuple(kernel), params["stride"], params["pad"], params["dilation"])


def _correlation(node: Node, w: Stored, data: Stored, result: Stored) -> Correlation:
    params = dict(node.params)
    if node.primitive is conv:
        return forward(_sliding(params, data.shape[2:], w.shape[2:]), params["groups"], w, data, result)
    return transposed(_sliding(params, params["size"], w.shape[2:]), params["groups"], w, data, result)


def _in_order(node: Node) -> Correlation:
    return _correlation(node, *(Stored.in_order("", atom.type) for atom in (*node.inputs, *node.outputs)))


def _scratch(node: Node, vector_bits: int) -> int:
    correlation = _in_order(node)
    if correlation.is_empty or not node.outputs[0].type.size:
        return 0
    quads = quads_that_pay(correlation, vector_bits)
    return quads.bytes if quads else scratch_bytes(correlation, vector_bits)


@lru_cache(maxsize=256)
def quads_that_pay(correlation: Correlation, vector_bits: int) -> QuadPlan | None:
    """The plan by quads where it is expected to be faster than the direct one; of operands in C order, whatever their layouts."""
    quads = make_quad_plan(correlation, vector_bits)
    if quads is None:
        return None
    return quads if quads.cycles < _WORTH * direct_plan(correlation, vector_bits).cycles else None


def direct_plan(correlation: Correlation, vector_bits: int) -> Plan:
    """The direct plan of operands in C order."""
    return make_plan(correlation, vector_bits, scratch_bytes(correlation, vector_bits))


@emits(conv, conv_data_gradient, supports=_refusal, scratch=_scratch)
def emit_correlation(
    emission: Emission, node: Node, operands: Sequence[Stored], results: Sequence[Stored], scratch: str
) -> None:
    """A convolution or its transpose with respect to the data."""
    (result,) = results
    if not result.size:
        return
    correlation = _correlation(node, operands[0], operands[1], result)
    if correlation.is_empty:
        _emit_zeros(emission, result)
        return

    quads = quads_that_pay(_in_order(node), emission.vector_bits)

    def build(function: Function, pointers: Sequence[str]) -> None:
        if quads is None:
            plan = make_plan(correlation, emission.vector_bits, _scratch(node, emission.vector_bits))
            write_correlation(function, plan, *pointers)
        else:
            write_quads(function, replace(quads, correlation=correlation), *pointers)

    pointers = [*(operand.pointer for operand in operands), result.pointer, scratch]
    emission.kernel((correlation, quads is not None), node.primitive.name, pointers, build)


def _emit_zeros(emission: Emission, result: Stored) -> None:
    def build(function: Function, pointers: Sequence[str]) -> None:
        clear_all(function, replace(result, pointer=pointers[0]))

    emission.kernel(("zeros", result.layout), "zeros", [result.pointer], build)


def _sums_of(node: Node, y: Stored, x: Stored, w: Stored) -> WeightSums:
    params = dict(node.params)
    return weight_sums(_sliding(params, x.shape[2:], params["kernel"]), params["groups"], y, x, w)


def _has_terms(node: Node) -> bool:
    """Whether anything is summed: there are results of the convolution, and weights."""
    return all(atom.type.size for atom in (*node.inputs, *node.outputs))


def _sums_scratch(node: Node, vector_bits: int) -> int:
    if not _has_terms(node):
        return 0
    y, x, w = (Stored.in_order("", atom.type) for atom in (*node.inputs, *node.outputs))
    return choose_sums_plan(_sums_of(node, y, x, w), vector_bits).bytes


def choose_sums_plan(sums: WeightSums, vector_bits: int) -> SummingPlan | DottingPlan:
    """The way that is expected to be the faster; it depends on sizes, not on layouts."""
    summing, dotting = make_summing_plan(sums, vector_bits), make_dotting_plan(sums, vector_bits)
    return dotting if dotting and dotting.cycles < summing.cycles else summing


@emits(conv_weight_gradient, supports=_refusal, scratch=_sums_scratch)
def emit_weight_gradient(
    emission: Emission, node: Node, operands: Sequence[Stored], results: Sequence[Stored], scratch: str
) -> None:
    """The transpose of a convolution with respect to its weights."""
    (result,) = results
    if not result.size:
        return
    if not _has_terms(node):
        _emit_zeros(emission, result)
        return
    sums = _sums_of(node, operands[0], operands[1], result)

    def build(function: Function, pointers: Sequence[str]) -> None:
        plan = choose_sums_plan(sums, emission.vector_bits)
        if isinstance(plan, DottingPlan):
            write_dots(function, plan, *pointers)
        else:
            write_sums(function, plan, *pointers)

    pointers = [*(operand.pointer for operand in operands), result.pointer, scratch]
    emission.kernel(sums, node.primitive.name, pointers, build)

"""Transformations of a body: its graph is run under a trace, which a recorder records.

Tangents, cotangents and batches of loops and branches all come from here; there is no rule in it.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pullback.control.body import record_body, run
from pullback.control.leaves import as_type, is_differentiable, moving_type, zeros
from pullback.core.primitive import innermost_recorder, tracing
from pullback.core.types import ArrayType
from pullback.dataclass import dataclass
from pullback.ir.graph import Graph, Var
from pullback.rules.constants import stop
from pullback.rules.reductions import max_
from pullback.traces.recorder import Recorder
from pullback.traces.source_lines import SourceKeepingTape
from pullback.traces.tangents import DualTracer, ForwardTrace
from pullback.traces.tape import Tape, TapeTracer
from pullback.transforms.batching import BatchTrace, BatchTracer


@dataclass(frozen=True, slots=True)
class TransformedGraph:
    """A graph whose inputs and outputs are grouped by what they are.

    `inputs` and `outputs` are the variables and atoms that stand for those of the body it was made of; `extra_inputs` and
    `extra_outputs` are their tangents, seeds or cotangents by the number of the input or output they belong to.
    """

    graph: Graph
    captured: tuple[Var, ...]
    consts: tuple[Any, ...]
    """Values of `captured`: arrays that rules made while they were recorded."""
    inputs: tuple[Var, ...]
    extra_inputs: dict[Any, Var]
    outputs: tuple[Any, ...]
    extra_outputs: dict[Any, Any]
    rest: Any = None


def pushed(graph: Graph, moving: Sequence[bool], required: Sequence[bool]) -> TransformedGraph:
    """A body of values and tangents: moving inputs have one, and so have outputs that move or are required."""
    types = [var.type for var in graph.inputs]
    movers = [number for number, moves in enumerate(moving) if moves]

    def values_and_tangents(*values: Any) -> tuple[list[Any], list[int]]:
        primals, tangents = list(values[: len(types)]), values[len(types) :]
        with tracing(ForwardTrace()) as trace:
            for number, tangent in zip(movers, tangents, strict=True):
                primals[number] = DualTracer(trace, primals[number], tangent)
            results = run(graph, primals)
        outputs = [trace.value_of(result) for result in results]
        directions = {}
        for number, (result, atom) in enumerate(zip(results, graph.outputs, strict=True)):
            tangent = trace.tangent_of(result) if is_differentiable(atom.type) else None
            if tangent is not None:
                directions[number] = as_type(tangent, moving_type(atom.type))
            elif required[number]:
                directions[number] = zeros(moving_type(atom.type))
        return [*outputs, *directions.values()], list(directions)

    body = record_body(values_and_tangents, [*types, *(moving_type(types[number]) for number in movers)])
    return _grouped(body.graph, body.consts, graph, movers, body.rest)


def pulled(
    graph: Graph, active: Sequence[bool], accumulated: Sequence[bool], required: Sequence[bool]
) -> TransformedGraph:
    """A body of values and cotangents.

    The extra inputs are seeds `("seed", output)` for every output that can move, and sums so far `("sum", input)` for the
    inputs whose cotangents are to be added to one. The extra outputs are the cotangents of active inputs, zeros where
    they are required and there are none; and `rest` has the outputs that move.
    """
    types = [var.type for var in graph.inputs]
    summed = [number for number, adds in enumerate(accumulated) if adds]
    seeded = [number for number, atom in enumerate(graph.outputs) if is_differentiable(atom.type)]
    extra: list[Any] = [*(("sum", number) for number in summed), *(("seed", number) for number in seeded)]
    extra_types = [
        *(moving_type(types[number]) for number in summed),
        *(moving_type(graph.outputs[number].type) for number in seeded),
    ]

    def values_and_cotangents(*values: Any) -> tuple[list[Any], tuple[list[int], frozenset[int]]]:
        primals, given = list(values[: len(types)]), dict(zip(extra, values[len(types) :], strict=True))
        recorder = innermost_recorder()
        with SourceKeepingTape(recorder) if isinstance(recorder, Recorder) else Tape() as tape:
            tracers = {number: tape.watch(primals[number]) for number, is_active in enumerate(active) if is_active}
            results = run(graph, [tracers.get(number, primal) for number, primal in enumerate(primals)])
            live = [
                number
                for number in seeded
                if isinstance(results[number], TapeTracer) and results[number].traced_by is tape
            ]
            seeds = [(tracers[number], given["sum", number]) for number in summed]
            seeds += [(results[number], given["seed", number]) for number in live]
            bars = dict(zip(tracers, tape.sweep(seeds, list(tracers.values())), strict=True))
        cotangents = {}
        for number, bar in bars.items():
            if bar is not None:
                cotangents[number] = as_type(bar, moving_type(types[number]))
            elif required[number]:
                cotangents[number] = zeros(moving_type(types[number]))
        outputs = [tape.value_of(result) for result in results]
        return [*outputs, *cotangents.values()], (list(cotangents), frozenset(live))

    body = record_body(values_and_cotangents, [*types, *extra_types])
    keys, live = body.rest
    return replace(_grouped(body.graph, body.consts, graph, extra, keys), rest=live)


def batched(
    graph: Graph, flags: Sequence[bool], required: Sequence[bool], size: int
) -> tuple[TransformedGraph, list[bool]]:
    """The body for a batch: flagged inputs have a leading axis, and so have outputs that depend on them, or have to."""
    types = [
        ArrayType((size, *var.type.shape), var.type.dtype) if own else var.type
        for var, own in zip(graph.inputs, flags, strict=True)
    ]

    def for_all_examples(*values: Any) -> tuple[list[Any], list[bool]]:
        with tracing(BatchTrace(size)) as trace:
            operands = [BatchTracer(trace, value) if own else value for value, own in zip(values, flags, strict=True)]
            results = run(graph, operands)
        outputs, differing = [], []
        for result, atom, needed in zip(results, graph.outputs, required, strict=True):
            differs = isinstance(result, BatchTracer) and result.traced_by is trace
            if differs:
                outputs.append(result.examples)
            elif needed:
                outputs.append(repeated(result, atom.type, size))
            else:
                outputs.append(result)
            differing.append(differs or needed)
        return outputs, differing

    body = record_body(for_all_examples, types)
    return _grouped(body.graph, body.consts, graph, [], []), body.rest


def along_examples(truths: Any, value: Any) -> Any:
    """One truth value for each example, in the shape that chooses from values with a leading axis of examples."""
    return np.reshape(truths, (-1, *[1] * (np.ndim(value) - 1)))


def on_examples(
    taken: Any, numbers: Any, values: Sequence[Any], flags: Sequence[bool], whole: TransformedGraph
) -> list[Any]:
    """The inputs of a batched body for the examples that take it; in place of the others those of one that does.

    The copies are constants, so that no cotangent comes from the others. `numbers` are those of the examples, from 0.
    """
    read = {atom for node in whole.graph.nodes for atom in node.inputs}
    one = max_(np.where(taken, numbers, 0), axes=(0,), keepdims=False)
    return [
        np.where(along_examples(taken, value), value, stop(value[one])) if own and var in read else value
        for value, own, var in zip(values, flags, whole.inputs, strict=True)
    ]


def repeated(value: Any, type_: ArrayType, size: int) -> Any:
    """One example standing for all of a batch."""
    strong = as_type(value, moving_type(type_))
    return np.broadcast_to(strong, (size, *type_.shape))


def _grouped(
    graph: Graph, consts: tuple[Any, ...], original: Graph, extra: Sequence[Any], extra_outputs: Sequence[Any]
) -> TransformedGraph:
    captured = graph.inputs[: len(consts)]
    inputs = graph.inputs[len(consts) :]
    count, results = len(original.inputs), len(original.outputs)
    return TransformedGraph(
        graph,
        captured,
        consts,
        inputs[:count],
        dict(zip(extra, inputs[count:], strict=True)),
        graph.outputs[:results],
        dict(zip(extra_outputs, graph.outputs[results:], strict=True)),
    )

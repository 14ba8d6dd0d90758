"""Differentiation of the graph of a function: the graph of its value and gradients.

The forward graph is run on a tape whose values a recorder traces: the tape's one sweep back, which serves the eager
tier too, writes the backward program behind the forward one. Every node keeps the user's line it comes from; a backward
node has the line of the forward node it differentiates.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pullback.core.types import ArrayType, type_of
from pullback.ir.graph import Atom, Capture, Graph, Literal, Node, Var, with_guards_of, with_guards_returned
from pullback.traces.recorder import Recorder, evaluate_graph, record
from pullback.traces.source_lines import SourceKeepingTape


def differentiate(graph: Graph, wrt: Sequence[int], *, with_value: bool) -> tuple[Graph, tuple[bool, ...]]:
    """Joint graph of (value,) gradients and what else is returned beside the value, which is the first output.

    Also which inputs of `wrt` have a gradient at all; the others lead nowhere.
    """
    joint, mask = with_pullback(graph, wrt, 1)
    *inputs, seed = joint.inputs
    one = graph.outputs[0].type.dtype.type(1)
    outputs = joint.outputs if with_value else joint.outputs[1:]
    joint = replace(joint, inputs=tuple(inputs), outputs=outputs)
    return _with_literal(joint, seed, Literal(one, type_of(one))), mask


def with_pullback(graph: Graph, wrt: Sequence[int], values_count: int | None = None) -> tuple[Graph, tuple[bool, ...]]:
    """Joint graph of values and gradients, with a cotangent of each value as further inputs.

    Values are the first outputs, `values_count` of them, or all; the others come last, as they are. Also which inputs of
    `wrt` have a gradient at all; the others lead nowhere.
    """
    forward = with_guards_returned(graph)
    count, values_count = len(graph.inputs), len(graph.outputs) if values_count is None else values_count

    def joint(*traced: Any) -> tuple[list[Any], tuple[bool, ...]]:
        arguments, seeds = list(traced[:count]), traced[count : count + values_count]
        captured = traced[count + values_count :]
        recorder: Recorder = seeds[0].traced_by
        with SourceKeepingTape(recorder) as tape:
            tracers = [tape.watch(arguments[position]) for position in wrt]
            for position, tracer in zip(wrt, tracers, strict=True):
                arguments[position] = tracer

            def keep_source(node: Node) -> None:
                recorder.source = node.source

            outputs = evaluate_graph(forward, arguments, captured, keep_source, writes_to=tape)
            plain = [tape.value_of(output) for output in outputs]
            gradients = tape.sweep(list(zip(outputs[:values_count], seeds, strict=True)), tracers)
        present = [gradient for gradient in gradients if gradient is not None]
        mask = tuple(gradient is not None for gradient in gradients)
        return [*plain[:values_count], *present, *plain[values_count:]], mask

    seed_types = [ArrayType(atom.type.shape, atom.type.dtype) for atom in graph.outputs[:values_count]]
    types = [*(var.type for var in graph.inputs), *seed_types, *(capture.var.type for capture in graph.captures)]
    recorded, mask = record(joint, types)
    inputs, captured = recorded.inputs[: count + values_count], recorded.inputs[count + values_count :]
    # The captures of the forward graph came in as further inputs; they become captures again, of the same arrays.
    captures = tuple(Capture(var, capture.value) for var, capture in zip(captured, graph.captures, strict=True))
    return with_guards_of(Graph(inputs, captures + recorded.captures, recorded.nodes, recorded.outputs), graph), mask


def _with_literal(graph: Graph, var: Var, literal: Literal) -> Graph:
    def current(atom: Atom) -> Atom:
        return literal if atom is var else atom

    nodes = tuple(node.reading(tuple(map(current, node.inputs))) for node in graph.nodes)
    return replace(graph, nodes=nodes, outputs=tuple(map(current, graph.outputs)))

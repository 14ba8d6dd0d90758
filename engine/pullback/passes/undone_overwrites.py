"""Overwrites that are undone, as values of their own.

    d = copy a                        e = matmul b c
    e = matmul_into a b c d           k = matmul e ...
    k = matmul e ...
    n = restore a d

Where a program puts back everything that it overwrote, its writes cannot be observed: what it computed can
have memory of the plan's. Nothing is copied then and nothing restored, the caller's arrays are only read, and the passes
may simplify what would otherwise be left alone. A program that leaves something overwritten keeps its writes.
"""

from collections.abc import Sequence
from typing import Any

from pullback.core.primitive import Effect, tracing
from pullback.ir.graph import Atom, Capture, Graph, Literal, Node, Var, with_guards_of, with_guards_returned
from pullback.rules.inplace import OverwritingPrimitive, copy
from pullback.traces.recorder import GraphTracer, Recorder


def drop_undone_writes(graph: Graph) -> Graph:
    """Compute into new memory what is overwritten and put back, if that is all that is overwritten."""
    if not any(node.primitive.effect.writes for node in graph.nodes) or not _all_undone(graph):
        return graph
    whole = with_guards_returned(graph)
    values: dict[Atom, Any] = {}
    with tracing(Recorder()) as recorder:
        inputs = tuple(recorder.new_var(var.type) for var in whole.inputs)
        captures = tuple(Capture(recorder.new_var(capture.var.type), capture.value) for capture in whole.captures)
        values.update((old, GraphTracer(recorder, new)) for old, new in zip(whole.inputs, inputs, strict=True))
        values.update(
            (old.var, GraphTracer(recorder, new.var)) for old, new in zip(whole.captures, captures, strict=True)
        )
        for node in whole.nodes:
            recorder.source = node.source
            values.update(zip(node.outputs, _written_elsewhere(node, values, recorder), strict=True))
        outputs = tuple(atom if isinstance(atom, Literal) else recorder.atom_of(values[atom]) for atom in whole.outputs)
    made = Graph(inputs, captures + tuple(recorder.captures), tuple(recorder.nodes), outputs)
    return with_guards_of(made, graph)


def _written_elsewhere(node: Node, values: dict[Atom, Any], recorder: Recorder) -> Sequence[Any]:
    primitive, params = node.primitive, dict(node.params)
    operands = [atom.value if isinstance(atom, Literal) else values[atom] for atom in node.inputs]
    if primitive is copy:
        return operands
    if primitive.effect is Effect.RESTORES:
        return operands[1:]
    if isinstance(primitive, OverwritingPrimitive):
        target, *others, _ = operands
        computed = primitive.computed(target, *others, **params)
        return [computed if computed.dtype == target.dtype else computed.astype(target.dtype)]
    result = recorder.apply(primitive, operands, params)
    return result if primitive.results > 1 else (result,)


def _all_undone(graph: Graph) -> bool:
    """True if every array that is overwritten is an input, whole, and holds in the end what it held before."""
    written: dict[Var, list[Var]] = {}
    targets: dict[Var, Var] = {}  # results that are memory of an input
    for node in graph.nodes:
        primitive, first = node.primitive, node.inputs[0] if node.inputs else None
        if primitive.effect.writes:
            if not isinstance(first, Var) or not isinstance(node.inputs[-1], Var):
                return False
            root = targets.get(first, first)
            if root not in graph.inputs:
                return False
            targets[node.outputs[0]] = root
            kept = written.setdefault(root, [])
            if primitive.effect is Effect.OVERWRITES:
                kept.append(node.inputs[-1])
            elif not kept or kept.pop() is not node.inputs[-1]:
                return False
        elif any(node.bodies()):
            return False
    return not any(written.values())

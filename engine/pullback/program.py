"""A function compiled for one signature: recorded, differentiated, simplified, planned, written."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pullback import trees
from pullback.arguments import differentiable, like
from pullback.backends import interpreter
from pullback.errors import TracingError
from pullback.gradients import Gradient, scalar
from pullback.ir.graph import Capture, Graph, Var
from pullback.ir.printer import format_graph
from pullback.ir.types import ArrayType, is_array_like, type_of
from pullback.passes.differentiate import differentiate
from pullback.passes.pipeline import Stages, simplify
from pullback.planning.liveness import analyse
from pullback.planning.schedule import plan_memory, summarise
from pullback.primitive import Effect
from pullback.recorder import record
from pullback.surroundings import Surroundings

Finish = Callable[[tuple[Any, ...], Sequence[Any]], Any]
"""From the outputs of a program and the leaves it was called with to what the caller gets."""


class CannotCompileError(Exception):
    """Why a function stays on the tape; caught here, told in the summary."""


@dataclass(frozen=True, slots=True)
class Program:
    """What runs for one signature, and how it came to be."""

    run: interpreter.Program
    finish: Finish
    captured: tuple[Callable[[], Any], ...]
    surroundings: Surroundings
    summary: dict[str, Any]
    stages: Stages
    text: str
    overwritten: tuple[int, ...]
    """Which of the leaves and captured arrays are overwritten and restored; they must share memory with no other."""


@dataclass(frozen=True, slots=True)
class Fallback:
    """A signature that runs on the tape, and why."""

    reason: str
    surroundings: Surroundings | None


def build(function: Callable[..., Any], args: tuple[Any, ...]) -> Program | Fallback:
    """Compile a function or a gradient for arguments like these."""
    inner = function.function if isinstance(function, Gradient) else function
    surroundings = Surroundings(inner)
    if surroundings.obstacle is not None:
        return Fallback(surroundings.obstacle, surroundings)
    try:
        return _build(function, inner, args, surroundings)
    except (CannotCompileError, TracingError) as reason:  # if it is an error on the tape too, the tape raises it
        return Fallback(str(reason), surroundings)


def _build(
    function: Callable[..., Any], inner: Callable[..., Any], args: tuple[Any, ...], surroundings: Surroundings
) -> Program:
    leaves, rebuild = trees.flatten(args)
    wanted = _wanted_leaves(function, leaves, rebuild) if isinstance(function, Gradient) else None
    for leaf in leaves:
        if not is_array_like(leaf) or (isinstance(leaf, np.ndarray) and type(leaf) is not np.ndarray):
            raise CannotCompileError(f"an argument is a {type(leaf).__name__}, not an array or a number")
        if not type_of(leaf).dtype.isnative:
            raise CannotCompileError("an argument is not in the byte order of this machine")

    def forward(*traced: Any) -> tuple[list[Any], trees.Rebuild]:
        result = inner(*rebuild(iter(traced)))
        if wanted is not None and trees.structure(result) != "leaf":
            raise CannotCompileError(f"the function returns a {type(result).__name__}, not one number")
        return trees.flatten(result)

    stages = Stages()
    graph, rebuild_output = record(forward, [type_of(leaf) for leaf in leaves])
    stages.add("recorded", graph)
    captured = tuple(_reader(capture, surroundings) for capture in graph.captures)
    if wanted is not None and isinstance(function, Gradient):
        graph, finish = _differentiated(function, graph, wanted, leaves, stages)
    else:
        finish = _finish_values(rebuild_output)
    graph = simplify(graph, stages)
    schedule = plan_memory(graph)
    emitted = interpreter.emit(schedule)
    program, text = emitted.program, emitted.text
    digest = hashlib.sha256(f"{format_graph(graph, sources=False)}\n{text}".encode()).hexdigest()
    summary = {**summarise(schedule), "fallbacks": [], "hash": digest[:16]}
    overwritten = _overwritten_inputs(graph)
    captured += tuple(_held(capture) for capture in graph.captures[len(captured) :])
    return Program(program, finish, captured, surroundings, summary, stages, text, overwritten)


def _overwritten_inputs(graph: Graph) -> tuple[int, ...]:
    inputs = [*graph.inputs, *(capture.var for capture in graph.captures)]
    liveness = analyse(graph)
    targets = {
        liveness.root(node.inputs[0])
        for node in graph.nodes
        if node.primitive.effect is Effect.OVERWRITES and isinstance(node.inputs[0], Var)
    }
    return tuple(position for position, var in enumerate(inputs) if var in targets)


def _reader(capture: Capture, surroundings: Surroundings) -> Callable[[], Any]:
    """How a captured array is read again, with its type checked: another shape or dtype means recording anew."""
    getter = surroundings.getter(capture.value)
    if getter is None:
        raise CannotCompileError(
            "the function makes an array, or takes one from where it cannot be found again; pass it as an argument"
        )
    surroundings.watch(lambda: _type_or_none(getter()), capture.var.type)
    return getter


def _type_or_none(value: Any) -> ArrayType | None:
    return type_of(value) if type(value) is np.ndarray else None


def _held(capture: Capture) -> Callable[[], Any]:
    return lambda: capture.value


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Which leaves to differentiate by, in order, and how their gradients become trees, one per wanted argument."""

    leaves: list[int]
    rebuilds: list[trees.Rebuild]
    flat: bool
    """Whether every wanted argument is a leaf itself."""


def _wanted_leaves(gradient: Gradient, leaves: list[Any], rebuild: trees.Rebuild) -> _Wanted:
    numbered = rebuild(iter(range(len(leaves))))
    parts = [trees.flatten(numbered[position]) for position in gradient.positions]
    wanted = [leaf for part, _ in parts for leaf in part]
    for leaf in wanted:
        differentiable(leaves[leaf], gradient.function)
    flat = all(isinstance(numbered[position], int) for position in gradient.positions)
    return _Wanted(wanted, [rebuild_part for _, rebuild_part in parts], flat)


def _differentiated(
    gradient: Gradient, graph: Graph, wanted: _Wanted, leaves: Sequence[Any], stages: Stages
) -> tuple[Graph, Finish]:
    """The joint graph, and how its outputs become what the caller asked for."""
    result = graph.outputs[0].type
    scalar(np.broadcast_to(np.zeros((), result.dtype), result.shape), gradient.function)
    joint, mask = differentiate(graph, wanted.leaves, with_value=gradient.with_value)
    stages.add("differentiated", joint)
    if (
        not result.weak
        and wanted.flat
        and all(mask)
        and all(isinstance(leaves[leaf], np.ndarray) for leaf in wanted.leaves)
    ):
        return joint, _finish_arrays(gradient)
    return joint, _finish_gradients(gradient, wanted, mask)


def _finish_arrays(gradient: Gradient) -> Finish:
    """The usual case, every gradient an array that is there: outputs are handed on as they are."""
    several = isinstance(gradient.wrt, tuple)
    if gradient.with_value:
        return (lambda outputs, _: (outputs[0], outputs[1:])) if several else (lambda outputs, _: outputs)
    return (lambda outputs, _: outputs) if several else (lambda outputs, _: outputs[0])


def _finish_gradients(gradient: Gradient, wanted: _Wanted, mask: tuple[bool, ...]) -> Finish:
    def finish(outputs: tuple[Any, ...], leaves: Sequence[Any]) -> Any:
        values = iter(outputs)
        value = np.asarray(next(values))[()] if gradient.with_value else None
        gradients = trees.Gradients(
            [
                like(next(values) if present else None, leaves[leaf])
                for leaf, present in zip(wanted.leaves, mask, strict=True)
            ]
        )
        return gradient.result(value, tuple(rebuild(gradients) for rebuild in wanted.rebuilds))

    return finish


def _finish_values(rebuild: trees.Rebuild) -> Finish:
    return lambda outputs, _: rebuild(iter(outputs))

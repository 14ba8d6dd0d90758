"""The body of a loop or branch as a graph of its own.

The body is recorded once, at the types it will have in every step. What it closes over, arrays and values of outer
traces alike, becomes operands of the loop, so that the graph is closed and derivatives flow to all of it.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.control.leaves import traced_type
from pullback.core.primitive import (
    Primitive,
    Trace,
    TracedValue,
    current,
    innermost_recorder,
    outside,
    tracing,
    watching,
)
from pullback.core.types import ArrayType
from pullback.dataclass import dataclass
from pullback.errors import NeedsValueError
from pullback.ir.graph import Atom, Capture, Graph, Literal, Var
from pullback.numpy_api.traced_stores import given
from pullback.traces.recorder import GraphTracer, Recorder
from pullback.transforms.batching import BatchTrace

Program = Callable[..., Sequence[Any]]
Pull = Callable[[Any], Sequence[Any]]


class WithBodies(Primitive):
    """A primitive whose parameters hold graphs, with a tuple of results, as many as the graphs give.

    Its derivatives run the graphs again: they are computed together with the values.
    """

    results = 2
    joint = True

    def into(self, out: Any, *operands: Any, **params: Any) -> None:
        """Evaluate, and copy: backends write into arrays themselves."""
        write_results(out, self.evaluate(*operands, **params))

    def pull(
        self, needed: Sequence[bool], y_bar: Any, y: Any, operands: Sequence[Any], params: dict[str, Any]
    ) -> Sequence[Any]:
        """Run forward again, saving, then back."""
        return self.value_and_pull(needed, operands, params)[1](y_bar)

    def push(self, tangents: Sequence[Any], y: Any, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        """Run values and tangents together."""
        return self.value_and_push(tangents, operands, params)[1]

    def flops(self, types: Sequence[ArrayType], result: ArrayType) -> int:
        """Zero operations: those of the graphs are counted there."""
        return 0


@dataclass(frozen=True, slots=True)
class Body:
    """A closed graph: its first inputs are what the function closed over, whose values are `consts`."""

    graph: Graph
    consts: tuple[Any, ...]
    rest: Any
    """The rest of the function's result beside its values."""


class BodyRecorder(Recorder):
    """A recorder inside another trace: outer values are captured.

    `keeps_all` for a branch, and a loop that may have no steps: what it computes of outer values alone is computed, and has a derivative,
    only where it is taken. In other loops such values are computed once, before it.
    """

    def __init__(self, *, keeps_all: bool = False) -> None:
        super().__init__()
        self.keeps_all = keeps_all

    def atom_of(self, value: Any) -> Atom:
        """The operand as this graph knows it."""
        value = current(value)
        if not isinstance(value, TracedValue) or (isinstance(value, GraphTracer) and value.traced_by is self):
            return super().atom_of(value)
        for capture in self.captures:
            if capture.value is value:
                return capture.var
        self.captures.append(Capture(self.new_var(traced_type(value)), value))
        return self.captures[-1].var

    def see(self, var: Var, kind: type) -> bool | int:
        """The value as it is seen outside. A body is one graph for all steps: it cannot go one way in one step and another in the next."""
        outer = self._outer_value(var)
        if outer is None:
            raise self.refusal(
                NeedsValueError(
                    "the body of a loop or branch depends on a value in Python (`if`, `float()`); use pb.cond or numpy.where"
                )
            )
        seen: bool | int = kind(outer)
        return seen

    def held(self, var: Var) -> Any:
        """The plain value, where it is held outside."""
        outer = self._outer_value(var)
        return outer.held() if isinstance(outer, TracedValue) else outer

    def is_negative(self, number: GraphTracer) -> bool:
        """True if it is negative outside; a number that differs from step to step is not known."""
        outer = self._outer_value(number.variable)
        if isinstance(outer, GraphTracer):
            return outer.recorder.is_negative(outer)
        return outer is not None and bool(outer < 0)

    def kept(self, array: Any) -> Any:
        """The array itself: the loop runs before it can be written to."""
        return array

    def _outer_value(self, var: Var) -> Any:
        """The value, computed outside, of what outer values alone lead to; None of anything else."""
        captured = {capture.var: capture.value for capture in self.captures}
        sources = set(self._sources_of(var))
        nodes = tuple(node for node in self.nodes if sources.intersection(node.outputs))
        if sources - set(captured) - {output for node in nodes for output in node.outputs}:
            return None
        with outside(self):
            return _walk(Graph(tuple(captured), (), nodes, (var,)), list(captured.values()), None)[0]


def record_body(
    function: Callable[..., tuple[Sequence[Any], Any]], types: Sequence[ArrayType], *, keeps_all: bool = False
) -> Body:
    """Record a function of arrays that returns `(values, rest)`. `keeps_all` for what may not run at all (`BodyRecorder`)."""
    with tracing(BodyRecorder(keeps_all=keeps_all)) as recorder:
        inputs = tuple(recorder.new_var(type_) for type_ in types)
        values, rest = function(*(given(GraphTracer(recorder, var)) for var in inputs))
        if recorder.refused is not None:
            raise NeedsValueError(recorder.refused)  # the function caught it, and went another way than values would
        outputs = tuple(recorder.atom_of(value) for value in values)
    if any(node.primitive.effect.writes for node in recorder.nodes):
        raise NeedsValueError("pb.inplace in the body of a loop or branch runs on the tape")
    captures = tuple(recorder.captures)
    consts = tuple(capture.value for capture in captures)
    graph = Graph((*(capture.var for capture in captures), *inputs), (), tuple(recorder.nodes), outputs)
    return Body(graph, consts, rest)


def keeps_form() -> bool:
    """True if loops and branches are to stay what they are: while a function is recorded, or run for a whole batch."""
    return any(trace.records_types or isinstance(trace, BatchTrace) for trace in watching())


def run(graph: Graph, operands: Sequence[Any]) -> list[Any]:
    """Values of a closed graph, under whatever traces the operands."""
    return _walk(graph, operands, innermost_recorder())


def _walk(graph: Graph, operands: Sequence[Any], recorder: Trace | None) -> list[Any]:
    source = recorder.source if isinstance(recorder, Recorder) else None
    values: dict[Var, Any] = dict(zip(graph.inputs, operands, strict=True))

    def read(atom: Atom) -> Any:
        return atom.value if isinstance(atom, Literal) else values[atom]

    for node in graph.nodes:
        own = [read(atom) for atom in node.inputs]
        if isinstance(recorder, Recorder):
            recorder.source = node.source
        if recorder is not None and not any(isinstance(operand, TracedValue) for operand in own):
            result = recorder.apply(
                node.primitive, own, dict(node.params)
            )  # computed here it would be an array to keep
        else:
            result = node.primitive(*own, **dict(node.params))
        values.update(zip(node.outputs, result if node.primitive.results > 1 else (result,), strict=True))
    if isinstance(recorder, Recorder):
        recorder.source = source
    return [read(atom) for atom in graph.outputs]


def walking(graph: Graph) -> Callable[[], Program]:
    """A body as a program that walks the graph, for loops that no backend has compiled.

    Also used while a function is recorded: a value that it looks at is computed, and what leads to it is not recorded.
    """
    return lambda: lambda *operands: _walk(graph, operands, None)


def handed_over(results: Sequence[Any], out: Sequence[Any] | None) -> tuple[Any, ...]:
    """Results, copied into the arrays that are there for them."""
    if out is None:
        return tuple(results)
    for result, target in zip(results, out, strict=True):
        if target is not None and target is not result:
            np.copyto(target, result)
    return tuple(result if target is None else target for result, target in zip(results, out, strict=True))


def write_results(out: Any, results: Any) -> None:
    """`into` of a rule of several results: copy them, or the only one, to where they belong."""
    handed_over(results, out if isinstance(out, tuple) else (out,))

"""The body of a loop or branch as a graph of its own.

The body is recorded once, at the types it will meet in every step. What it closes over, arrays and values of outer traces
alike, becomes operands of the loop, so that the graph is closed and derivatives flow to all of it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pullback.control.carry import traced_type
from pullback.errors import NeedsValueError
from pullback.ir.graph import Atom, Capture, Graph
from pullback.ir.types import ArrayType
from pullback.primitive import Traced, innermost_recorder, tracing
from pullback.recorder import GraphTracer, Recorder, evaluate_graph
from pullback.rules import shapes


@dataclass(frozen=True, slots=True)
class Body:
    """A closed graph: its first inputs are what the function closed over, whose values are `consts`."""

    graph: Graph
    consts: tuple[Any, ...]
    rest: Any
    """What the function returned beside its values."""


class BodyRecorder(Recorder):
    """A recorder inside another trace: outer values it meets are captured."""

    def atom_of(self, value: Any) -> Atom:
        """The operand as this graph knows it."""
        if not isinstance(value, Traced) or (isinstance(value, GraphTracer) and value.trace is self):
            return super().atom_of(value)
        capture = self.captures.get(id(value))
        if capture is None:
            capture = self.captures[id(value)] = Capture(self.new_var(traced_type(value)), value)
        return capture.var


def record_body(function: Callable[..., tuple[Sequence[Any], Any]], types: Sequence[ArrayType]) -> Body:
    """Record a function of arrays that returns `(values, rest)`."""
    with tracing(BodyRecorder()) as recorder:
        inputs = tuple(recorder.new_var(type_) for type_ in types)
        values, rest = function(*(GraphTracer(recorder, var) for var in inputs))
        outputs = tuple(recorder.atom_of(value) for value in values)
    if any(node.primitive.effect.writes for node in recorder.nodes):
        raise NeedsValueError("pb.inplace in the body of a loop or branch runs on the tape")
    captures = tuple(recorder.captures.values())
    consts = tuple(capture.value for capture in captures)
    graph = Graph((*(capture.var for capture in captures), *inputs), (), tuple(recorder.nodes), outputs)
    return Body(graph, consts, rest)


def run(graph: Graph, operands: Sequence[Any]) -> list[Any]:
    """Values of a closed graph, under whatever traces the operands."""
    return evaluate_graph(graph, operands, (), writes_to=_NO_WRITES)


def as_type(value: Any, type_: ArrayType) -> Any:
    """A value in the type a loop gives it: Python numbers take a dtype, a single number is spread."""
    if not isinstance(value, Traced):
        if type_.weak:
            return value
        own = np.asarray(value, type_.dtype)
        return own[()] if own.shape == type_.shape else np.broadcast_to(own, type_.shape)
    before = traced_type(value)
    if before.shape != type_.shape:
        value = shapes.broadcast_to(value, shape=type_.shape)
    if (before.dtype, before.weak) != (type_.dtype, type_.weak):
        value = shapes.astype(value, dtype=type_.dtype)
    return value


def zeros(type_: ArrayType) -> Any:
    """Zeros of a type; under a recorder a value of its graph, so that no array has to be kept for them."""
    zero = type_.dtype.type(0)
    if not type_.shape:
        return zero
    recorder = innermost_recorder()
    if recorder is None:
        return np.broadcast_to(zero, type_.shape)
    return recorder.apply(shapes.broadcast_to, (zero,), {"shape": type_.shape})


def is_differentiable(type_: ArrayType) -> bool:
    """Whether values of a type can move."""
    return type_.dtype.kind in "fc"


def moving_type(type_: ArrayType) -> ArrayType:
    """Type of tangents and cotangents of a value: that of the value, with a dtype where it is a Python number."""
    return ArrayType(type_.shape, type_.dtype)


_NO_WRITES = BodyRecorder()  # bodies hold no in-place rules, `record_body` refuses them

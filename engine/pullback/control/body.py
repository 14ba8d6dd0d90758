"""The body of a loop or branch as a graph of its own.

The body is recorded once, at the types it will meet in every step. What it closes over, arrays and values of outer traces
alike, becomes operands of the loop, so that the graph is closed and derivatives flow to all of it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pullback.control.leaves import traced_type
from pullback.errors import NeedsValueError
from pullback.ir.graph import Atom, Capture, Graph
from pullback.ir.types import ArrayType
from pullback.primitive import Traced, tracing
from pullback.recorder import GraphTracer, Recorder, evaluate_graph


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


_NO_WRITES = BodyRecorder()  # bodies hold no in-place rules, `record_body` refuses them

"""Recording: run a function on types instead of values, and keep what it did as a graph."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from pullback.errors import NeedsValueError, OverwrittenError, TracingError
from pullback.ir.graph import Atom, Capture, Graph, Literal, Node, Var
from pullback.ir.types import ArrayType, is_array_like, type_of
from pullback.numpy_api.tracer import Tracer
from pullback.primitive import Effect, Primitive, Trace, Traced, tracing

_ENGINE = str(Path(__file__).parent)
_NUMPY = str(Path(np.__file__).parent)


class GraphTracer(Tracer):
    """A value of the graph being recorded."""

    __slots__ = ("variable",)

    def __init__(self, trace: "Recorder", var: Var) -> None:
        self.trace = trace
        self.variable = var

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the value to be."""
        return self.variable.type.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of the value to be."""
        return self.variable.type.dtype

    def __bool__(self) -> NoReturn:
        raise NeedsValueError("control flow that depends on a value cannot be compiled yet; the function runs eagerly")

    def __int__(self) -> NoReturn:
        raise NeedsValueError("an integer taken from a value cannot be compiled yet; the function runs eagerly")

    __index__ = __int__


class Recorder(Trace):
    """A trace that writes nodes."""

    records_types = True

    def __init__(self) -> None:
        self.source: str | None = None  # the line to note, where the caller knows better than the stack
        self.nodes: list[Node] = []
        self.captures: dict[int, Capture] = {}
        self._overwritten: dict[Var, str] = {}
        self._roots: dict[Var, Var] = {}
        self._count = 0

    def new_var(self, type_: ArrayType) -> Var:
        """A value nobody has defined yet."""
        self._count += 1
        return Var(self._count - 1, type_)

    def apply(self, primitive: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        """Infer the types of the results and write a node."""
        atoms = tuple(self.atom_of(operand) for operand in operands)
        if primitive.effect is not Effect.RESTORES:
            self._refuse_overwritten(primitive, atoms)
        outputs = tuple(self.new_var(type_) for type_ in primitive.infer(*(atom.type for atom in atoms), **params))
        source = self.source or user_source()
        self.nodes.append(Node(primitive, atoms, tuple(sorted(params.items())), outputs, source))
        self._follow_memory(primitive, atoms, outputs, source)
        tracers = tuple(GraphTracer(self, var) for var in outputs)
        return tracers[0] if primitive.results == 1 else tracers

    def _refuse_overwritten(self, primitive: Primitive, atoms: Sequence[Atom]) -> None:
        for atom in atoms:
            written_at = self._overwritten.get(self._roots.get(atom, atom)) if isinstance(atom, Var) else None
            if written_at is not None:
                raise OverwrittenError(
                    f"{primitive.name} reads an array that pb.inplace overwrote at {written_at}; "
                    "go on with what pb.inplace returned"
                )

    def _follow_memory(self, primitive: Primitive, atoms: Sequence[Atom], outputs: Sequence[Var], source: str) -> None:
        if not primitive.aliases_operand or not isinstance(atoms[0], Var):
            return
        root = self._roots.get(atoms[0], atoms[0])
        if primitive.effect is Effect.OVERWRITES:
            self._overwritten[root] = source
        elif primitive.effect is Effect.RESTORES:
            self._overwritten.pop(root, None)
        else:
            self._roots[outputs[0]] = root

    def memory_of(self, value: Any) -> Var | None:
        """The value of the graph whose memory this one lives in; None for numbers."""
        if not isinstance(value, Traced | np.ndarray):
            return None
        atom = self.atom_of(value)
        return self._roots.get(atom, atom) if isinstance(atom, Var) else None

    def atom_of(self, value: Any) -> Atom:
        """The operand as the graph knows it."""
        if isinstance(value, GraphTracer) and value.trace is self:
            return value.variable
        if isinstance(value, Traced):
            raise NeedsValueError("the function takes a value that an outer transformation follows")
        if isinstance(value, np.ndarray):
            capture = self.captures.get(id(value))
            if capture is None:
                capture = self.captures[id(value)] = Capture(self.new_var(type_of(value)), value)
            return capture.var
        if type(value) is int and not -(2**63) <= value < 2**64:
            raise NeedsValueError("an integer larger than 64 bits cannot be part of a compiled function")
        if not is_array_like(value):
            raise TracingError(f"an operand of type {type(value).__name__} cannot be part of a compiled function")
        return Literal(value, type_of(value))


def record(function: Callable[..., Any], types: Sequence[ArrayType]) -> tuple[Graph, Any]:
    """Graph of a function of arrays that returns a sequence of values, and what it returned beside them.

    The function returns `(values, rest)`; `values` become the outputs of the graph.
    """
    with tracing(Recorder()) as recorder:
        inputs = tuple(recorder.new_var(type_) for type_ in types)
        values, rest = function(*(GraphTracer(recorder, var) for var in inputs))
        outputs = tuple(recorder.atom_of(value) for value in values)
        graph = Graph(inputs, tuple(recorder.captures.values()), tuple(recorder.nodes), outputs)
    return graph, rest


def evaluate_graph(
    graph: Graph,
    arguments: Sequence[Any],
    captured: Sequence[Any],
    before: Callable[[Node], None] = lambda _: None,
    *,
    writes_to: Trace,
) -> list[Any]:
    """Run a graph by calling its primitives under a trace; `before` is told of each node.

    Writes to memory are shown to the trace whatever they read, because it has to undo them.
    """
    environment: dict[Var, Any] = dict(zip(graph.inputs, arguments, strict=True))
    environment.update(zip((capture.var for capture in graph.captures), captured, strict=True))

    def read(atom: Atom) -> Any:
        return atom.value if isinstance(atom, Literal) else environment[atom]

    for node in graph.nodes:
        before(node)
        operands = [read(atom) for atom in node.inputs]
        if node.primitive.effect.writes:
            result = writes_to.apply(node.primitive, operands, dict(node.params))
        else:
            result = node.primitive(*operands, **dict(node.params))
        environment.update(zip(node.outputs, result if node.primitive.results > 1 else (result,), strict=True))
    return [read(atom) for atom in graph.outputs]


def user_source() -> str:
    """File and line of the innermost frame outside the engine and NumPy."""
    frame = sys._getframe(1)  # noqa: SLF001 (inspect.stack costs a thousand times more)
    while frame.f_back is not None and frame.f_code.co_filename.startswith((_ENGINE, _NUMPY)):
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"

"""Recording: run a function on types instead of values, and keep what it did as a graph.

Where the values of the call are known beside the types, the function may look at one (`if`, `while`, `range`): it is
computed then and there, and what was seen becomes a guard of the graph.
"""

import sys
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn, cast

import numpy as np

from pullback.core.ignored_warnings import is_ours
from pullback.core.primitive import Effect, Primitive, Trace, TracedValue, current, innermost_recorder, tracing
from pullback.core.types import ArrayType, is_array_like, type_of
from pullback.errors import NeedsValueError, OverwrittenError, TracingError
from pullback.ir.graph import Atom, Capture, Graph, Guard, Literal, Node, Var
from pullback.numpy_api.masked_reads import MaskedRead, Positions
from pullback.numpy_api.traced_stores import given
from pullback.numpy_api.tracer import Tracer, class_of, lack
from pullback.rules import logic, reductions
from pullback.traces.array_order import transposed_values

_ENGINE = str(Path(__file__).parents[1])
_NUMPY = str(Path(np.__file__).parent)


class GraphTracer(Tracer):
    """A value of the graph being recorded."""

    __slots__ = ("recorder", "variable")

    def __init__(self, recorder: "Recorder", var: Var) -> None:
        self.traced_by = self.recorder = recorder
        self.variable = var
        self.memory = None

    def may_be_transposed(self) -> bool:
        """True if NumPy's array may not be in C order."""
        recorder = cast("Recorder", self.traced_by)
        return self.variable in transposed_values(recorder.nodes, recorder.captures)

    def is_equal(self, other: Any) -> bool:
        """True if both are one value of the graph, or computed in the same way."""
        if not isinstance(other, GraphTracer) or other.recorder is not self.recorder:
            return False
        return self.recorder.compute_the_same(self.variable, other.variable)

    def held(self) -> Any:
        """Whole numbers or truth values, and with them a guard: the graph is right only where they are the same."""
        return self.recorder.held(self.variable)

    def alias(self) -> "GraphTracer":
        """The same value under another name."""
        return GraphTracer(self.recorder, self.variable)

    @property  # type: ignore[misc]  # as in Tracer
    def __class__(self) -> type:
        """The class of the value to be. Whether it is an array of shape () or a scalar is known once it is computed."""
        type_ = self.variable.type
        if type_.weak or type_.shape or not sys._getframe(1).f_code.co_filename.startswith(_ENGINE):  # noqa: SLF001
            return self.class_of_value()
        return class_of(type_.shape, type_.dtype)

    def class_of_value(self) -> type:
        """The class of the value, which is computed if it may be an array of shape () or a scalar."""
        type_ = self.variable.type
        if type_.weak:
            return type(type_.dtype.type().item())
        observed = self.recorder.observed
        if type_.shape or observed is None:
            return class_of(type_.shape, type_.dtype)
        refused = self.recorder.refused
        try:
            return type(observed.value(self.variable))
        except NeedsValueError:  # what pb.inplace wrote
            self.recorder.refused = refused
            return class_of(type_.shape, type_.dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the value to be."""
        if self.variable.type.weak:
            lack(self, "shape")
        return self.variable.type.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of the value to be."""
        if self.variable.type.weak:
            lack(self, "dtype")
        return self.variable.type.dtype

    def __bool__(self) -> bool:
        now = self.current()
        return bool(self.recorder.see(self.variable, bool) if now is self else now)

    def __int__(self) -> int:
        now = self.current()
        return int(self.recorder.see(self.variable, int) if now is self else now)

    def __index__(self) -> int:
        if self.dtype.kind not in "iu":
            raise TypeError(f"only integers can be indices, not a traced value of dtype {self.dtype}")
        return int(self)

    # A power of whole numbers of Python is a float where the exponent is negative.
    def __pow__(self, other: Any, modulo: None = None) -> Any:
        return Tracer.__pow__(self + 0.0 if _is_broken(self, other) else self, other, modulo)

    def __rpow__(self, other: Any) -> Any:
        return Tracer.__rpow__(self, other + 0.0 if _is_broken(other, self) else other)

    # Every refusal is remembered: a function that catches it must not take a path that values would not lead it to.
    def __array_ufunc__(self, *args: Any, **keywords: Any) -> Any:
        with self.recorder.remembering():
            return super().__array_ufunc__(*args, **keywords)

    def __array_function__(self, *args: Any, **keywords: Any) -> Any:
        with self.recorder.remembering():
            return super().__array_function__(*args, **keywords)

    def __array__(self, *args: Any, **keywords: Any) -> Any:
        with self.recorder.remembering():
            return super().__array__(*args, **keywords)

    def __float__(self) -> float:
        with self.recorder.remembering():
            return super().__float__()

    def __complex__(self) -> complex:
        with self.recorder.remembering():
            return super().__complex__()

    def __setitem__(self, key: Any, value: Any) -> None:
        with self.recorder.remembering():
            super().__setitem__(key, value)

    def refused(self, error: Exception) -> Exception:
        """The error, remembered."""
        return self.recorder.refusal(error)

    # A text is not that of the value.
    def __repr__(self) -> str:
        self._note_text()
        return super().__repr__()

    def __format__(self, spec: str) -> str:
        self._note_text()
        return super().__format__(spec)

    def _note_text(self) -> None:
        if not sys._getframe(2).f_code.co_filename.startswith(_ENGINE):  # noqa: SLF001 - the engine asks all the time
            self._read_text()

    def _read_text(self) -> None:
        self.recorder.texts_matter = True

    def __getattr__(self, name: str) -> NoReturn:
        if hasattr(np.ndarray, name) and not name.startswith("__"):
            self.recorder.refused = f"a traced value has no attribute {name}"
        super().__getattr__(name)


def _is_broken(base: Any, exponent: Any) -> bool:
    """True if a power of whole numbers of Python is a broken one. The sign of the exponent is looked at, where it can be."""
    if not (_is_whole(base) and _is_whole(exponent)):
        return False
    return exponent.recorder.is_negative(exponent) if isinstance(exponent, GraphTracer) else exponent < 0


def _is_whole(x: Any) -> bool:
    if issubclass(type(x), GraphTracer):
        type_ = x.variable.type
        return type_.weak and type_.dtype.kind in "ib"
    return type(x) in (int, bool)


class NumberTracer(GraphTracer):
    """A number around the function that is an input of the graph, or what is computed from such numbers alone.

    Without tracing it would be a number with a text. Code that reads the text is noted; the number is a constant then.
    """

    __slots__ = ()

    def _read_text(self) -> None:
        self.recorder.numbers_matter = True


class Watch:
    """The function that `sys.setprofile` gets, to watch a function while it is recorded.

    Calls of the recorder itself, nine of ten, are hidden from it.
    """


class _Handling:
    """The handling of floating-point errors and warnings where recording begins."""

    def __init__(self) -> None:
        self.errors: dict[str, str] = dict(np.geterr())  # type: ignore[arg-type]  # modes are texts
        self.filters = warnings.filters
        self.quiet: set[str] = set()
        """Kinds of floating-point errors that the function ignores somewhere, as numpy.errstate names them."""
        self.show = getattr(warnings, "_showwarnmsg_impl", None)


class Recorder(Trace):
    """A trace that writes nodes."""

    records_types = True

    def __init__(self) -> None:
        self.source: str | None = None  # the line to note, where the caller knows better than the stack
        self.refused: str | None = None  # the latest thing the function wanted that a graph has no form for
        self.guards: list[Guard] = []
        self.numbers_matter = False
        """True if the function read the text of a number that is an input."""
        self.texts_matter = False
        """True if the function read the text of another traced value."""
        self.observed: ObservedValues | None = None
        self.nodes: list[Node] = []
        self.captures: list[Capture] = []
        self._captured: dict[int, list[tuple[Any, Capture]]] = {}
        self._overwritten: dict[Var, str] = {}
        self._roots: dict[Var, Var] = {}
        self._held: dict[Var, Any] = {}
        self._count = 0
        outer = innermost_recorder()
        self.handling: _Handling = outer.handling if isinstance(outer, Recorder) else _Handling()

    def new_var(self, type_: ArrayType) -> Var:
        """A value that no node defines yet."""
        self._count += 1
        return Var(self._count - 1, type_)

    def apply(self, primitive: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        """Infer the types of the results and write a node."""
        watch = sys.getprofile()
        if not isinstance(watch, Watch):
            return self._apply(primitive, operands, params)
        sys.setprofile(None)
        try:
            return self._apply(primitive, operands, params)
        finally:
            sys.setprofile(watch)

    def _apply(self, primitive: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        if np.geterr() != self.handling.errors and not is_ours():
            self._follow_error_handling()
        if warnings.filters is not self.handling.filters:
            self._follow_warnings()
        atoms = tuple(self.atom_of(operand) for operand in operands)
        if primitive.effect is Effect.OVERWRITES and issubclass(type(operands[0]), np.ndarray):
            raise self.refusal(NeedsValueError("pb.inplace writes into an array that the function makes; pass it"))
        if primitive.effect is not Effect.RESTORES:
            self._refuse_overwritten(primitive, atoms)
        outputs = tuple(self.new_var(type_) for type_ in primitive.infer(*(atom.type for atom in atoms), **params))
        source = self.source or user_source()
        self.nodes.append(Node(primitive, atoms, tuple(sorted(params.items())), outputs, source))
        self._follow_memory(primitive, atoms, outputs, source)
        is_number = any(type(operand) is NumberTracer for operand in operands) and all(
            type(operand) in _NUMBERS for operand in operands
        )
        tracers = tuple((NumberTracer if is_number else GraphTracer)(self, var) for var in outputs)
        return tracers[0] if primitive.results == 1 else tracers

    def _follow_error_handling(self) -> None:
        """Ignore the errors that the function ignores; refuse modes that a plan cannot follow, such as "raise"."""
        before = self.handling.errors
        for kind, mode in np.geterr().items():
            if mode == before[kind]:
                continue
            if mode not in ("ignore", "warn"):
                message = f"the function sets numpy.errstate({kind}={mode!r}), which a plan runs without"
                raise self.refusal(TracingError(f"{message}; test the values instead, for example with numpy.isfinite"))
            if mode == "ignore":
                self.handling.quiet.add(kind)

    def ignore_errors(self) -> None:
        """The program gives no floating-point warnings."""
        self.handling.quiet.update(self.handling.errors)

    def _follow_warnings(self) -> None:
        """The same where a function has `warnings.catch_warnings` do it."""
        matching = (action for action, _, kind, _, _ in warnings.filters if issubclass(RuntimeWarning, kind))
        action = next(matching, "default")
        if action == "error" or getattr(warnings, "_showwarnmsg_impl", None) is not self.handling.show:
            raise self.refusal(
                TracingError("the function makes errors or a list of warnings, which a plan does not give")
            )
        if action == "ignore":
            self.ignore_errors()

    def _refuse_overwritten(self, primitive: Primitive, atoms: Sequence[Atom]) -> None:
        for atom in atoms:
            written_at = self._overwritten.get(self._roots.get(atom, atom)) if isinstance(atom, Var) else None
            if written_at is not None:
                raise OverwrittenError(
                    f"{primitive.name} reads an array that pb.inplace overwrote at {written_at}; "
                    "use the result of pb.inplace instead"
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

    def _capture(self, array: np.ndarray[Any, Any]) -> Capture:
        """The array as it is now: the function may write to it before it uses it again."""
        captured = self._captured.setdefault(id(array), [])
        if captured and _has_same_contents(captured[-1][1].value, array):
            return captured[-1][1]
        if array.dtype.kind not in "biufc":
            raise TracingError(f"an array of dtype {array.dtype} cannot be part of a compiled function")
        capture = Capture(self.new_var(type_of(array)), self.kept(array))
        captured.append((array, capture))  # the array too: its id must not become another's
        self.captures.append(capture)
        return capture

    def kept(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The facts that are remembered of an array."""
        return np.array(array)

    def is_negative(self, number: GraphTracer) -> bool:
        """True if a number is negative in this call; False where that is not known."""
        return self.observed is not None and bool(number < 0)

    def see(self, var: Var, kind: type) -> bool | int:
        """The value that the function sees when it looks at one; the graph is right only where it would see the same."""
        if self.observed is None:
            raise self.refusal(NeedsValueError("control flow depends on a value that is not known while recording"))
        seen: bool | int = kind(self.observed.value(var))
        self.guards.append(Guard(var, seen))
        return seen

    def held(self, var: Var) -> Any:
        """An array as a whole, where it comes of whole numbers and truth values alone, which seldom change."""
        if self.observed is None or any(one.type.dtype.kind not in "biu" for one in self._sources_of(var)):
            return None
        if var not in self._held:
            value = self._held[var] = np.array(self.observed.value(var))
            same = logic.equal(GraphTracer(self, var), value)
            self.see(reductions.all_(same, axes=tuple(range(value.ndim)), keepdims=False).variable, bool)
        return self._held[var]

    def _sources_of(self, var: Var) -> list[Var]:
        """A value, and all that it is computed from."""
        makers = {output: node for node in self.nodes for output in node.outputs}
        sources = {var: None}
        waiting = [var]
        for one in waiting:
            inputs = makers[one].inputs if one in makers else ()
            fresh = [atom for atom in inputs if isinstance(atom, Var) and atom not in sources]
            sources.update(dict.fromkeys(fresh))
            waiting.extend(fresh)
        return waiting

    def refusal(self, error: Exception) -> Exception:
        """The error, remembered: a function may catch it and go another way than values would have led it."""
        self.refused = str(error)
        return error

    @contextmanager
    def remembering(self) -> Iterator[None]:
        """Remember what is raised inside."""
        try:
            yield
        except Exception as error:
            self.refused = f"{error}"
            raise

    def compute_the_same(self, one: Atom, other: Atom) -> bool:
        """True if two values are one, or the same steps lead to both."""
        if one == other:
            return True
        nodes = {var: node for node in self.nodes for var in node.outputs}
        visited = set()
        pairs = [(one, other)]
        while pairs:
            pair = one, other = pairs.pop()
            if one == other or pair in visited:
                continue
            visited.add(pair)
            if not (isinstance(one, Var) and isinstance(other, Var) and one in nodes and other in nodes):
                return False
            made, again = nodes[one], nodes[other]
            if (made.primitive, made.params, made.outputs.index(one)) != (
                again.primitive,
                again.params,
                again.outputs.index(other),
            ) or made.primitive.effect is not Effect.NONE:
                return False
            pairs.extend(zip(made.inputs, again.inputs, strict=True))
        return True

    def memory_of(self, value: Any) -> Var | None:
        """The value of the graph whose memory this one lives in; None for numbers."""
        if not isinstance(value, TracedValue | np.ndarray):
            return None
        atom = self.atom_of(value)
        return self._roots.get(atom, atom) if isinstance(atom, Var) else None

    def atom_of(self, value: Any) -> Atom:
        """The operand as the graph knows it."""
        value = current(value)
        if isinstance(value, GraphTracer) and value.traced_by is self:
            return value.variable
        if isinstance(value, TracedValue):
            raise self.refusal(NeedsValueError("the function takes a value that an outer transformation follows"))
        if issubclass(type(value), np.ndarray):
            return self._capture(value).var
        if type(value) is int and not -(2**63) <= value < 2**64:
            raise NeedsValueError("an integer larger than 64 bits cannot be part of a compiled function")
        if type(value) in (MaskedRead, Positions):
            value.refuse()
        if not is_array_like(value):
            mend = "; make it an array: pb.numpy.array(operand)" if isinstance(value, list | tuple) else ""
            raise TracingError(f"an operand of type {type(value).__name__} cannot be part of a compiled function{mend}")
        return Literal(value, type_of(value))


_NUMBERS = frozenset({NumberTracer, int, float, bool, np.float64, np.float32, np.int64, np.int32})


def record(
    function: Callable[..., Any],
    types: Sequence[ArrayType],
    values: Sequence[Any] | None = None,
    numbers: Collection[int] = (),
) -> tuple[Graph, Any]:
    """Graph of a function of arrays that returns a sequence of values, and what it returned beside them.

    The function returns `(values, rest)`; `values` become the outputs of the graph. With the values of the arguments the
    function may look at what it computes. The arguments at the positions `numbers` are none: they stand for numbers that the
    function meets around itself.
    """
    with tracing(Recorder()) as recorder:
        inputs = tuple(recorder.new_var(type_) for type_ in types)
        if values is not None:
            recorder.observed = ObservedValues(recorder, dict(zip(inputs, values, strict=True)))
        tracers = [
            given((NumberTracer if position in numbers else GraphTracer)(recorder, var))
            for position, var in enumerate(inputs)
        ]
        results, rest = function(*tracers)
        if recorder.refused is not None:
            raise TracingError(recorder.refused)
        outputs = tuple(recorder.atom_of(value) for value in results)
        graph = Graph(inputs, tuple(recorder.captures), tuple(recorder.nodes), outputs, tuple(recorder.guards))
    return graph, rest


class ObservedValues:
    """The values of the call that is being recorded, computed where the function looks at them."""

    def __init__(self, recorder: Recorder, known: dict[Var, Any]) -> None:
        self._recorder = recorder
        self._known = known
        self._makers: dict[Var, Node] = {}
        self._nodes_read = 0

    def value(self, var: Var) -> Any:
        """Evaluate what leads to a value. Warnings are left to the plan, which computes it again."""
        for node in self._recorder.nodes[self._nodes_read :]:
            self._makers.update((output, node) for output in node.outputs)
        self._nodes_read = len(self._recorder.nodes)
        self._known.update((capture.var, capture.value) for capture in self._recorder.captures)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            waiting = [var]
            while waiting:  # not by recursion: a loop makes long chains
                wanted = waiting[-1]
                if wanted in self._known:
                    waiting.pop()
                    continue
                node = self._makers[wanted]
                missing = [atom for atom in node.inputs if isinstance(atom, Var) and atom not in self._known]
                if missing:
                    waiting.extend(missing)
                else:
                    self._evaluate(node)
        return self._known[var]

    def _evaluate(self, node: Node) -> None:
        if node.primitive.effect.writes:
            raise self._recorder.refusal(NeedsValueError("control flow depends on what pb.inplace wrote"))
        operands = [atom.value if isinstance(atom, Literal) else self._known[atom] for atom in node.inputs]
        result = node.primitive.evaluate(*operands, **dict(node.params))
        results = result if node.primitive.results > 1 else (result,)
        self._known.update(zip(node.outputs, results, strict=True))


def evaluate_graph(
    graph: Graph,
    arguments: Sequence[Any],
    captured: Sequence[Any],
    before: Callable[[Node], None] = lambda _: None,
    *,
    writes_to: Trace,
) -> list[Any]:
    """Run a graph by calling its primitives under a trace; `before` is called with each node.

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
    return f"{_name_of_file(frame.f_code.co_filename)}:{frame.f_lineno}"


@lru_cache(maxsize=256)
def _name_of_file(path: str) -> str:
    return Path(path).name


def _has_same_contents(kept: np.ndarray[Any, Any], array: np.ndarray[Any, Any]) -> bool:
    return kept is array or (
        kept.shape == array.shape and kept.dtype == array.dtype and kept.tobytes() == array.tobytes()
    )

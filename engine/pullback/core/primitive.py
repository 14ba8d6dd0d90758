"""Primitives and the traces that watch them.

A primitive is a row of the one rule table: how it is evaluated on NumPy arrays, what type it gives, how a tangent is
pushed through it and how a cotangent is pulled back. Calling one with plain values evaluates it; calling one with a
traced value hands it to the innermost trace among the operands. A rule never depends on which trace that is.

Rules are written with NumPy's own functions and operators: on plain arrays they run as they stand, on traced values they
come back here through NumPy's protocols, so a derivative can itself be traced, to any order.
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from itertools import count
from typing import Any, ClassVar, TypeVar

import numpy as np

from pullback.core import counters
from pullback.core.types import ArrayType, type_of
from pullback.errors import NeedsValueError, TracingError

#: So many examples a plan takes one by one: each is some steps, and a program of some ten thousand takes minutes to compile.
MOST_APPLICATIONS = 256


class Effect(Enum):
    """The effect of a primitive besides its result."""

    NONE = "none"
    READS = "reads memory"  # its result depends on when it runs: never merged with an equal one
    OVERWRITES = "overwrites its first operand"  # never dropped, merged or moved; what it wrote over is put back later
    RESTORES = "restores its first operand"  # the undoing of an overwrite
    KEEPS = "keeps state for its pullback"  # pulled back just once, also if its result is not used

    @property
    def is_undone(self) -> bool:
        """True if the pullback has something to undo, so that it always has to run, and only once."""
        return self in (Effect.OVERWRITES, Effect.KEEPS)

    @property
    def writes(self) -> bool:
        """True if memory that others can see is written to."""
        return self in (Effect.OVERWRITES, Effect.RESTORES)


class Trace(ABC):
    """Something that watches primitives being applied: a tape, a recorder, a forward sweep.

    Traces nest; the level tells inner from outer, also where an inner one runs in another thread. A closed trace is over:
    a value that was kept from it means nothing any more.
    """

    level: int = 0
    closed: bool = False
    records_types: bool = False  # there are no values below, only types
    keeps_all: bool = False  # what is computed while it watches belongs to it, of outer values alone as well: a branch may not be taken

    @abstractmethod
    def apply(self, primitive: "Primitive", operands: Sequence[Any], params: dict[str, Any]) -> Any:
        """Apply a primitive to operands of which at least one is traced here."""

    def refusal(self, error: Exception) -> Exception:
        """The error, for a trace that remembers what it refused."""
        return error

    def ignore_errors(self) -> None:  # noqa: B027 - programs alone have warnings to leave out
        """Of a recorder: the program gives no floating-point warnings."""


class TracedValue:
    """A value that a trace follows; the NumPy face of it is `pullback.numpy_api.tracer.Tracer`."""

    __slots__ = ("memory", "traced_by")
    #: True if it is an array in the memory of a device: a value, which nothing but the lowest trace follows.
    on_device: ClassVar[bool] = False
    #: True where its value is at hand, as on a tape.
    has_value: ClassVar[bool] = False
    traced_by: Trace
    #: The object that shows its memory, for arguments, views and arrays stored into (`pullback.numpy_api.traced_stores`).
    memory: Any

    def current(self) -> Any:
        """The current value; of an array that was stored into, its contents since then, which may be a plain array."""
        memory = self.memory
        return self if memory is None else memory.read(self)

    def alias(self) -> Any:
        """The same value under another name."""
        raise NotImplementedError  # each trace knows its own values

    def may_be_transposed(self) -> bool:
        """True if NumPy's array may not be in C order."""
        return False

    def is_equal(self, other: Any) -> bool:
        """True if both are known to have the same value."""
        return self is other

    def held(self) -> Any:
        """The plain value, where a plan can be held to it (`traces/recorder.py`); None elsewhere."""
        return None

    def holding(self, result: Any) -> Any:
        """The result of an operation on this array while it holds a plain one."""
        return result

    def on(self, device: Any) -> Any:
        """The array on another device; of device arrays only."""
        raise NotImplementedError  # on a device alone

    def filled(self, value: int) -> Any:
        """An array like this one, filled with one number; of device arrays only."""
        raise NotImplementedError  # on a device alone

    def placed(self, value: Any) -> Any:
        """A plain value in the type and on the device of this array, a traced one as it is; of device arrays only."""
        raise NotImplementedError  # on a device alone

    def separated(self, others: Sequence[Any]) -> Any:
        """The array, or a copy where it overlaps one of the others or itself; of device arrays only."""
        raise NotImplementedError  # on a device alone

    def fetched(self) -> Any:
        """The elements as a NumPy array; of device arrays only."""
        raise NotImplementedError  # on a device alone


class _ArgumentMemory:
    """The mark of an argument, as its memory: it shows what it was given, and is not for the function to write to."""

    def read(self, array: Any) -> Any:
        return array


GIVEN = _ArgumentMemory()


def is_followed(x: Any) -> bool:
    """True if a transformation follows a value; an array on a device is plain to all of them."""
    return isinstance(x, TracedValue) and not x.on_device


def current(x: Any) -> Any:
    """The current value of a traced value; anything else is itself."""
    return x.current() if isinstance(x, TracedValue) else x


def as_value(x: Any) -> Any:
    """The current value of a traced value, under a name that later stores do not change; anything else is itself."""
    now = current(x)
    return now.alias() if isinstance(now, TracedValue) and now.memory is not None else now


class _ActiveTraces(threading.local):
    def __init__(self) -> None:
        self.traces: list[Trace] = []
        self.branch: Trace | None = None  # the innermost that keeps all
        self.refused = ""  # the sentence for the latest store into a plain array


_active = _ActiveTraces()
_levels = count(1)
_T = TypeVar("_T", bound=Trace)


def enter(trace: Trace) -> None:
    """Let a trace watch from here on. Later ones have higher levels."""
    trace.level = next(_levels)
    _active.traces.append(trace)
    if trace.keeps_all:
        _active.branch = trace
    _active.refused = ""


def leave(trace: Trace, error: BaseException | None = None) -> None:
    """End a trace: it watches no more, and what was kept from it means nothing. `error` is what ended it early."""
    _active.traces.remove(trace)
    trace.closed = True
    if trace.keeps_all:
        _active.branch = next((each for each in reversed(_active.traces) if each.keeps_all), None)
    refusal = error.__cause__ if isinstance(error, ValueError) else None
    if isinstance(refusal, TracingError):
        # A store of a traced number into a plain array: NumPy says "setting an array element with a sequence" instead.
        raise refusal from None
    if isinstance(error, ValueError) and str(error) == "Error setting single item of array." and _active.refused:
        raise TracingError(_active.refused) from None  # a store by `y.flat[i] = v`, of which NumPy says nothing more


def refused(error: TracingError) -> TracingError:
    """The error of a store into a plain array, whose sentence is kept for where NumPy puts another one in its place."""
    _active.refused = str(error)
    return error


@contextmanager
def tracing(trace: _T) -> Iterator[_T]:
    """Let a trace watch for as long as the block runs."""
    enter(trace)
    try:
        yield trace
    except BaseException as error:
        leave(trace, error)
        raise
    leave(trace)


@contextmanager
def outside(trace: Trace) -> Iterator[None]:
    """Let what a trace keeps be computed by those around it, for as long as the block runs."""
    before = _active.branch
    around = (outer for outer in reversed(_active.traces) if outer.keeps_all and outer.level < trace.level)
    _active.branch = next(around, None)
    try:
        yield
    finally:
        _active.branch = before


def innermost_trace() -> Trace | None:
    """The trace that watches in this thread, the latest if there are several."""
    return _active.traces[-1] if _active.traces else None


def watching() -> tuple[Trace, ...]:
    """The traces that watch in this thread, outermost first."""
    return tuple(_active.traces)


def innermost_recorder() -> Trace | None:
    """The recorder that watches in this thread, the latest if there are several."""
    return next((trace for trace in reversed(watching()) if trace.records_types), None)


class Primitive(ABC):
    """One row of the rule table."""

    name: str
    effect: Effect = Effect.NONE
    results: int = 1
    # True if the result is, or may be, memory of the first operand.
    aliases_operand: bool = False
    # `into(out, *operands, **params)` writes the result into an array of its type, None where the rule cannot.
    into: Callable[..., Any] | None = None
    # `in_state(places)` is the same for a plan that keeps its memory: a function of the list of its arrays, and of the operands
    # and then results that are not in it. `places` are those in the list, by number. None where `into` takes them all.
    in_state: Callable[[Mapping[int, int]], Callable[..., Any]] | None = None
    # True if the rule makes arrays on the way, also when it is given one to write into.
    needs_scratch: bool = False
    # Positions of operands that `into` reads as one line of memory; of those that are none it makes copies.
    in_lines: Sequence[int] = ()
    # True if `out` may be one of the operands, element for element.
    in_place: bool = False
    # True if `pull_once` writes over the result; it is then called where nothing else refers to the result.
    overwrites_result: bool = False
    # True if bodies among the parameters are run many times in one application.
    repeats: bool = False
    # True if value and derivative are computed together (loops and branches): see value_and_pull and value_and_push.
    joint: bool = False
    # True if derivatives read the type of the first operand alone, never its values.
    reads_types: bool = False
    # False where the derivative is zero wherever it exists (floor, comparisons): the result is a constant to every trace.
    moves: bool = True
    # True if a Python number among the operands is read in its own dtype, not in that of the result.
    keeps_dtypes: bool = False
    # Values it reads besides its operands.
    held: Sequence[Any] = ()
    # `lower(*operands, **params)` is the same in other primitives, for plans that keep all memory; None where there is none.
    lower: Callable[..., Any] | None = None
    table: ClassVar[dict[str, "Primitive"]] = {}

    def __init__(self, name: str) -> None:
        if name in Primitive.table:
            raise ValueError(f"there is a primitive {name!r} already; names are unique")
        self.name = name
        Primitive.table[name] = self

    def __repr__(self) -> str:
        return f"<primitive {self.name}>"

    def __call__(self, *operands: Any, **params: Any) -> Any:
        """Evaluate, or let the innermost trace among the operands apply it."""
        trace: Trace | None = None
        for operand in operands:
            if isinstance(operand, TracedValue):
                if operand.memory is not None and operand.memory is not GIVEN:
                    return self._of_current(operands, params)
                if trace is None or operand.traced_by.level > trace.level:
                    trace = operand.traced_by
        return self._dispatch(trace, operands, params)

    def _of_current(self, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        """Evaluate or apply to what operands hold after stores."""
        now = [current(operand) for operand in operands]
        trace = max(
            (x.traced_by for x in now if isinstance(x, TracedValue)), key=lambda trace: trace.level, default=None
        )
        result = self._dispatch(trace, now, params)
        if trace is None:
            stored = next(operand for operand in operands if isinstance(operand, TracedValue))
            return tuple(map(stored.holding, result)) if self.results > 1 else stored.holding(result)
        return result

    def _dispatch(self, trace: Trace | None, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        if trace is None:
            for counts in counters.active:
                counts.evaluated[self.name] += 1
            return self.evaluate(*operands, **params)
        if trace.closed:
            raise TracingError(
                f"{self.name} met a value kept from a call that is over; return values from the function, do not store them"
            )
        branch = _active.branch
        if branch is not None and 0 < trace.level < branch.level:  # arrays on a device have a trace of level 0
            trace = branch
        return trace.apply(self, operands, params)

    def writes_over(self, *types: ArrayType, **params: Any) -> bool:
        """True if `out` may be an operand of its type; `in_place`, where neither types nor parameters matter."""
        return self.in_place

    @abstractmethod
    def evaluate(self, *operands: Any, **params: Any) -> Any:
        """Value on plain NumPy arrays and scalars."""

    @abstractmethod
    def infer(self, *types: ArrayType, **params: Any) -> tuple[ArrayType, ...]:
        """Types of the results; raises what NumPy would raise."""

    @abstractmethod
    def pull(
        self, needed: Sequence[bool], y_bar: Any, y: Any, operands: Sequence[Any], params: dict[str, Any]
    ) -> Sequence[Any]:
        """Cotangents of the operands from the cotangent of the result, None where not needed.

        `y_bar` is None only for primitives that write memory: they are pulled back even if their result is not used.
        """

    def pull_once(
        self, needed: Sequence[bool], y_bar: Any, y: Any, operands: Sequence[Any], params: dict[str, Any]
    ) -> Sequence[Any]:
        """Cotangents as by `pull`; may overwrite y, a plain array without other references."""
        return self.pull(needed, y_bar, y, operands, params)

    @abstractmethod
    def push(self, tangents: Sequence[Any], y: Any, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        """Tangent of the result; a tangent is None for an operand that does not move."""

    def reads_target(self, operands: Sequence[Any]) -> bool:
        """True if the result depends on the old contents of the first operand; for primitives that overwrite it."""
        return True

    def value_and_pull(
        self, needed: Sequence[bool], operands: Sequence[Any], params: dict[str, Any]
    ) -> tuple[Any, Callable[[Any], Sequence[Any]]]:
        """Result of an application and what pulls it back, for rules that save more than operands and result."""
        y = self(*operands, **params)
        return y, lambda y_bar: self.pull(needed, y_bar, y, operands, params)

    def value_and_push(
        self, tangents: Sequence[Any], operands: Sequence[Any], params: dict[str, Any]
    ) -> tuple[Any, Any]:
        """Result of an application and its tangent, for rules whose tangent is not computed from the result."""
        y = self(*operands, **params)
        return y, self.push(tangents, y, operands, params)

    def batch(self, operands: Sequence[Any], batched: Sequence[bool], params: dict[str, Any]) -> Any:
        """Result for operands of which those flagged have one more, leading axis; the result has it too.

        Right for every rule, and slow: one application per example. Kinds and rules that can do better override it.
        """
        examples = range(next(np.shape(x)[0] for x, own in zip(operands, batched, strict=True) if own))
        if (
            len(examples) > MOST_APPLICATIONS
            and innermost_recorder()
            and any(isinstance(x, TracedValue) for x in operands)
        ):
            raise NeedsValueError(
                f"{self.name} is applied to one example of a batch after the other, and {len(examples)} of them are too many "
                "steps for a plan"
            )
        rows = [
            self(*(x[row] if own else x for x, own in zip(operands, batched, strict=True)), **params)
            for row in examples
        ]
        if not rows:
            types = [_example_type(x, batched=own) for x, own in zip(operands, batched, strict=True)]
            empty = tuple(np.zeros((0, *type_.shape), type_.dtype) for type_ in self.infer(*types, **params))
            return empty if self.results > 1 else empty[0]
        return tuple(map(np.stack, zip(*rows, strict=True))) if self.results > 1 else np.stack(rows)

    def scratch(self, *types: ArrayType, **params: Any) -> Sequence[ArrayType]:
        """Types of the arrays that `into` needs while it runs, which it is then given as `scratch=(…)`."""
        return ()

    def makes_arrays(self, *types: ArrayType, **params: Any) -> bool:
        """True if `into` makes arrays of its own for operands of these types."""
        return self.needs_scratch

    def compiled(
        self, bodies: dict[str, Callable[[], Callable[..., Any]]], params: dict[str, Any]
    ) -> Callable[..., Any]:
        """The function that evaluates a loop or branch from the programs of its bodies, by the name of their parameter.

        Each program is requested once per evaluation. The function takes `out`: an array or None for each result.
        """
        raise NotImplementedError(f"{self.name} has no body")

    def flops(self, types: Sequence[ArrayType], result: ArrayType) -> int:
        """Floating-point operations of one application: one per element unless a kind knows better."""
        return result.size


def _example_type(x: Any, *, batched: bool) -> ArrayType:
    """Type of one example of an operand."""
    type_ = type_of(x)
    return ArrayType(type_.shape[1:], type_.dtype) if batched else type_

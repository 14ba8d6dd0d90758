"""Stateful rules: what a rule keeps from its forward visit to its pullback lives in memory that is kept between runs.

>>> @pb.rule.stateful(reference=lambda x, w: np.tanh(x) * w)
... def gated(signature):  # built once per types of the operands
...     class Gated:
...         def forward(self, visit, x, w):
...             visit.t = np.tanh(x, out=visit.empty(x.shape, x.dtype))
...             visit.w = visit.save(w)
...             return visit.t * w
...
...         def pullback(self, visit, y_bar):
...             return y_bar * visit.w * (1 - visit.t**2), y_bar * visit.t
...
...     return Gated()
>>> pb.grad(lambda x, w: np.sum(gated(x, w)))(np.zeros(2), np.ones(2))
array([1., 1.])

The object that is built may hold what the types determine; what one visit saves belongs to the visit, whose memory is in
the stack of the run (`pullback.contexts`). So a rule may be visited many times before its first pullback, from loops,
recursion, several call sites and threads, and after the first run it makes no new arrays but its results.

The *reference* is the same mathematics in NumPy. It serves wherever state cannot: in forward mode, below another
derivative, under vmap, in plans (which keep memory of their own), and for types for which the builder returns None.
"""

import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol, overload

import numpy as np

from pullback.contexts import Frame, Run
from pullback.core.kinds import unbroadcast
from pullback.core.primitive import Effect, Primitive, Trace, TracedValue, innermost_recorder
from pullback.core.types import ArrayType, Shape, dtype_of, is_array_like, shape_of, type_of
from pullback.dataclass import dataclass
from pullback.errors import DifferentiationError, NeedsValueError
from pullback.traces.tape import Tape
from pullback.transforms.linearization import vjp

__all__ = ["Rule", "Signature", "StatefulRule", "Visit", "stateful"]

#: Signatures kept per rule; the one built first goes first.
SIGNATURES_KEPT = 256


@dataclass(frozen=True, slots=True)
class Signature:
    """The types of the operands a rule is built for."""

    types: tuple[ArrayType, ...]


class Rule(Protocol):
    """The result of a builder."""

    def forward(self, visit: "Visit", /, *operands: Any) -> Any:
        """The value; what the pullback will need is saved in the visit."""

    def pullback(self, visit: "Visit", y_bar: Any, /) -> Sequence[Any]:
        """One cotangent per operand; None is for those that `visit.needed` does not ask for."""


Builder = Callable[[Signature], Rule | None]


class Visit:
    """One forward run of a rule, until its pullback. Attributes may be set on it to remember things by.

    Arrays from `save` and `empty` are valid until the pullback is over; then the next run has the memory.
    """

    def __init__(self, rule: Rule, run: Run, needed: tuple[bool, ...]) -> None:
        self._rule = rule
        self._run = run
        self._frames: list[Frame] = []
        #: For each operand, True if its cotangent will be needed.
        self.needed = needed

    def save(self, array: Any) -> np.ndarray[Any, Any]:
        """A copy of an array, in the state."""
        frame = self._run.save(np.asanyarray(array))
        self._frames.append(frame)
        return frame.array

    def empty(self, shape: Shape, dtype: Any = np.float64) -> np.ndarray[Any, Any]:
        """An array in the state, to be written into."""
        frame = self._run.stack.push(tuple(shape), np.dtype(dtype))
        self._frames.append(frame)
        return frame.array

    def vjp(self, function: Callable[..., Any], *args: Any) -> tuple[Any, Callable[[Any], tuple[Any, ...]]]:
        """Value and pullback of a function, for rules that call back into differentiation.

        The pullback is for `pullback` of this visit, once. Whatever rules the function meets are built when they are
        met, so a rule may in this way call itself.
        """
        value, pullback, *_ = vjp(function, *args, once=True)
        return value, pullback

    def run_forward(self, operands: Sequence[Any]) -> Any:
        """Run the rule forward for the engine and return the value."""
        try:
            return self._outside(self._rule.forward(self, *operands))
        except BaseException:
            self.end()
            raise

    def run_pullback(self, y_bar: Any) -> list[Any]:
        """Run the pullback for the engine and return the cotangents."""
        return [self._outside(cotangent) for cotangent in self._rule.pullback(self, y_bar)]

    def _outside(self, value: Any) -> Any:
        """A value that stays what it is when the state is used again: copied if it lies there."""
        if issubclass(type(value), np.ndarray) and any(
            np.may_share_memory(value, frame.array) for frame in self._frames
        ):
            return np.array(value)
        return value

    def end(self) -> None:
        """Release the memory for the engine, latest first."""
        while self._frames:
            self._frames.pop().release()


class _VisitPrimitive(Primitive):
    """The primitive that a tape records; its last operand is the visit."""

    effect = Effect.KEEPS

    def __init__(self, name: str) -> None:
        self.name = name  # not in the rule table: it belongs to its author, and may be defined again

    def evaluate(self, *operands: Any, **params: Any) -> Any:
        """Run forward, keeping what the pullback will need."""
        del params
        *values, visit = operands
        y = visit.run_forward(values)
        if not is_array_like(y):
            visit.end()
            raise DifferentiationError(f"{self.name} returned a {type(y).__name__}; a stateful rule returns one array")
        return y

    def infer(self, *types: ArrayType, **params: Any) -> tuple[ArrayType, ...]:
        """Never called: plans trace the reference."""
        raise NotImplementedError

    def pull(
        self, needed: Sequence[bool], y_bar: Any, y: Any, operands: Sequence[Any], params: dict[str, Any]
    ) -> Sequence[Any]:
        """Cotangents of the operands; the visit is over then, whatever happens."""
        del y, params
        *values, visit = operands
        try:
            if y_bar is None:
                return [None] * len(operands)
            if isinstance(y_bar, TracedValue):
                raise DifferentiationError(
                    f"the pullback of {self.name} cannot be differentiated itself, its state is gone by then; "
                    "differentiate the function twice, which runs the reference"
                )
            cotangents = visit.run_pullback(y_bar)
        finally:
            visit.end()
        if len(cotangents) != len(values):
            raise DifferentiationError(
                f"the pullback of {self.name} gave {len(cotangents)} cotangents for {len(values)} operands"
            )
        own = zip(needed, cotangents, values, strict=False)
        return [
            *(self._fitting(place, cotangent, x) if need else None for place, (need, cotangent, x) in enumerate(own)),
            None,
        ]

    def push(self, tangents: Sequence[Any], y: Any, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        """Never called: forward mode runs the reference."""
        raise NotImplementedError

    def _fitting(self, place: int, cotangent: Any, value: Any) -> Any:
        if cotangent is None:
            raise DifferentiationError(
                f"the pullback of {self.name} gave None for operand {place}, whose gradient is needed; "
                "return zeros if it is zero"
            )
        got, expected = shape_of(cotangent), shape_of(value)
        if got != expected:
            raise DifferentiationError(
                f"the pullback of {self.name} gave a cotangent of shape {got} for operand {place} of shape {expected}"
            )
        return unbroadcast(cotangent, expected, dtype_of(value))


class StatefulRule:
    """A function with a rule that keeps state. Call it like the function."""

    def __init__(self, build: Builder, reference: Callable[..., Any] | None) -> None:
        self.__name__ = getattr(build, "__name__", "the stateful rule")
        self.__doc__ = build.__doc__
        self.reference = reference
        self._build = build
        self._primitive = _VisitPrimitive(self.__name__)
        self._lock = threading.Lock()
        self._built: dict[Signature, Rule | None] = {}

    @property
    def user_functions(self) -> tuple[Callable[..., Any], ...]:
        """The functions that plans trace, to watch their captured variables."""
        return () if self.reference is None else (self.reference,)

    def __call__(self, *operands: Any) -> Any:
        """The value; where a tape watches, with a visit that its sweep will pull back."""
        trace = max(
            (operand.traced_by for operand in operands if isinstance(operand, TracedValue)),
            key=lambda trace: trace.level,
            default=None,
        )
        values = [trace.value_of(operand) for operand in operands] if isinstance(trace, Tape) else operands
        recorder = innermost_recorder()  # constants too: what a rule without a reference reads cannot be watched
        if recorder is not None or any(isinstance(value, TracedValue) for value in values):
            return self._by_reference(trace or recorder, operands)
        for place, value in enumerate(values):
            if not is_array_like(value):
                raise TypeError(
                    f"{self.__name__}: operand {place} is a {type(value).__name__}, not an array or a number"
                )
        rule = self._rule(Signature(tuple(map(type_of, values))))
        if rule is None:
            return self._by_reference(trace, operands)
        if not isinstance(trace, Tape):
            return self._without_pullback(rule, values)
        needed = tuple(operand is not value for operand, value in zip(operands, values, strict=True))
        return self._primitive(*operands, Visit(rule, trace.run, needed))

    def _rule(self, signature: Signature) -> Rule | None:
        if signature not in self._built:
            rule = self._build(signature)
            with self._lock:
                self._built[signature] = rule
                while len(self._built) > SIGNATURES_KEPT:
                    self._built.pop(next(iter(self._built)))
            return rule
        return self._built[signature]

    def _by_reference(self, trace: Trace | None, operands: Sequence[Any]) -> Any:
        if self.reference is not None:
            return self.reference(*operands)
        if trace is not None and trace.records_types:
            raise NeedsValueError(
                f"{self.__name__} is a stateful rule without a reference, which runs on the tape only"
            )
        raise DifferentiationError(
            f"{self.__name__} is a stateful rule without a reference, which forward mode, vmap, second derivatives, "
            "arrays on devices and types it is not built for need; give it one: @pb.rule.stateful(reference=…)"
        )

    def _without_pullback(self, rule: Rule, values: Sequence[Any]) -> Any:
        run = Run()
        visit = Visit(rule, run, (False,) * len(values))
        try:
            y = self._primitive(*values, visit)
            visit.end()
        finally:
            run.close()
        return y


@overload
def stateful(build: Builder, /) -> StatefulRule: ...
@overload
def stateful(build: None = None, /, *, reference: Callable[..., Any]) -> Callable[[Builder], StatefulRule]: ...
def stateful(
    build: Builder | None = None, /, *, reference: Callable[..., Any] | None = None
) -> StatefulRule | Callable[[Builder], StatefulRule]:
    """Make a function of a builder of stateful rules.

    `build(signature)` is called once per types of the operands and returns an object with `forward(visit, *operands)`
    and `pullback(visit, y_bar)`, or None to use the reference for these types.

        @pb.rule.stateful(reference=lambda x: x * x)
        def square(signature): ...
    """
    if build is not None:
        return StatefulRule(build, reference)
    return lambda build: StatefulRule(build, reference)

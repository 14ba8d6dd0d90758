"""Reverse mode: a tape that records as the function runs, and the sweep back over it.

This is the one implementation of reverse mode. Run on plain arrays it is the `unfused` tier; run on values that a
recorder traces it writes the backward program into a graph (see `pullback.passes.differentiate`).

Only values that depend on a requested input are traced, so a primitive whose operands are all constant is simply
evaluated and leaves nothing behind, and a rule computes only the cotangents of traced operands.
"""

from collections.abc import Callable, Container, Sequence
from types import TracebackType
from typing import Any, Self

import numpy as np

from pullback.contexts import Run
from pullback.core import counters
from pullback.core.ownership import is_sole_owner
from pullback.core.primitive import Effect, Primitive, Trace, TracedValue, current, enter, leave
from pullback.core.types import is_array
from pullback.errors import DifferentiationError, NeedsValueError, OverwrittenError
from pullback.numpy_api.concrete_tracer import (
    ConcreteTracer,
    is_in_memory,
    kind_of,
    may_share_memory,
    refuse_other_kinds,
)
from pullback.rules.storing import STORES, Store
from pullback.traces.cotangents import Accumulator, dense
from pullback.traces.tangents import UNREAD


class TapeTracer(ConcreteTracer):
    """A value on a tape: the value itself, and the place of its cotangent."""

    __slots__ = ("place",)

    def __init__(self, trace: "Tape", value: Any, place: int) -> None:
        self.traced_by = trace
        self.value = value
        self.place = place
        self.memory = None

    def alias(self) -> "TapeTracer":
        """The same value under another name."""
        trace: Any = self.traced_by
        return TapeTracer(trace, self.value, self.place)


class Record:
    """One application on the tape."""

    __slots__ = ("operands", "params", "places", "primitive", "pullback", "result_places", "y")

    def __init__(
        self,
        primitive: Primitive,
        operands: list[Any],
        params: dict[str, Any],
        y: Any,
        places: list[int | None],
        result_places: tuple[int, ...],
        pullback: Callable[[Any], Sequence[Any]] | None = None,
    ) -> None:
        self.primitive = primitive
        self.operands = operands
        self.params = params
        self.y = y
        self.places = places
        self.result_places = result_places
        self.pullback = pullback  # where the rule made one when it was applied


class Tape(Trace):
    """Records applications in order. Use as a context: its tracers are valid inside."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.places = 0  # how many values there are a cotangent may be asked of
        self.keeps_values = 0  # how many checkpoints want to apply again what is recorded now
        self._stored: set[int] = set()  # the places of what stores gave, which the next store may write over
        self._once = False
        self._overwritten: dict[int, tuple[np.ndarray[Any, Any], int]] = {}
        self._returned: set[int] = set()  # the places of what was looked at beside the outputs
        self._run: Run | None = None

    def __enter__(self) -> Self:
        enter(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        leave(self, error)

    def watch(self, value: Any) -> TapeTracer:
        """Follow a value from here on."""
        self.places += 1
        return TapeTracer(self, value, self.places - 1)

    def value_of(self, value: Any) -> Any:
        """The plain value behind one of this tape's tracers; anything else is itself."""
        value = current(value)
        if self._overwritten and isinstance(value, TapeTracer) and value.traced_by is self:
            self._returned.add(value.place)
        return value.value if isinstance(value, TapeTracer) and value.traced_by is self else value

    def apply(self, primitive: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        """Evaluate (under the outer traces, if any) and record."""
        plain: list[Any] = []
        places: list[int | None] = []
        for operand in operands:
            if isinstance(operand, TapeTracer) and operand.traced_by is self:
                plain.append(operand.value)
                places.append(operand.place)
            else:
                plain.append(operand)
                places.append(None)
        writes = primitive.effect is not Effect.NONE and primitive.effect.writes
        if writes:
            self.refuse_second_order(primitive, plain)
        if self._overwritten:
            self._refuse_overwritten(primitive, plain, places)
        pullback = None
        if primitive.joint:
            y, pullback = primitive.value_and_pull([place is not None for place in places], plain, params)
        else:
            y = primitive(*plain, **params)
        several = primitive.results > 1
        moves = primitive.moves and (any(kind_of(part) in "fc" for part in y) if several else kind_of(y) in "fc")
        if not moves and not primitive.effect.is_undone:
            refuse_other_kinds(primitive, y if several else (y,))
            return y  # integers, truth values and what moves in steps have no cotangent
        traced = tuple([self.watch(part) for part in y]) if several else (self.watch(y),)
        if primitive.reads_types and not self.keeps_values:
            plain, y = self._without_values(primitive, plain, places, y, traced)
        result_places = tuple([tracer.place for tracer in traced])
        self.records.append(Record(primitive, plain, params, y, places, result_places, pullback))
        if primitive.effect is Effect.OVERWRITES and is_in_memory(plain[0]):
            self._overwritten[id(plain[0])] = (plain[0], traced[0].place)
        return traced if several else traced[0]

    def _without_values(
        self,
        primitive: Primitive,
        plain: list[Any],
        places: Sequence[int | None],
        y: Any,
        traced: Sequence[TapeTracer],
    ) -> tuple[list[Any], Any]:
        """Replace values that a derivative does not read, so that a store later finds no other reference to its array.

        What is read of an array that was stored into is copied: the next store is then done where the array lies.
        """
        if primitive in STORES:
            self._stored.add(traced[0].place)
            return [*map(_stand_in, plain[:2]), *plain[2:]], _stand_in(y)
        if places[0] not in self._stored:
            return plain, y
        if primitive.aliases_operand and type(y) is np.ndarray:
            y = traced[0].value = np.array(y)
        return [_stand_in(plain[0]), *plain[1:]], y

    @property
    def run(self) -> Run:
        """The memory in which rules on this tape save values for their pullbacks."""
        if self._run is None:
            self._run = Run()
        return self._run

    @property
    def has_overwritten(self) -> bool:
        """True if an in-place rule ran."""
        return bool(self._overwritten)

    @property
    def sweeps_once(self) -> bool:
        """True if a sweep undoes what rules did, so that there can be no second one."""
        return bool(self._overwritten) or self._run is not None

    def refuse_second_order(self, primitive: Primitive, plain: Sequence[Any]) -> None:
        """An in-place rule undoes its write in its pullback, so an outer trace would read what is gone."""
        outer = [operand.traced_by for operand in plain if isinstance(operand, TracedValue) and not operand.on_device]
        if any(trace.records_types for trace in outer):
            raise NeedsValueError(f"{primitive.name} below a derivative inside a compiled function runs on the tape")
        if outer:
            raise DifferentiationError(
                "second derivatives through pb.inplace are not supported; write it with new arrays (a @ b, x * y)"
            )

    def _refuse_overwritten(self, primitive: Primitive, plain: Sequence[Any], places: Sequence[int | None]) -> None:
        """Refuse to read new contents under the old name: they would come without their derivative.

        What pb.inplace returned, and everything traced after it, has a later place on the tape than what was overwritten.
        """
        # To be written to again is no reading, and is undone in reverse order.
        first = 1 if primitive.effect is Effect.OVERWRITES and not primitive.reads_target(plain) else 0
        for target, result_place in self._overwritten.values():
            for operand, place in zip(plain[first:], places[first:], strict=True):
                is_old = place is None or place < result_place
                if is_old and may_share_memory(operand, target):
                    raise OverwrittenError(
                        f"{primitive.name} reads an array that pb.inplace overwrote; use the result of pb.inplace instead"
                    )

    def _refuse_unread(self, outputs: Sequence[Any]) -> None:
        """Refuse to differentiate if the result of pb.inplace is unused: reads of the array itself are not traced."""
        read = self._returned | {place for record in self.records for place in record.places if place is not None}
        read.update(output.place for output in outputs if isinstance(output, TapeTracer) and output.traced_by is self)
        for record in self.records:
            is_plain = record.primitive.effect is Effect.OVERWRITES and record.places[0] is None
            if is_plain and any(place is not None for place in record.places) and record.result_places[0] not in read:
                raise OverwrittenError(UNREAD)

    def sweep(self, seeds: Sequence[tuple[Any, Any]], inputs: Sequence[TapeTracer], *, once: bool = False) -> list[Any]:
        """Cotangents of the inputs, from (traced output, cotangent) pairs; None where an input leads to no output.

        With `once` what was saved for an application is let go as soon as it has been pulled back.
        """
        self._once = once
        if self._overwritten:
            self._refuse_unread([output for output, _ in seeds])
        sums: list[Accumulator | None] = [None] * self.places

        for output, seed in seeds:
            if isinstance(output, TapeTracer) and output.traced_by is self:
                _accumulate(sums, output.place, seed)
        kept = {tracer.place for tracer in inputs}
        once = once or self.sweeps_once
        for position in range(len(self.records) - 1, -1, -1):
            record = self.records[position]
            if once:
                self.records.pop()
            if isinstance(record.primitive, Store):
                self._pull_store(record, sums, kept)
                continue
            y_bar = _take(sums, record, kept)
            if y_bar is None and not record.primitive.effect.is_undone:
                continue
            needed = [place is not None for place in record.places]
            cotangents = self.pull(record, needed, y_bar)
            for place, cotangent in zip(record.places, cotangents, strict=True):
                if place is not None and cotangent is not None:
                    _accumulate(sums, place, cotangent)
        gradients = [None if (total := sums[tracer.place]) is None else total.dense() for tracer in inputs]
        self._close()
        return separate(gradients, seeds)

    def _pull_store(self, record: Record, sums: list[Accumulator | None], kept: Container[int]) -> None:
        """Pull a store back over the cotangent of its result, where that is the tape's alone."""
        place = record.result_places[0]
        accumulator = sums[place]
        y_bar = _take_one(sums, place, kept)
        if accumulator is None or y_bar is None:
            return
        primitive, needed = record.primitive, [place is not None for place in record.places]
        if type(y_bar) is np.ndarray and accumulator.is_owned and place not in kept and isinstance(primitive, Store):
            cotangents = primitive.pull_over(needed, y_bar, record.operands, record.params)
            owned = True
        else:
            cotangents = primitive.pull(needed, y_bar, record.y, record.operands, record.params)
            owned = cotangents[0] is not y_bar
        for counts in counters.active:
            counts.pulled[primitive.name] += 1
            counts.cotangents[primitive.name] += sum(cotangent is not None for cotangent in cotangents)
        for number, (place_of_operand, cotangent) in enumerate(zip(record.places, cotangents, strict=True)):
            if place_of_operand is not None and cotangent is not None:
                _accumulate(sums, place_of_operand, cotangent, owned=owned and number == 0)

    def push(self, tangents: Sequence[tuple[TapeTracer, Any]], outputs: Sequence[Any]) -> list[Any]:
        """Tangents of the outputs, from (traced input, tangent) pairs; None where an output does not move."""
        moving = {tracer.place: tangent for tracer, tangent in tangents if tangent is not None}
        for record in self.records:
            own = [None if place is None else moving.get(place) for place in record.places]
            if all(tangent is None for tangent in own):
                continue
            for counts in counters.active:
                counts.pushed[record.primitive.name] += 1
            pushed = record.primitive.push(own, record.y, record.operands, record.params)
            several = pushed if record.primitive.results > 1 else (pushed,)
            moving.update(
                (place, dy) for place, dy in zip(record.result_places, several, strict=True) if dy is not None
            )
        return [
            moving.get(output.place) if isinstance(output, TapeTracer) and output.traced_by is self else None
            for output in outputs
        ]

    def pull(self, record: Record, needed: Sequence[bool], y_bar: Any) -> Sequence[Any]:
        """Cotangents of the operands of one application, over its result where that is this record's alone."""
        primitive = record.primitive
        if record.pullback is not None:
            cotangents = record.pullback(y_bar)
        else:
            alone = self._once and primitive.overwrites_result and is_sole_owner(record, y_bar)
            pull = primitive.pull_once if alone else primitive.pull
            cotangents = pull(needed, y_bar, record.y, record.operands, record.params)
        for counts in counters.active:
            counts.pulled[primitive.name] += 1
            counts.cotangents[primitive.name] += sum(cotangent is not None for cotangent in cotangents)
        # The arrays that a lazy cotangent reads may be restored before it is consumed.
        return [dense(cotangent) for cotangent in cotangents] if self._overwritten else cotangents

    def undo(self) -> None:
        """Put back everything that in-place rules overwrote, end every visit, latest first; for functions that raised."""
        while self.records:
            record = self.records.pop()
            if record.primitive.effect.is_undone:
                record.primitive.pull([False] * len(record.places), None, record.y, record.operands, record.params)
        self._close()

    def _close(self) -> None:
        """Give back the memory that rules kept things in."""
        if self._run is not None:
            self._run.close()


def _stand_in(value: Any) -> Any:
    """A stand-in for an array of which a derivative reads shape and dtype alone."""
    if type(value) is not np.ndarray:
        return value
    return np.broadcast_to(np.zeros((), value.dtype), value.shape)


def _accumulate(sums: list[Accumulator | None], place: int, cotangent: Any, *, owned: bool = False) -> None:
    accumulator = sums[place]
    if accumulator is None:
        accumulator = sums[place] = Accumulator()
    accumulator.add(cotangent, owned=owned)


def _take(sums: list[Accumulator | None], record: Record, kept: Container[int]) -> Any:
    """The complete cotangent of a result, dense, or the tuple of several; None where none is needed."""
    if record.primitive.results == 1:
        return _take_one(sums, record.result_places[0], kept)
    cotangents = tuple([_take_one(sums, place, kept) for place in record.result_places])
    return None if all(cotangent is None for cotangent in cotangents) else cotangents


def _take_one(sums: list[Accumulator | None], place: int, kept: Container[int]) -> Any:
    """The complete cotangent of a place, dense; its memory is freed unless the caller wants it."""
    accumulator = sums[place]
    if accumulator is None:
        return None
    cotangent = accumulator.dense()
    if place not in kept:
        sums[place] = None
    return cotangent


def separate(gradients: list[Any], seeds: Sequence[tuple[Any, Any]]) -> list[Any]:
    """Give every gradient memory of its own: callers may write to what they get.

    Rules may hand one cotangent to two operands, or a broadcast view of a single number; those are copied here.
    """
    held: list[Any] = [seed for _, seed in seeds if is_array(seed)]
    result = []
    for gradient in gradients:
        own = dense(gradient)
        if isinstance(own, TracedValue) and own.on_device:
            own = own.separated(held)
            held.append(own)
        elif issubclass(type(own), np.ndarray) and not isinstance(own, TracedValue):
            if not own.flags.writeable or any(
                issubclass(type(other), np.ndarray) and np.may_share_memory(own, other) for other in held
            ):
                own = np.array(own)
            held.append(own)
        result.append(own)
    return result

"""Trading work for memory: a stretch of a tape that forgets what it computed, and computes it again when it is needed.

What is kept of the stretch is what went in from outside and which rules ran; the pullback runs those rules again on the
same inputs (never the user's function: what it drew or printed, it did once), then sweeps back over the new records.
In a compiled function the stretch is a node with a body (`pullback.control.checkpoint_rule`).
"""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from pullback.control.checkpoint_rule import checkpointed_node
from pullback.core.primitive import Primitive, innermost_recorder, watching
from pullback.core.types import ArrayType
from pullback.dataclass import dataclass
from pullback.traces.tape import Record, Tape, TapeTracer


def checkpoint(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, of which only the inputs are kept for the derivative; the rest is computed again.

    >>> layer = pb.checkpoint(lambda x: np.tanh(np.sin(x)))
    >>> pb.grad(lambda x: np.sum(layer(layer(x))))(np.zeros(3))
    array([1., 1., 1.])
    """

    @wraps(function)
    def checkpointed(*args: Any, **keywords: Any) -> Any:
        if innermost_recorder() is not None:
            return checkpointed_node(function, args, keywords)
        marks = [(tape, len(tape.records), tape.places) for tape in watching() if isinstance(tape, Tape)]
        for tape, _, _ in marks:
            tape.keeps_values += 1
        try:
            result = function(*args, **keywords)
        finally:
            for tape, _, _ in marks:
                tape.keeps_values -= 1
        for tape, records, places in marks:
            _forget_since(tape, records, places)
        return result

    return checkpointed


@dataclass(frozen=True, slots=True)
class _Step:
    """An application without its values: places say which operands come from the stretch, the rest are constants."""

    primitive: Primitive
    params: dict[str, Any]
    constants: tuple[Any, ...]
    places: tuple[int | None, ...]
    result_places: tuple[int, ...]


class _Stretch(Primitive):
    """Steps that are one application to the tape that holds them."""

    name = "checkpoint"

    def __init__(self, steps: Sequence[_Step], inputs: int, places: int) -> None:
        self._steps = steps  # made for one tape: the rule table does not know it
        self._inputs = inputs
        self._places = places
        self.results = places - inputs
        self.held = [constant for step in steps for constant in step.constants if constant is not None]

    def _again(self, operands: Sequence[Any]) -> tuple[Tape, list[TapeTracer]]:
        """A tape with the stretch on it, computed anew, and a tracer for each of its places."""
        tape = Tape()
        tracers = [tape.watch(None) for _ in range(self._places)]
        values: dict[int, Any] = dict(enumerate(operands))
        for step in self._steps:
            own = [
                constant if place is None else values[place]
                for constant, place in zip(step.constants, step.places, strict=True)
            ]
            pullback = None
            if step.primitive.joint:
                needed = [place is not None for place in step.places]
                y, pullback = step.primitive.value_and_pull(needed, own, step.params)
            else:
                y = step.primitive(*own, **step.params)
            values.update(zip(step.result_places, y if step.primitive.results > 1 else (y,), strict=True))
            tape.records.append(
                Record(step.primitive, own, step.params, y, list(step.places), step.result_places, pullback)
            )
        return tape, tracers

    def evaluate(self, *operands: Any, **params: Any) -> Any:
        tape, _ = self._again(operands)
        results = [y for r in tape.records for y in (r.y if r.primitive.results > 1 else (r.y,))]
        return tuple(results) if self.results > 1 else results[0]

    def infer(self, *types: ArrayType, **params: Any) -> tuple[ArrayType, ...]:
        raise NotImplementedError("a stretch of a tape is never recorded: its steps are")

    def pull(
        self, needed: Sequence[bool], y_bar: Any, y: Any, operands: Sequence[Any], params: dict[str, Any]
    ) -> Sequence[Any]:
        tape, tracers = self._again(operands)
        seeds = zip(tracers[self._inputs :], y_bar if self.results > 1 else (y_bar,), strict=True)
        return tape.sweep([pair for pair in seeds if pair[1] is not None], tracers[: self._inputs], once=True)

    def push(self, tangents: Sequence[Any], y: Any, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        tape, tracers = self._again(operands)
        results = tape.push(list(zip(tracers, tangents, strict=False)), tracers[self._inputs :])
        return tuple(results) if self.results > 1 else results[0]


def _forget_since(tape: Tape, first: int, first_place: int) -> None:
    """Make one application of the records from `first` on, and let go what they hold."""
    records = tape.records[first:]
    if len(records) < 2 or any(record.primitive.effect.is_undone for record in records):
        return  # nothing to gain; and what wrote to memory cannot run again
    outside: dict[int, Any] = {}
    for record in records:
        for place, operand in zip(record.places, record.operands, strict=True):
            if place is not None and place < first_place:
                outside.setdefault(place, operand)
    results = [place for record in records for place in record.result_places]
    number = {place: position for position, place in enumerate((*outside, *results))}
    steps = [
        _Step(
            record.primitive,
            record.params,
            tuple(
                operand if place is None else None
                for place, operand in zip(record.places, record.operands, strict=True)
            ),
            tuple(None if place is None else number[place] for place in record.places),
            tuple(number[place] for place in record.result_places),
        )
        for record in records
    ]
    stretch = _Stretch(steps, len(outside), len(number))
    del tape.records[first:]
    tape.records.append(Record(stretch, list(outside.values()), {}, None, list(outside), tuple(results)))

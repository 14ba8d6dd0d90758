"""The primitive behind a function with a derivative of its own: flattened operands, rules, checks of results."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from pullback import trees
from pullback.core.primitive import Effect, Primitive, TracedValue, innermost_recorder
from pullback.core.types import ArrayType, is_array_like, type_of
from pullback.custom.derivative import Derivative, fitted, transposed
from pullback.dataclass import dataclass
from pullback.errors import DifferentiationError, NeedsValueError, TracingError
from pullback.traces.recorder import GraphTracer, Recorder
from pullback.transforms.linearization import zero_like


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """A call, without the leaves of its operands. A graph prints it by its name."""

    rebuild: trees.Rebuild
    structure: Any
    counts: tuple[int, ...]
    options: dict[str, Any] = field(default_factory=dict)
    seen: tuple[ArrayType, ...] | None = None

    @property
    def name(self) -> str:
        """Structure and options as text: calls with the same text do the same."""
        return f"{self.structure!r} {sorted(self.options.items())!r}" if self.options else repr(self.structure)

    def operands(self, leaves: Sequence[Any]) -> tuple[Any, ...]:
        """The operands, put together."""
        operands: tuple[Any, ...] = self.rebuild(iter(leaves))
        return operands

    def parts(self, leaves: Sequence[Any]) -> Iterator[list[Any]]:
        """The leaves of one operand after the other."""
        rest = iter(leaves)
        for count in self.counts:
            yield [next(rest) for _ in range(count)]


class FunctionPrimitive(Primitive):
    """Parameters: call."""

    # The function may read what it likes, so two calls are not one; and it may give back what it was given or has kept.
    effect = Effect.READS
    aliases_operand = True

    def __init__(self, name: str, function: Callable[..., Any], derivative: Derivative, results: int) -> None:
        self.name = name  # not in the rule table: it belongs to its author, and may be defined again
        self.results = results
        self.user_infer: Callable[..., Any] | None = None
        self.user_batch: Callable[..., Any] | None = None
        self._function = function
        self._derivative = derivative

    def __call__(self, *operands: Any, **params: Any) -> Any:
        """Apply it as any rule; a plan runs it on each call, also on constants."""
        recorder = innermost_recorder()
        if recorder is not None and not any(isinstance(operand, TracedValue) for operand in operands):
            return recorder.apply(self, operands, params)
        return super().__call__(*operands, **params)

    def evaluate(self, *operands: Any, **params: Any) -> Any:
        """Run the function."""
        call: Call = params["call"]
        y = self._function(*call.operands(operands), **call.options)
        results = self._results(y)
        for result in results:
            if isinstance(result, TracedValue):
                raise TracingError(
                    f"{self.name} returned a traced value, so it depends on one that was not passed to it; pass it"
                )
            if not is_array_like(result):
                raise TracingError(f"{self.name} returned a {type(result).__name__}, not an array or a number")
        if call.seen is not None and call.seen != (types := tuple(map(type_of, results))):
            raise TracingError(
                f"{self.name} returned {', '.join(map(str, types))}, and {', '.join(map(str, call.seen))} when the plan "
                f"was made; a plan needs one type: give it {self.name}.infer"
            )
        own = tuple(np.array(x) if _shares(x, operands[place == 0 :]) else x for place, x in enumerate(results))
        return own if self.results > 1 else own[0]

    def observed(self, call: Call, leaves: Sequence[Any], recorder: Recorder) -> Call:
        """The call with the types of its results, found by running it on the values that are being recorded."""
        observed = recorder.observed
        if observed is None:
            return call
        values = [observed.value(leaf.variable) if isinstance(leaf, GraphTracer) else leaf for leaf in leaves]
        return replace(call, seen=tuple(map(type_of, self._results(self.evaluate(*values, call=call)))))

    def infer(self, *types: ArrayType, **params: Any) -> tuple[ArrayType, ...]:
        """The types that the author declares, or those observed."""
        call: Call = params["call"]
        if self.user_infer is None:
            if call.seen is None:
                raise NeedsValueError(
                    f"the type {self.name} returns is not known before it runs; add @{self.name}.infer"
                )
            return call.seen
        inferred = self.user_infer(*call.operands(types), **call.options)
        return tuple(_as_type(type_) for type_ in (inferred if self.results > 1 else (inferred,)))

    def pull(
        self, needed: Sequence[bool], y_bar: Any, y: Any, operands: Sequence[Any], params: dict[str, Any]
    ) -> Sequence[Any]:
        """Pull back by the author's pull, or by the transpose of the author's push."""
        call: Call = params["call"]
        if self.results > 1:
            y_bar = tuple(
                zero_like(own) if cotangent is None else cotangent for own, cotangent in zip(y, y_bar, strict=True)
            )
        if self._derivative.has_pull or not self._derivative.has_push:
            return self._pull(needed, y_bar, y, operands, call)
        wanted = [place for place, need in enumerate(needed) if need]

        def push(*moves: Any) -> tuple[Any, ...]:
            tangents: list[Any] = [None] * len(operands)
            for place, move in zip(wanted, moves, strict=True):
                tangents[place] = move
            return self._results(self._push(tangents, y, operands, call))

        cotangents = transposed(self.name, "push", push, [operands[place] for place in wanted], self._results(y_bar))
        by_place = dict(zip(wanted, cotangents, strict=True))
        return [by_place.get(place) for place in range(len(operands))]

    def push(self, tangents: Sequence[Any], y: Any, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        """Push forward by the author's push, or by the transpose of the author's pull."""
        call: Call = params["call"]
        if self._derivative.has_push:
            return self._push(tangents, y, operands, call)
        moving = [place for place, tangent in enumerate(tangents) if tangent is not None]
        needed = [tangent is not None for tangent in tangents]

        def pull(*y_bars: Any) -> tuple[Any, ...]:
            cotangents = self._pull(needed, y_bars if self.results > 1 else y_bars[0], y, operands, call)
            return tuple(
                zero_like(operands[place]) if cotangents[place] is None else cotangents[place] for place in moving
            )

        dys = transposed(self.name, "pull", pull, self._results(y), [tangents[place] for place in moving])
        return dys if self.results > 1 else dys[0]

    def batch(self, operands: Sequence[Any], batched: Sequence[bool], params: dict[str, Any]) -> Any:
        """Batch by the author's batch, or one example after the other."""
        call: Call = params["call"]
        if self.user_batch is None:
            return super().batch(operands, batched, params)
        flags = call.operands(batched)
        return self.user_batch(flags, *call.operands(operands), **call.options)

    def _results(self, y: Any) -> tuple[Any, ...]:
        if self.results == 1:
            return (y,)
        if not isinstance(y, tuple | list) or len(y) != self.results:
            raise DifferentiationError(
                f"{self.name} was declared with results={self.results}: a tuple of that many arrays"
            )
        return tuple(y)

    def _pull(self, needed: Sequence[bool], y_bar: Any, y: Any, leaves: Sequence[Any], call: Call) -> list[Any]:
        """A cotangent per leaf, in the leaf's type."""
        needed_operands = [any(part) for part in call.parts(needed)]
        operands = call.operands(leaves)
        cotangents = self._derivative.pull(needed_operands, y_bar, y, operands, call.options)
        result: list[Any] = []
        for cotangent, operand, own, needs in zip(
            cotangents, operands, call.parts(leaves), call.parts(needed), strict=True
        ):
            if cotangent is None:
                result.extend([None] * len(own))
                continue
            if trees.structure(cotangent) != trees.structure(operand):
                raise DifferentiationError(f"{self.name} gave a cotangent that is not nested like its operand")
            parts = zip(trees.flatten(cotangent)[0], own, needs, strict=True)
            result.extend(fitted(self.name, part, leaf) if need else None for part, leaf, need in parts)
        return result

    def _push(self, tangents: Sequence[Any], y: Any, leaves: Sequence[Any], call: Call) -> Any:
        """Tangent of the result; within an operand that moves in part, the rest moves by zero."""
        operands = call.operands(leaves)
        moves: list[Any] = []
        for operand, own, values in zip(operands, call.parts(tangents), call.parts(leaves), strict=True):
            if all(tangent is None for tangent in own):
                moves.append(None)
                continue
            rebuild = trees.flatten(operand)[1]
            filled = [zero_like(x) if tangent is None else tangent for tangent, x in zip(own, values, strict=True)]
            moves.append(rebuild(iter(filled)))
        dy = self._derivative.push(moves, y, operands, call.options)
        if dy is None:
            return None if self.results == 1 else (None,) * self.results
        for tangent, own in zip(self._results(dy), self._results(y), strict=True):
            if tangent is not None and np.shape(tangent) != np.shape(own):
                raise DifferentiationError(
                    f"{self.name} gave a tangent of shape {np.shape(tangent)} for a result of shape {np.shape(own)}"
                )
        return dy


def _shares(x: Any, operands: Sequence[Any]) -> bool:
    """True if a result lies in the memory of an operand; of the first one that is declared."""
    return issubclass(type(x), np.ndarray) and any(
        issubclass(type(operand), np.ndarray) and np.may_share_memory(x, operand) for operand in operands
    )


def _as_type(given: Any) -> ArrayType:
    if isinstance(given, ArrayType):
        return given
    shape, dtype = given
    return ArrayType(tuple(map(int, shape)), np.dtype(dtype))

"""`const_graph`: run a function once, then only the steps that depend on its arguments."""

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

from pullback import trees
from pullback.dataclass import dataclass
from pullback.errors import TracingError
from pullback.traces.tape import Tape, TapeTracer


def const_graph(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., Any]:
    """The function with its first arguments fixed; from the second call on it replays the graph of the first.

    Python's control flow is the first call's, whatever the arguments are: for functions without any.
    """
    function = partial(fun, *args, **kwargs)
    kept: list[_Replay] = []

    @wraps(fun)
    def replayed(*rest: Any) -> Any:
        if not kept:
            replay, value = _record(function, rest)
            kept.append(replay)
            return value
        return kept[0].run(rest)

    return replayed


@dataclass(frozen=True, slots=True)
class _Replay:
    """A recorded tape, and which of its values are the result."""

    _tape: Tape
    _inputs: list[TapeTracer]
    _results: list[Any]
    _rebuild: trees.Rebuild

    def run(self, args: tuple[Any, ...]) -> Any:
        leaves = trees.flatten(args)[0]
        values = {tracer.place: leaf for tracer, leaf in zip(self._inputs, leaves, strict=True)}
        for record in self._tape.records:
            operands = (
                values[place] if place is not None else operand
                for place, operand in zip(record.places, record.operands, strict=True)
            )
            y = record.primitive(*operands, **record.params)
            values |= zip(record.result_places, (y,) if record.primitive.results == 1 else y, strict=True)
        return self._rebuild(values[r.place] if self._is_recorded(r) else r for r in self._results)

    def _is_recorded(self, result: Any) -> bool:
        return isinstance(result, TapeTracer) and result.traced_by is self._tape


def _record(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[_Replay, Any]:
    leaves, rebuild = trees.flatten(args)
    with Tape() as tape:
        inputs = [tape.watch(leaf) for leaf in leaves]
        output = function(*rebuild(iter(inputs)))
    if tape.has_overwritten:
        raise TracingError("const_graph cannot replay pb.inplace; write the product as a @ b")
    results, rebuild_output = trees.flatten(output)
    if not any(isinstance(result, TapeTracer) for result in results):
        raise TracingError("const_graph found that the result does not depend on the arguments")
    value = rebuild_output(map(tape.value_of, results))
    return _Replay(tape, inputs, results, rebuild_output), value

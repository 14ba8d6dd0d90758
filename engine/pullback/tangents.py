"""Forward mode: every value carries the tangent it moves along."""

from collections.abc import Sequence
from typing import Any

from pullback import counters
from pullback.numpy_api.valued import ValuedTracer, kind_of
from pullback.primitive import Primitive, Trace


class DualTracer(ValuedTracer):
    """A value and its tangent."""

    __slots__ = ("tangent",)

    def __init__(self, trace: "ForwardTrace", value: Any, tangent: Any) -> None:
        self.trace = trace
        self.value = value
        self.tangent = tangent


class ForwardTrace(Trace):
    """Pushes tangents along as the function runs."""

    def value_of(self, value: Any) -> Any:
        """The plain value behind one of this trace's tracers; anything else is itself."""
        return value.value if isinstance(value, DualTracer) and value.trace is self else value

    def tangent_of(self, value: Any) -> Any:
        """The tangent of one of this trace's tracers; None for anything else."""
        return value.tangent if isinstance(value, DualTracer) and value.trace is self else None

    def apply(self, primitive: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        """Evaluate, and push the tangents of the operands that have one."""
        mine = [isinstance(operand, DualTracer) and operand.trace is self for operand in operands]
        plain = [operand.value if own else operand for operand, own in zip(operands, mine, strict=True)]
        tangents = [operand.tangent if own else None for operand, own in zip(operands, mine, strict=True)]
        y = primitive(*plain, **params)
        if not primitive.moves or (primitive.results == 1 and kind_of(y) in "biu"):
            return y  # integers, truth values and what moves in steps do not move
        if all(tangent is None for tangent in tangents):
            return y
        for counts in counters.active:
            counts.pushed[primitive.name] += 1
        dy = primitive.push(tangents, y, plain, params)
        if primitive.results == 1:
            return DualTracer(self, y, dy) if dy is not None else y
        return tuple(
            DualTracer(self, value, tangent) if tangent is not None else value
            for value, tangent in zip(y, dy, strict=True)
        )

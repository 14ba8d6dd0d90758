"""Forward mode: every value carries the tangent it moves along."""

from collections.abc import Sequence
from typing import Any

from pullback.core import counters
from pullback.core.primitive import Effect, Primitive, Trace, current
from pullback.errors import OverwrittenError
from pullback.numpy_api.concrete_tracer import (
    ConcreteTracer,
    is_in_memory,
    kind_of,
    may_share_memory,
    memory_of,
    refuse_other_kinds,
)

UNREAD = (
    "the result of pb.inplace is not used, and reads of the array itself have no derivative; use the result of pb.inplace instead, "
    "c = pb.inplace.matmul(c, a, b), or make the array with pb.numpy.zeros"
)


class DualTracer(ConcreteTracer):
    """A value and its tangent."""

    __slots__ = ("tangent",)

    def __init__(self, trace: "ForwardTrace", value: Any, tangent: Any) -> None:
        self.traced_by = trace
        self.value = value
        self.tangent = tangent
        self.memory = None

    def alias(self) -> "DualTracer":
        """The same value under another name."""
        trace: Any = self.traced_by
        return DualTracer(trace, self.value, self.tangent)


class ForwardTrace(Trace):
    """Pushes tangents along as the function runs."""

    def __init__(self) -> None:
        self._overwritten: dict[int, Any] = {}
        self._unread: list[Any] = []  # results of in-place rules that were not read yet
        self._current: list[Any] = []  # the values made since then, which may be read although they live there

    def value_of(self, value: Any) -> Any:
        """The plain value behind one of this trace's tracers; anything else is itself."""
        value = current(value)
        self._note_read((value,))
        return value.value if isinstance(value, DualTracer) and value.traced_by is self else value

    def tangent_of(self, value: Any) -> Any:
        """The tangent of one of this trace's tracers; None for anything else."""
        value = current(value)
        return value.tangent if isinstance(value, DualTracer) and value.traced_by is self else None

    def apply(self, primitive: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        """Evaluate, and push the tangents of the operands that have one."""
        mine = [isinstance(operand, DualTracer) and operand.traced_by is self for operand in operands]
        plain = [operand.value if own else operand for operand, own in zip(operands, mine, strict=True)]
        tangents = [operand.tangent if own else None for operand, own in zip(operands, mine, strict=True)]
        if self._overwritten:
            self._note_read(operands)
            self._refuse_overwritten(primitive, operands)
        result = self._pushed(primitive, tangents, plain, params)
        if primitive.effect is Effect.OVERWRITES:
            if not mine[0] and isinstance(result, DualTracer):
                self._unread.append(result)
            target = memory_of(plain[0])
            self._overwritten[id(target)] = target
            self._current = [value for value in self._current if not may_share_memory(memory_of(value), target)]
        if self._overwritten:
            self._current.extend(result if primitive.results > 1 else [result])
        return result

    def _note_read(self, values: Sequence[Any]) -> None:
        self._unread = [result for result in self._unread if not any(_is_same(result, value) for value in values)]

    def refuse_unread(self) -> None:
        """Refuse to differentiate if the result of pb.inplace is unused: reads of the array itself are not traced."""
        if self._unread:
            raise OverwrittenError(UNREAD)

    def _pushed(
        self, primitive: Primitive, tangents: Sequence[Any], plain: Sequence[Any], params: dict[str, Any]
    ) -> Any:
        """The result, with its tangent if it moves."""
        dy: Any = None
        if primitive.joint:
            y, dy = primitive.value_and_push(tangents, plain, params)
        else:
            y = primitive(*plain, **params)
        if not primitive.moves or (primitive.results == 1 and kind_of(y) not in "fc"):
            refuse_other_kinds(primitive, y if primitive.results > 1 else (y,))
            return y  # integers, truth values and what moves in steps do not move
        if all(tangent is None for tangent in tangents):
            return y
        for counts in counters.active:
            counts.pushed[primitive.name] += 1
        if not primitive.joint:
            dy = primitive.push(tangents, y, plain, params)
        if primitive.results == 1:
            return DualTracer(self, y, dy) if dy is not None else y
        return tuple(
            DualTracer(self, value, tangent) if tangent is not None else value
            for value, tangent in zip(y, dy, strict=True)
        )

    def _refuse_overwritten(self, primitive: Primitive, operands: Sequence[Any]) -> None:
        """Refuse to read new contents under the old name: they would come without their tangent."""
        skipped = 1 if primitive.effect is Effect.OVERWRITES and not primitive.reads_target(operands) else 0
        for operand in operands[skipped:]:
            memory = memory_of(operand)
            if not is_in_memory(memory) or any(_is_same(operand, value) for value in self._current):
                continue
            if any(may_share_memory(memory, target) for target in self._overwritten.values()):
                raise OverwrittenError(
                    f"{primitive.name} reads an array that pb.inplace overwrote; use the result of pb.inplace instead"
                )


def _is_same(one: Any, other: Any) -> bool:
    """True if two are one value, under one name or two."""
    if not (isinstance(one, DualTracer) and isinstance(other, DualTracer)):
        return one is other
    return one.value is other.value and one.tangent is other.tangent

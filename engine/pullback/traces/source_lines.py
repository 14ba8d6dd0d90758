"""A tape that is recorded: each node of the backward graph has the source line of the node that it differentiates."""

from collections.abc import Sequence
from typing import Any

from pullback.core.primitive import Effect, Primitive
from pullback.errors import DifferentiationError
from pullback.traces.recorder import Recorder
from pullback.traces.tape import Record, Tape


class SourceKeepingTape(Tape):
    """A tape that gives the recorder the line of the user's code that is run or differentiated."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self._recorder = recorder
        self._sources: dict[int, str | None] = {}

    def apply(self, primitive: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        """Note the line that is being run."""
        before = len(self.records)
        result = super().apply(primitive, operands, params)
        for entry in self.records[before:]:  # none, where the result has no cotangent
            self._sources[id(entry)] = self._recorder.source
        return result

    def refuse_second_order(self, primitive: Primitive, plain: Sequence[Any]) -> None:
        """The values below are the recorder's, the derivative here is the first; only undoing is not differentiated."""
        del plain
        if primitive.effect is Effect.RESTORES:
            raise DifferentiationError(
                "second derivatives through pb.inplace are not supported; write it with new arrays (a @ b, x * y)"
            )

    def pull(self, record: Record, needed: Sequence[bool], y_bar: Any) -> Sequence[Any]:
        """A backward node has the line of the forward node it differentiates."""
        self._recorder.source = self._sources.get(id(record))
        return super().pull(record, needed, y_bar)

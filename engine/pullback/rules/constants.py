"""The value without its derivative."""

from collections.abc import Sequence
from typing import Any

from pullback.core.primitive import Primitive
from pullback.core.types import ArrayType


class _Stop(Primitive):
    """The operand itself, which does not move: no array, no record on any tape."""

    moves = False
    aliases_operand = True

    def evaluate(self, *operands: Any, **params: Any) -> Any:
        return operands[0]

    def infer(self, *types: ArrayType, **params: Any) -> tuple[ArrayType, ...]:
        return types

    def pull(
        self, needed: Sequence[bool], y_bar: Any, y: Any, operands: Sequence[Any], params: dict[str, Any]
    ) -> Sequence[Any]:
        return (None,)

    def push(self, tangents: Sequence[Any], y: Any, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        """Return no tangent."""

    def batch(self, operands: Sequence[Any], batched: Sequence[bool], params: dict[str, Any]) -> Any:
        return self(operands[0])

    def flops(self, types: Sequence[ArrayType], result: ArrayType) -> int:
        return 0


stop = _Stop("stop_gradient")

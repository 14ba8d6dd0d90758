"""Functions that are linear in their first operand; the others are whole numbers that say which of its elements go where."""

from collections.abc import Callable, Sequence
from typing import Any

from pullback.core.kinds import DeclaredPrimitive
from pullback.core.types import ArrayType


class Selection(DeclaredPrimitive):
    """`evaluate(x, *indices, **params)` with `transpose(y_bar, x, *indices, **params)`.

    Like `Linear`, but for the positions, which are operands: they may come out of a computation. They do not move. The
    transpose may look at the shape and dtype of x, never at its values. `batch(operands, batched, **params)` is the function
    for operands of which those flagged have one more, leading axis, or None where it has to go one by one.
    """

    reads_types = True

    def __init__(
        self,
        name: str,
        evaluate: Callable[..., Any],
        infer: Callable[..., ArrayType],
        transpose: Callable[..., Any],
        batch: Callable[..., Any] | None = None,
        into: Callable[..., Any] | None = None,
        scratch: Callable[..., Sequence[ArrayType]] | None = None,
    ) -> None:
        super().__init__(name, evaluate, infer, into=into, batch=batch, scratch=scratch)
        self._transpose = transpose

    def pull(
        self, needed: Sequence[bool], y_bar: Any, y: Any, operands: Sequence[Any], params: dict[str, Any]
    ) -> Sequence[Any]:
        """Apply the transpose; positions have no cotangent."""
        x_bar = self._transpose(y_bar, *operands, **params) if needed[0] else None
        return (x_bar, *[None] * (len(operands) - 1))

    def push(self, tangents: Sequence[Any], y: Any, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        """Apply the function to the tangent, with the same positions."""
        return None if tangents[0] is None else self(tangents[0], *operands[1:], **params)

    def batch(self, operands: Sequence[Any], batched: Sequence[bool], params: dict[str, Any]) -> Any:
        """Apply the declared batching, or the function one example at a time."""
        result = None if self._batch is None else self._batch(operands, batched, **params)
        return super().batch(operands, batched, params) if result is None else result

    def flops(self, types: Sequence[ArrayType], result: ArrayType) -> int:
        """Moving elements is no arithmetic."""
        return 0

"""Functions whose derivative is zero wherever it exists: positions, counts, orders, roundings."""

from collections.abc import Sequence
from typing import Any

from pullback.core.kinds import DeclaredPrimitive


class ZeroDerivative(DeclaredPrimitive):
    """A function of any operands and parameters that no operand moves.

    That is a fact about the function and not a missing rule; elementwise ones are a `Scalar` without maps. `batch(x,
    **params)` is a function of one operand for an x with one more, leading axis.
    """

    moves = False

    def pull(
        self, needed: Sequence[bool], y_bar: Any, y: Any, operands: Sequence[Any], params: dict[str, Any]
    ) -> Sequence[Any]:
        """Return no cotangents."""
        return [None] * len(operands)

    def push(self, tangents: Sequence[Any], y: Any, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        """The result stays where it is."""
        return None

    def batch(self, operands: Sequence[Any], batched: Sequence[bool], params: dict[str, Any]) -> Any:
        """Apply the declared batching, or the function one example at a time."""
        return super().batch(operands, batched, params) if self._batch is None else self._batch(operands[0], **params)

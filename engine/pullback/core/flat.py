"""Functions whose derivative is zero wherever it exists: positions, counts, orders, roundings."""

from collections.abc import Callable, Sequence
from typing import Any

from pullback.core.primitive import Primitive
from pullback.core.types import ArrayType


class Flat(Primitive):
    """A function of any operands and parameters that no operand moves.

    That is a fact about the function and not a missing rule; elementwise ones are a `Scalar` without maps. `batch(x,
    **params)` is a function of one operand for an x with one more, leading axis.
    """

    moves = False

    def __init__(
        self,
        name: str,
        evaluate: Callable[..., Any],
        infer: Callable[..., ArrayType],
        batch: Callable[..., Any] | None = None,
        into: Callable[..., Any] | None = None,
        scratch: Callable[..., Sequence[ArrayType]] | None = None,
    ) -> None:
        super().__init__(name)
        self._batch = batch
        self._scratch = scratch
        self.into = into
        self._evaluate = evaluate
        self._infer = infer

    def evaluate(self, *operands: Any, **params: Any) -> Any:
        """Apply the NumPy function."""
        return self._evaluate(*operands, **params)

    def infer(self, *types: ArrayType, **params: Any) -> tuple[ArrayType, ...]:
        """Type by the declared function."""
        return (self._infer(*types, **params),)

    def scratch(self, *types: ArrayType, **params: Any) -> Sequence[ArrayType]:
        """As declared."""
        return () if self._scratch is None else self._scratch(*types, **params)

    def pull(
        self, needed: Sequence[bool], y_bar: Any, y: Any, operands: Sequence[Any], params: dict[str, Any]
    ) -> Sequence[Any]:
        """No cotangent for anybody."""
        return [None] * len(operands)

    def push(self, tangents: Sequence[Any], y: Any, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        """The result stays where it is."""
        return None

    def batch(self, operands: Sequence[Any], batched: Sequence[bool], params: dict[str, Any]) -> Any:
        """As declared, else one by one."""
        return super().batch(operands, batched, params) if self._batch is None else self._batch(operands[0], **params)

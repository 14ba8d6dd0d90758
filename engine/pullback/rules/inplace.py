"""Operations that overwrite an array, and undo it.

The operands of such a rule are `(target, *others, kept)`. `kept` is what the target held before, bit for bit: an array
of its own, a value of a graph, or a frame in the stack of a run. The pullback puts it back, also if there is no use for
the cotangent of the result. Nothing else among the operands shares memory with the target: `pullback.inplace` sees to
that.

    rule              does                                      the pullback reads               then
    matmul_into       c <- a @ b                                a, b                             restores first
    gemm_into         c <- alpha op(a) @ op(b) + beta c         a, b, alpha, beta, kept          restores first
    elementwise_into  x <- f(x, …), f a scalar rule             what f's maps read, of (kept, …) restores last
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from pullback.contexts import Frame
from pullback.core.cases import tested_in
from pullback.core.kinds import Linear, Scalar
from pullback.core.primitive import Effect, Primitive, TracedValue
from pullback.core.types import ArrayType, type_of
from pullback.errors import DeviceError
from pullback.rules.contractions import matmul

copy = Linear(
    "copy",
    np.array,
    lambda type_: type_,
    lambda v, x: v,
    into=np.copyto,
)
copy.effect = Effect.READS


def may_overlap(x: Any, y: Any) -> bool:
    """True if two arrays have an element in common; where that is hard to tell, whether their ranges meet."""
    if not (issubclass(type(x), np.ndarray) and issubclass(type(y), np.ndarray) and np.may_share_memory(x, y)):
        return False
    try:
        return np.shares_memory(x, y, max_work=1000)  # type: ignore[arg-type] # any bound is allowed
    except np.exceptions.TooHardError:
        return True


class WritingPrimitive(Primitive):
    """Gives back its first operand, with other contents."""

    aliases_operand = True

    def infer(self, *types: ArrayType, **params: Any) -> tuple[ArrayType, ...]:
        """The type of the target."""
        return (types[0],)


class OverwritingPrimitive(WritingPrimitive):
    """A rule whose pullback restores its target. Operands: the target, the others, what the target held before."""

    effect = Effect.OVERWRITES
    does: ClassVar[str]  # for messages: "pb.inplace.matmul(c, a, b)"

    def infer(self, *types: ArrayType, **params: Any) -> tuple[ArrayType, ...]:
        """The type of the target, if the result fits it."""
        target, *others, _ = types
        result = self.infer_result(target, *others, **params)
        if result.shape != target.shape:
            raise ValueError(f"{self.shown(params)}: a result of shape {result.shape} does not fit {target.shape}")
        if not np.can_cast(result.dtype, target.dtype, "same_kind"):
            raise TypeError(
                f"{self.shown(params)}: a result of dtype {result.dtype} does not fit one of {target.dtype}"
            )
        return (target,)

    def evaluate(self, *operands: Any, **params: Any) -> Any:
        """Overwrite the target; operands that do not fit raise an error before anything is written."""
        target, *others, _ = operands
        if isinstance(target, TracedValue) and target.on_device:
            raise DeviceError(
                f"{self.shown(params)}: outside of a function that is differentiated nothing is written into an array on a "
                "device; compute a new one"
            )
        if not issubclass(type(target), np.ndarray):
            raise TypeError(f"{self.shown(params)} writes into an array, not into a {type(target).__name__}")
        if not target.flags.writeable:
            raise ValueError(f"{self.shown(params)}: the array to write into is read-only; pass a copy of it")
        if any(may_overlap(target, other) for other in others):
            others = [np.array(other) if may_overlap(target, other) else other for other in others]
        try:
            return self.write(target, *others, **params)
        except (TypeError, ValueError):
            self.infer(*map(type_of, (target, *others, target)), **params)  # says what does not fit
            raise

    def pull(
        self, needed: Sequence[bool], y_bar: Any, y: Any, operands: Sequence[Any], params: dict[str, Any]
    ) -> Sequence[Any]:
        """Cotangents of what the target held and of the others; the target is restored whatever happens."""
        target, *others, kept = operands
        saved = kept.array if isinstance(kept, Frame) else kept
        if may_overlap(y_bar, target):
            y_bar = np.array(y_bar)  # the caller passed the result itself, which is about to go
        if isinstance(y_bar, TracedValue) and y_bar.has_value:  # a trace that follows it may read our operands later
            y, saved = (x if isinstance(x, TracedValue) and x.on_device else np.array(x) for x in (y, saved))
        cotangents: Sequence[Any] = (None,) * (len(operands) - 1)
        try:
            if y_bar is not None:
                cotangents = self.pull_result(needed, y_bar, y, (target, *others), saved, params)
        finally:
            restore(target, saved)
            if isinstance(kept, Frame):
                kept.release()
        return (*cotangents, None)

    def push(self, tangents: Sequence[Any], y: Any, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        """Tangent of the result; the old contents are read from what was kept."""
        _, *others, kept = operands
        return self.push_result(tangents[:-1], y, (kept, *others), params)

    def shown(self, params: dict[str, Any]) -> str:
        """The text of a call, for messages."""
        return self.does

    @abstractmethod
    def infer_result(self, *types: ArrayType, **params: Any) -> ArrayType:
        """Type of what is computed, before it is written into the target."""

    @abstractmethod
    def computed(self, *operands: Any, **params: Any) -> Any:
        """The new contents of the target, in primitives that write nowhere."""

    @abstractmethod
    def write(self, *operands: Any, **params: Any) -> Any:
        """Overwrite the target, which shares memory with no other operand, and give it back."""

    @abstractmethod
    def pull_result(
        self, needed: Sequence[bool], y_bar: Any, y: Any, operands: Sequence[Any], saved: Any, params: dict[str, Any]
    ) -> Sequence[Any]:
        """Cotangents of the target's old contents and of the others, while the target still holds the result."""

    @abstractmethod
    def push_result(self, tangents: Sequence[Any], y: Any, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        """Tangent of the result; the first operand stands for the target's old contents."""


class _MatmulInto(OverwritingPrimitive):
    does = "pb.inplace.matmul(c, a, b)"

    def reads_target(self, operands: Sequence[Any]) -> bool:
        return False

    def infer_result(self, *types: ArrayType, **params: Any) -> ArrayType:
        return matmul.infer(*types[1:], **params)[0]

    def computed(self, *operands: Any, **params: Any) -> Any:
        _, a, b = operands
        return matmul(a, b)

    def write(self, *operands: Any, **params: Any) -> Any:
        c, a, b = operands
        return np.matmul(a, b, out=c)

    def pull_result(
        self, needed: Sequence[bool], y_bar: Any, y: Any, operands: Sequence[Any], saved: Any, params: dict[str, Any]
    ) -> Sequence[Any]:
        _, a, b = operands
        return (None, *matmul.pull(needed[1:3], y_bar, y, (a, b), params))

    def push_result(self, tangents: Sequence[Any], y: Any, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        _, da, db = tangents
        return None if da is None and db is None else matmul.push((da, db), y, operands[1:], params)

    def flops(self, types: Sequence[ArrayType], result: ArrayType) -> int:
        return matmul.flops(types[1:3], result)


class _ElementwiseInto(OverwritingPrimitive):
    """Parameter: rule, the scalar rule f of x <- f(x, …)."""

    def shown(self, params: dict[str, Any]) -> str:
        rule: Scalar = params["rule"]
        others = "xyz"[: len(rule.maps)]
        return f"pb.inplace.{getattr(rule.ufunc, '__name__', rule.name)}({', '.join(others)})"

    def infer_result(self, *types: ArrayType, **params: Any) -> ArrayType:
        rule: Scalar = params["rule"]
        return rule.infer(*types)[0]

    def computed(self, *operands: Any, **params: Any) -> Any:
        return params["rule"](*operands)

    def write(self, *operands: Any, **params: Any) -> Any:
        ufunc = params["rule"].ufunc
        return ufunc(*operands, out=operands[0])

    def pull_result(
        self, needed: Sequence[bool], y_bar: Any, y: Any, operands: Sequence[Any], saved: Any, params: dict[str, Any]
    ) -> Sequence[Any]:
        rule: Scalar = params["rule"]
        return rule.pull(needed[:-1], y_bar, y, (saved, *operands[1:]), {})

    def push_result(self, tangents: Sequence[Any], y: Any, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        rule: Scalar = params["rule"]
        return rule.push(tangents, y, operands, {})


class _Restore(WritingPrimitive):
    """`restore(c, kept)`: put the old contents back."""

    effect = Effect.RESTORES

    def evaluate(self, *operands: Any, **params: Any) -> Any:
        target, saved = operands
        np.copyto(target, saved)
        return target

    def pull(
        self,
        needed: Sequence[bool],
        y_bar: Any,
        y: Any,
        operands: Sequence[Any],
        params: dict[str, Any],
    ) -> Sequence[Any]:
        return (None, None)

    def push(self, tangents: Sequence[Any], y: Any, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        """Return no tangent: values written back are constant."""

    def flops(self, types: Sequence[ArrayType], result: ArrayType) -> int:
        return 0


matmul_into = _MatmulInto("matmul_into")
elementwise_into = _ElementwiseInto("elementwise_into")
restore = _Restore("restore")

tested_in("rules/test_inplace.py", "copy", "elementwise_into", "matmul_into", "restore")

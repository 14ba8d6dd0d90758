"""Products that overwrite an array, and undo it.

`matmul_into(c, a, b, saved)` does c <- a @ b. Its pullback first puts `saved`, the old contents of c, back bit for bit,
and only then accumulates; the new contents are gone by then, so nothing after it may read them. Saved: one copy of c.
Overwritten: c. Restored: in the pullback, which runs even if nobody wants the product's cotangent. The cotangent of the
old contents is zero: they were overwritten.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.cases import tested_in
from pullback.ir.types import ArrayType
from pullback.kinds import Linear
from pullback.primitive import Effect, Primitive
from pullback.rules.contractions import matmul

copy = Linear(
    "copy",
    np.array,
    lambda type_: type_,
    lambda v, x: v,
    into=np.copyto,
)
copy.effect = Effect.READS


class _Writing(Primitive):
    """Gives back its first operand, overwritten."""

    aliases_operand = True

    def infer(self, *types: ArrayType, **params: Any) -> tuple[ArrayType, ...]:
        del params
        return (types[0],)

    def push(self, tangents: Sequence[Any], y: Any, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        """What is written back is constant."""
        del tangents, y, operands, params


def _share_memory(c: Any, operand: Any) -> bool:
    """Whether two arrays have an element in common; where that is hard to tell, whether their ranges meet."""
    try:
        return np.may_share_memory(c, operand) and np.shares_memory(c, operand, max_work=1000)  # type: ignore[arg-type] # any bound is allowed
    except np.exceptions.TooHardError:
        return True


class _MatmulInto(_Writing):
    effect = Effect.OVERWRITES

    def evaluate(self, *operands: Any, **params: Any) -> Any:
        del params
        c, a, b, _ = operands
        for operand, name in ((a, "a"), (b, "b")):
            if _share_memory(c, operand):
                raise ValueError(
                    f"pb.inplace.matmul: c and {name} share memory, and the pullback needs {name} as it was; pass a copy"
                )
        return np.matmul(a, b, out=c)

    def pull(
        self,
        needed: Sequence[bool],
        y_bar: Any,
        y: Any,
        operands: Sequence[Any],
        params: dict[str, Any],
    ) -> Sequence[Any]:
        c, a, b, saved = operands
        restore(c, saved)
        if y_bar is None:
            return (None, None, None, None)
        a_bar, b_bar = matmul.pull(needed[1:3], y_bar, y, (a, b), params)
        return (None, a_bar, b_bar, None)

    def push(self, tangents: Sequence[Any], y: Any, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        _, a, b, _ = operands
        return matmul.push(tangents[1:3], y, (a, b), params)

    def flops(self, types: Sequence[ArrayType], result: ArrayType) -> int:
        return matmul.flops(types[1:3], result)


class _Restore(_Writing):
    """`restore(c, saved)`: put the old contents back."""

    effect = Effect.RESTORES

    def evaluate(self, *operands: Any, **params: Any) -> Any:
        del params
        c, saved = operands
        np.copyto(c, saved)
        return c

    def pull(
        self,
        needed: Sequence[bool],
        y_bar: Any,
        y: Any,
        operands: Sequence[Any],
        params: dict[str, Any],
    ) -> Sequence[Any]:
        del needed, y_bar, y, operands, params
        return (None, None)

    def flops(self, types: Sequence[ArrayType], result: ArrayType) -> int:
        del types, result
        return 0


matmul_into = _MatmulInto("matmul_into")
restore = _Restore("restore")

tested_in("rules/test_inplace.py", "copy", "matmul_into", "restore")

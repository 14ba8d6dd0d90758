"""Values that a native program declines, so that the interpreter refuses them."""

from collections.abc import Sequence

from pullback.backends.llvm.writing.function import Function
from pullback.backends.llvm.writing.lanes import Lanes
from pullback.backends.native.emission import Emission, Stored, emits
from pullback.ir.graph import Node
from pullback.rules.quotients import one_unless


@emits(one_unless)
def _emit_one_unless(
    emission: Emission, _node: Node, operands: Sequence[Stored], results: Sequence[Stored], _scratch: str
) -> None:
    (wrong,), (one,) = operands, results

    def build(function: Function, pointers: Sequence[str]) -> None:
        with function.when(Lanes(function, wrong.dtype, 1).load(pointers[0])):
            function.give(1)
        lanes = Lanes(function, one.dtype, 1)
        lanes.store(lanes.constant(1), pointers[1])

    emission.kernel(("one_unless", one.dtype.str), "one_unless", [wrong.pointer, one.pointer], build, can_fail=True)

"""Values that a native program declines, so that the interpreter raises the error."""

from collections.abc import Sequence

import numpy as np

from pullback.backends.llvm.builder.function import Function
from pullback.backends.llvm.builder.lanes import Lanes
from pullback.backends.native.emission import Emission, Site, emits
from pullback.ir.graph import Node
from pullback.rules.python_numbers import python_number
from pullback.rules.quotients import one_unless


@emits(one_unless)
def _emit_one_unless(emission: Emission, _node: Node, site: Site) -> None:
    (wrong,), (one,) = site.operands, site.results

    def build(function: Function, pointers: Sequence[str]) -> None:
        with function.when(Lanes(function, wrong.dtype, 1).load(pointers[0])):
            function.give(1)
        lanes = Lanes(function, one.dtype, 1)
        lanes.store(lanes.constant(1), pointers[1])

    emission.kernel(("one_unless", one.dtype.str), "one_unless", [wrong.pointer, one.pointer], build, can_fail=True)


#: Integers below it are exact in 64 bits, also where their size was computed in floats.
_LARGEST_INTEGER = 2.0**62


@emits(python_number)
def _emit_python_number(emission: Emission, _node: Node, site: Site) -> None:
    (value, size), (result,) = site.operands, site.results

    def build(function: Function, pointers: Sequence[str]) -> None:
        lanes, sizes = Lanes(function, value.dtype, 1), Lanes(function, size.dtype, 1)
        decline_large(lanes, sizes, sizes.load(pointers[1]))
        lanes.store(lanes.load(pointers[0]), pointers[2])

    places = [value.pointer, size.pointer, result.pointer]
    emission.kernel(("python_number", value.dtype.str), "python_number", places, build, can_fail=True)


def decline_large(lanes: Lanes, sizes: Lanes, size: str) -> None:
    """End the program where a number of Python is of a size that 64 bits do not hold."""
    most = sizes.constant(np.inf if lanes.is_float else _LARGEST_INTEGER)
    fits = sizes.compare("<", sizes.absolute(size), most)
    with lanes.function.when(lanes.function.value(f"xor i1 {fits}, true")):
        lanes.function.give(1)

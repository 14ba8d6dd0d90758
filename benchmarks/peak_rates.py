"""Limits of the processor, which kernels are compared with."""

import ctypes

import numpy as np
from benchmarks.turns import take_turns

from pullback.backends.llvm.builder.lanes import Lanes
from pullback.backends.llvm.builder.llvm_module import Module
from pullback.backends.native.linking import forced_width, load

_CHAINS = 12
_TURNS = 10_000


def fma_peak(bits: int, dtype: str) -> float:
    """Operations per second of multiplications and additions in registers that wait for nothing; one thread."""
    module = Module(bits)
    function = module.function("peak", [("ptr", "numbers")], internal=False)
    lanes = Lanes(function, np.dtype(dtype), bits // 8 // np.dtype(dtype).itemsize)
    sums = [function.slot(lanes.type, lanes.constant(0)) for _ in range(_CHAINS)]
    factor = lanes.load("%numbers")
    with function.loop(0, _TURNS):
        for slot in sums:
            function.store(lanes.type, lanes.mul_add(factor, factor, function.load(lanes.type, slot)), slot)
    for number, slot in enumerate(sums):
        lanes.store(function.load(lanes.type, slot), "%numbers", number * lanes.width)
    numbers = np.zeros(_CHAINS * lanes.width, dtype)
    with forced_width(bits):
        loaded = load(module.text())
    program = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(loaded.address("peak"))
    seconds = min(take_turns({"peak": lambda: program(numbers.ctypes.data)}, budget_s=0.3)["peak"])
    return 2 * _CHAINS * _TURNS * lanes.width / seconds

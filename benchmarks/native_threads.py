"""What the threads of native programs cost, and what they bring: the same kernel on one thread and on several, taking turns.

Three kernels: blocks that do nothing (the cost of a call alone), arithmetic in registers, and a pass over memory. For each the
process CPU time on several threads divided by that on one (1.00: nothing is wasted by waiting) and the wall time on one
divided by that on several (the gain, which means something only on a machine that does nothing else: the load is printed).

    python benchmarks/native_threads.py
    python benchmarks/native_threads.py --threads 8
"""

import argparse
import ctypes
import os
import statistics
import time
from collections.abc import Callable, Sequence

import numpy as np

import pullback as pb
from pullback.backends.native.emission import Emission
from pullback.backends.native.linking import Loaded, load
from pullback.backends.native.threads import counts
from pullback.backends.native.threads.sharing import part_of_block, share
from pullback.backends.native.writing.function import Function, Index
from pullback.backends.native.writing.module import Module

ROUNDS = 30
BLOCKS = 32
NUMBERS = 1 << 24
TURNS = 100_000  # of the loop in registers, in each block


def nothing(_function: Function, _pointers: Sequence[str], _block: Index) -> None:
    """An empty block."""


def in_registers(function: Function, pointers: Sequence[str], block: Index) -> None:
    """A chain of multiplications and additions: 8 doubles, as long as they are latent."""
    type_ = "<8 x double>"
    multiply_add = function.module.declare("llvm.fma.v8f64", type_, type_, type_, type_)
    value = function.slot(type_, "zeroinitializer")
    with function.loop(0, TURNS):
        now = function.load(type_, value)
        function.store(type_, function.call(type_, multiply_add, (type_, now), (type_, now), (type_, now)), value)
    function.store(type_, function.load(type_, value), function.element(pointers[1], block, type_), align=8)


def over_memory(function: Function, pointers: Sequence[str], block: Index) -> None:
    """The sum of a part of an array."""
    type_ = "<8 x double>"
    first, after = part_of_block(function, block, BLOCKS, NUMBERS // 8)
    total = function.slot(type_, "zeroinitializer")
    with function.loop(first, after, at_least_once=True) as index:
        read = function.load(type_, function.element(pointers[0], index, type_), align=8)
        function.store(type_, function.value(f"fadd {type_} {function.load(type_, total)}, {read}"), total)
    function.store(type_, function.load(type_, total), function.element(pointers[1], block, type_), align=8)


def program(build: Callable[[Function, Sequence[str], Index], None]) -> Loaded:
    """A program whose only kernel is this one."""
    module = Module(512)
    function = module.function("program", [("ptr", "x"), ("ptr", "y")], internal=False)
    share(Emission(module, function), "kernel", "kernel", ["%x", "%y"], BLOCKS, build)
    return load(module.text())


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=max(2, os.cpu_count() or 2))
    threads = parser.parse_args().threads
    x, y = np.ones(NUMBERS), np.empty(8 * BLOCKS)
    load_average = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    print(f"{threads} threads against one, {os.cpu_count()} processors{load_average}\n")
    print(f"{'kernel':16} {'one us':>10} {'CPU ratio':>10} {'wall gain':>10} {'joined':>7}")
    for build in (nothing, in_registers, over_memory):
        loaded = program(build)
        run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(loaded.address("program"))
        alone_us, cpu_ratios, gains = [], [], []
        joined = counts().joined
        for _ in range(ROUNDS):
            taken = []
            for number in (1, threads):
                with pb.threads(number):
                    cpu, wall = time.process_time(), time.perf_counter()
                    run(x.ctypes.data, y.ctypes.data)
                    taken.append((time.process_time() - cpu, time.perf_counter() - wall))
            (cpu_one, wall_one), (cpu_several, wall_several) = taken
            alone_us.append(cpu_one * 1e6)
            cpu_ratios.append(cpu_several / cpu_one)
            gains.append(wall_one / wall_several)
        ratio, gain = statistics.median(cpu_ratios), statistics.median(gains)
        came = (counts().joined - joined) / ROUNDS
        print(f"{build.__name__:16} {statistics.median(alone_us):10.1f} {ratio:10.2f} {gain:10.2f} {came:7.2f}")


if __name__ == "__main__":
    main()

"""Kernels on the CPU: the text of their phases, thread after thread, in whatever order.

A block gets shared memory full of garbage, and its threads run a phase one after the other; the next phase begins when all
have. So a value that another thread was to leave behind is garbage where a barrier is missing, and what depends on the order
of threads or blocks differs from run to run. Bytes that the text loads and stores are counted by parameter.
"""

import ctypes
import re
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from pullback.backends.cuda.kernels.kernel_text import Kernel, Kernels
from pullback.backends.cuda.kernels.ptx import arguments
from pullback.backends.native.linking import load

#: What memory holds that nobody has written yet: not a number in any format, and no small integer.
GARBAGE = 0xFF

_TYPES = {"i8": 1, "i32": 4, "i64": 8, "float": 4, "double": 8}
_VECTOR = re.compile(r"<(\d+) x (\w+)>")
_DEFINED = re.compile(r"\s*(%[\w.]+) = getelementptr \S+, ptr (%[\w.]+),")
_LOADED = re.compile(r"\s*%\w+ = load (<[^>]+>|\S+), ptr (%[\w.]+)")
_STORED = re.compile(r"\s*store (<[^>]+>|\S+) (?:<[^>]+>|\S+), ptr (%[\w.]+)")


def _garbage(nbytes: int) -> np.ndarray:
    return np.full(max(nbytes, 1), GARBAGE, np.uint8)


class SharedPieceError(AssertionError):
    """A kernel was given two pointers of one piece of memory, of which it writes by one."""


class Emulator:
    """The kernels of a nest as functions of the CPU."""

    def __init__(self, kernels: Kernels) -> None:
        self.kernels = kernels
        self._loaded = load(host_text(kernels))
        self._sweeps = {
            phase: ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, ctypes.c_int64, ctypes.c_int64)(
                self._loaded.address(f"{phase}_sweep")
            )
            for kernel in kernels.kernels
            for phase in kernel.phases
        }

    def run(
        self,
        pieces: Sequence[int],
        rng: np.random.Generator | None = None,
        memory: Callable[[int], np.ndarray] = _garbage,
    ) -> None:
        """Compute with pieces of memory at these addresses, in orders of threads and blocks that are drawn, if `rng` is there."""
        scratch = [memory(nbytes) for nbytes in self.kernels.scratch]
        addresses = [*pieces, *(piece.ctypes.data for piece in scratch)]
        for kernel in self.kernels.kernels:
            self.launch(kernel, [addresses[one.piece] for one in kernel.parameters], rng, memory)

    def launch(
        self,
        kernel: Kernel,
        parameters: Sequence[int],
        rng: np.random.Generator | None = None,
        memory: Callable[[int], np.ndarray] = _garbage,
    ) -> None:
        """Run one kernel with these addresses for its parameters."""
        for one, address in zip(kernel.parameters, parameters, strict=True):  # on a GPU they are promised to be apart
            if one.is_written and address and parameters.count(address) > 1:
                raise SharedPieceError(f"{kernel.name} has two pointers of one piece")
        table = np.array(parameters, np.int64)
        shared = memory(kernel.shared_bytes)
        for block in _order(kernel.grid.blocks, rng):
            shared[...] = GARBAGE
            for phase in kernel.phases:
                order = _order(kernel.grid.threads, rng)
                sweep = self._sweeps[phase]
                sweep(table.ctypes.data, shared.ctypes.data, order.ctypes.data, len(order), int(block))

    def moved(self, kernel: Kernel) -> list[tuple[int, int]]:
        """Bytes loaded and stored through each parameter of a kernel since it was made."""
        count = 2 * len(kernel.parameters)
        at = ctypes.CFUNCTYPE(ctypes.c_void_p)(self._loaded.address(f"{kernel.name}_moved_at"))()
        numbers = (ctypes.c_int64 * count).from_address(at)
        return [(numbers[2 * k], numbers[2 * k + 1]) for k in range(len(kernel.parameters))]


def _order(count: int, rng: np.random.Generator | None) -> np.ndarray:
    return np.arange(count, dtype=np.int32) if rng is None else rng.permutation(count).astype(np.int32)


def host_text(kernels: Kernels) -> str:
    """The text of phases, counting what it moves, with a loop over threads around each."""
    of_phase = {phase: kernel for kernel in kernels.kernels for phase in kernel.phases}
    counted = "\n".join(_counting(kernels.text, of_phase))
    return "\n".join([*map(_around, kernels.kernels), counted])


def _around(kernel: Kernel) -> str:
    count = len(kernel.parameters)
    moved = f"@{kernel.name}_moved"
    text = [f"{moved} = internal global [{2 * count} x i64] zeroinitializer, align 64"]
    text += [f"define ptr @{kernel.name}_moved_at() nounwind {{", f"  ret ptr {moved}", "}"]
    for phase in kernel.phases:
        text += [
            f"define void @{phase}_sweep(ptr %table, ptr %shared, ptr %order, i64 %count, i64 %number) nounwind {{",
            "entry:",
        ]
        for number in range(count):
            text.append(f"  %at{number} = getelementptr ptr, ptr %table, i64 {number}")
            text.append(f"  %p{number} = load ptr, ptr %at{number}")
        index = kernel.index_type
        text += [
            f"  %block = {'trunc i64 %number to i32' if index == 'i32' else 'add i64 %number, 0'}",
            "  br label %next",
            "next:",
            "  %turn = phi i64 [0, %entry], [%following, %next]",
            "  %place = getelementptr i32, ptr %order, i64 %turn",
            "  %drawn = load i32, ptr %place",
            f"  %thread = {'add i32 %drawn, 0' if index == 'i32' else 'zext i32 %drawn to i64'}",
            f"  call void @{phase}({arguments(kernel)})",
            "  %following = add i64 %turn, 1",
            "  %goes_on = icmp slt i64 %following, %count",
            "  br i1 %goes_on, label %next, label %after",
            "after:",
            "  ret void",
            "}",
        ]
    return "\n".join(text)


def _counting(text: str, of_phase: dict[str, Kernel]) -> Iterator[str]:
    """The lines of a text, with counts of the bytes that phases load and store by their parameters."""
    moved, roots, number = "", dict[str, int](), 0
    for line in text.splitlines():
        yield line
        if line.startswith("define"):
            name = line.partition("@")[2].partition("(")[0]
            kernel = of_phase.get(name)
            moved = f"@{kernel.name}_moved" if kernel else ""
            roots = {f"%p{k}": k for k in range(len(kernel.parameters))} if kernel else {}
            continue
        if not moved:
            continue
        if defined := _DEFINED.match(line):
            if defined[2] in roots:
                roots[defined[1]] = roots[defined[2]]
            continue
        for is_store, pattern in enumerate((_LOADED, _STORED)):
            found = pattern.match(line)
            if found and found[2] in roots:
                place = 8 * (2 * roots[found[2]] + is_store)
                yield f"  %counted{number}p = getelementptr i8, ptr {moved}, i64 {place}"
                yield f"  %counted{number} = load i64, ptr %counted{number}p"
                yield f"  %counted{number}n = add i64 %counted{number}, {_bytes_of(found[1])}"
                yield f"  store i64 %counted{number}n, ptr %counted{number}p"
                number += 1


def _bytes_of(type_: str) -> int:
    vector = _VECTOR.fullmatch(type_)
    return int(vector[1]) * _TYPES[vector[2]] if vector else _TYPES[type_]

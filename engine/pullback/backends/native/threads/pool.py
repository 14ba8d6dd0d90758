"""The threads of this process: they take blocks of work from callers, and sleep between.

    pullback_parallel_for(function, context, blocks)    calls function(context, block) for every block, on several threads

The caller takes blocks like the others and never waits for a thread to arrive: on a machine that is busy with other things it
does all of them itself, as if there were no pool. While one caller has the pool, others do their blocks alone, and so does a
block that asks for more threads. After a fork the child starts threads of its own. The threads run no Python and take no
signals.

A thread that has found no more blocks looks for the next call for `SPIN_NS` before it sleeps: a program is a sequence of
kernels, some of which take no longer than it takes to wake a thread. To offer blocks to threads that look costs the caller
about a microsecond; to those that sleep, a system call for each.

It is written in C (pool.c, and alone.c where there are no threads), and loaded as the LLVM IR that was made of it: kernels call it
without the interpreter, and there is no compiler at run time.
"""

import platform
import signal
import time
from pathlib import Path
from typing import Final

SPIN_NS: Final = 100_000
"""About what it takes to let a thread sleep and wake it again on a virtual machine; a few times that on the machine itself."""

_LOOKS: Final = 32
"""Looks at the state between two at the clock."""

#: Instructions that tell a processor that a loop waits for another one.
_PAUSES: Final = {
    "x86_64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "aarch64": ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"),
}
_PAUSES["AMD64"] = _PAUSES["x86_64"]
_PAUSES["arm64"] = _PAUSES["aarch64"]


def text(*, with_threads: bool) -> str:
    """The module; without threads it has the same functions, and the caller does everything."""
    if not with_threads:
        return _ir("alone")
    ir = _ir("pool")
    numbers = {"set_mask": signal.SIG_SETMASK, "clock": time.CLOCK_MONOTONIC, "looks": _LOOKS, "spin_ns": SPIN_NS}
    for name, number in numbers.items():
        ir = ir.replace(f"@{name} = external constant i32", f"@{name} = internal constant i32 {int(number)}")
    declare, pause = _PAUSES.get(platform.machine(), ("", ""))
    return ir.replace(
        "declare void @relax()", f"{declare}\ndefine internal void @relax() nounwind {{\n  {pause}\n  ret void\n}}"
    )


def _ir(name: str) -> str:
    return Path(__file__).with_name(f"{name}.ll").read_text(encoding="utf-8")

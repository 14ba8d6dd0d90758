"""Instructions of a call, counted by valgrind: a witness that no neighbour of the machine can sway (0.04 % of noise).

The worker runs under callgrind, which counts nothing until it is told to: two client requests, instructions that only
valgrind understands, compiled with LLVM around the calls. Valgrind shows programs a CPU without AVX-512, so NumPy, BLAS and
our native tier choose AVX2 there by themselves: a count is of the program as that CPU would run it, and compares with other
counts, never with times.
"""

import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pullback_runners.allocations.hooks import compiled_functions
from pullback_runners.errors import UsageError, VariantError
from pullback_runners.measurement.member import Member
from pullback_runners.measurement.worker_process import WorkerSettings, start_worker
from pullback_runners.workloads import Case

CALLS = 10
TOLERANCE = 0.001
"""Counts of two processes of one program differ by up to 0.04 %: hash seeds, addresses."""

TIMEOUT_FACTOR = 20.0
"""Everything takes that much longer there, imports and compilation too."""

_TOOL = "callgrind"
_OUT_FILE = "--callgrind-out-file="

# valgrind.h: the request in memory at %rax, its answer in %rdx; four rotations that together change nothing, and a no-op.
# callgrind.h: requests of the tool begin at 'C' << 24 | 'T' << 16.
_REQUESTS_IR = """
define void @request(i64 %code) {
  %arguments = alloca [6 x i64]
  store [6 x i64] zeroinitializer, ptr %arguments
  store i64 %code, ptr %arguments
  %answer = call i64 asm sideeffect "rolq $$3, %rdi\\0Arolq $$13, %rdi\\0Arolq $$61, %rdi\\0Arolq $$51, %rdi\\0Axchgq %rbx, %rbx",
    "={rdx},{rax},0,~{cc},~{memory}"(ptr %arguments, i64 0)
  ret void
}
"""
_START, _STOP = 0x43540004, 0x43540005


def refuse_without_valgrind() -> None:
    """Say what is missing before anything is measured."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        raise UsageError("instructions are counted on Linux with an x86-64 CPU only; leave --instructions out")
    if shutil.which("valgrind") is None:
        raise UsageError("instructions are counted by valgrind, which is not installed; apt-get install valgrind")


def valgrind_command(out_file: Path) -> Sequence[str]:
    """The words put before a worker's command to run it under valgrind."""
    return (
        "valgrind",
        f"--tool={_TOOL}",
        "--instr-atstart=no",
        "--quiet",
        # CPython and LLVM write machine code over their own.
        "--smc-check=all-non-file",
        f"{_OUT_FILE}{out_file}",
    )


def call_counted(call: Callable[[], Any]) -> None:
    """Call so often while valgrind counts; called without valgrind it counts nothing."""
    import ctypes  # noqa: PLC0415 - only here

    request = ctypes.CFUNCTYPE(None, ctypes.c_int64)(compiled_functions(_REQUESTS_IR, ["request"])["request"])
    request(_START)
    for _ in range(CALLS):
        call()
    request(_STOP)


def read_instructions(out_file: Path) -> int | None:
    """Instructions of one call, by callgrind's file; None if it counted nothing."""
    try:
        total = re.search(r"^totals: (\d+)", out_file.read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        return None
    return round(int(total[1]) / CALLS) if total and int(total[1]) else None


def count_instructions(case: Case, members: Iterable[Member], settings: WorkerSettings) -> dict[str, dict[str, Any]]:
    """The metric `instructions` by member, one after the other; null with the reason where a member cannot run there."""
    patient = replace(settings, timeout_s=settings.timeout_s * TIMEOUT_FACTOR)
    with tempfile.TemporaryDirectory(prefix="pullback-") as folder:
        return {
            member.name: _counted(case, member, patient, Path(folder) / f"{n}.out") for n, member in enumerate(members)
        }


def _counted(case: Case, member: Member, settings: WorkerSettings, out_file: Path) -> dict[str, Any]:
    worker = start_worker("instructions", case, member, settings, valgrind_command(out_file))
    try:
        worker.answer()
        worker.wait()
    except VariantError as error:
        return {"unit": "1", "value": None, "method": None, "reason": f"{error.kind} under valgrind: {error.message}"}
    finally:
        worker.end()
    count = read_instructions(out_file)
    if count is None:
        return {"unit": "1", "value": None, "method": None, "reason": "valgrind counted nothing"}
    return {"unit": "1", "value": count, "method": f"valgrind {_TOOL}", "tolerance": TOLERANCE}

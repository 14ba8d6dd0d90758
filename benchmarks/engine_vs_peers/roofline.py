"""Limits of the machine: fused multiply-adds in registers, and reading memory, by loops written in LLVM IR.

Each loop is the best case of its kind: many independent vectors, nothing but the one operation. They take turns with the
engines of a row like any other participant, so a fraction of a limit compares what was possible in the same milliseconds.
"""

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import llvmlite.binding as llvm
import numpy as np

READ_BYTES = 128 * 2**20
"""Several times a last-level cache."""

FMA_ROUNDS = 20_000
_CHAINS = 12
"""Independent accumulators: two units with a latency of four or five cycles are kept busy, and 16 registers suffice."""

_immortal: list[Any] = []


@dataclass(frozen=True)
class Limit:
    """A call and how much of its resource it uses: operations, or bytes."""

    call: Callable[[], Any]
    amount: float


def open_limit(resource: str) -> Limit:
    """Make the loop of a resource ready: `fma f4`, `fma f8` or `read`."""
    if resource == "read":
        return _read()
    dtype = resource.removeprefix("fma ")
    # Wider vectors run at another clock on some processors: the fastest width counts.
    loops = [_fma(dtype, lanes * 4 // np.dtype(dtype).itemsize) for lanes in _float_lanes()]
    return max(loops, key=_rate)


def _float_lanes() -> list[int]:
    features = llvm.get_host_cpu_features()
    return [lanes for lanes, needed in ((4, "sse2"), (8, "avx2"), (16, "avx512f")) if features.get(needed)] or [4]


def _rate(limit: Limit) -> float:
    from time import process_time_ns  # noqa: PLC0415 - only here

    def once() -> float:
        start = process_time_ns()
        limit.call()
        return limit.amount / max(process_time_ns() - start, 1)

    return max(once() for _ in range(5))


def _fma(dtype: str, lanes: int) -> Limit:
    element, suffix = ("float", "f32") if dtype == "f4" else ("double", "f64")
    vector = f"<{lanes} x {element}>"
    chains = range(_CHAINS)
    fma = f"@llvm.fma.v{lanes}{suffix}"
    lines = [
        f"declare {vector} {fma}({vector}, {vector}, {vector})",
        "define void @loop(i64 %n, ptr %numbers, ptr %out) {",
    ]
    lines += ["entry:", f"  %a = load {vector}, ptr %numbers, align 4"]
    lines += [f"  %end = getelementptr {vector}, ptr %numbers, i64 1", f"  %b = load {vector}, ptr %end, align 4"]
    lines += ["  br label %body", "body:", "  %i = phi i64 [ 0, %entry ], [ %next, %body ]"]
    lines += [f"  %x{c} = phi {vector} [ %b, %entry ], [ %y{c}, %body ]" for c in chains]
    lines += [f"  %y{c} = call {vector} {fma}({vector} %x{c}, {vector} %a, {vector} %b)" for c in chains]
    lines += [
        "  %next = add i64 %i, 1",
        "  %more = icmp ult i64 %next, %n",
        "  br i1 %more, label %body, label %done",
        "done:",
    ]
    for c in chains:
        lines += [f"  %p{c} = getelementptr {vector}, ptr %out, i64 {c}", f"  store {vector} %y{c}, ptr %p{c}, align 4"]
    loop = _compiled("\n".join([*lines, "  ret void", "}"]), ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
    # x * 0.5 + 1 stays at two: neither overflow nor numbers below the normal ones.
    numbers = np.repeat(np.array([0.5, 1.0], dtype), lanes)
    out = np.empty(lanes * _CHAINS, dtype)
    _immortal.extend((numbers, out))
    return Limit(lambda: loop(FMA_ROUNDS, numbers.ctypes.data, out.ctypes.data), 2.0 * lanes * _CHAINS * FMA_ROUNDS)


def _read() -> Limit:
    lanes, chains = max(_float_lanes()) // 2, range(8)
    vector = f"<{lanes} x i64>"
    lines = ["define void @loop(i64 %n, ptr %data, ptr %out) {", "entry:", "  br label %body", "body:"]
    lines += ["  %i = phi i64 [ 0, %entry ], [ %next, %body ]"]
    lines += [f"  %x{c} = phi {vector} [ zeroinitializer, %entry ], [ %y{c}, %body ]" for c in chains]
    for c in chains:
        lines += [f"  %at{c} = add i64 %i, {c}", f"  %p{c} = getelementptr {vector}, ptr %data, i64 %at{c}"]
        lines += [f"  %v{c} = load {vector}, ptr %p{c}, align 16", f"  %y{c} = xor {vector} %x{c}, %v{c}"]
    lines += [f"  %next = add i64 %i, {len(chains)}", "  %more = icmp ult i64 %next, %n"]
    lines += ["  br i1 %more, label %body, label %done", "done:"]
    for c in chains:
        lines += [
            f"  %q{c} = getelementptr {vector}, ptr %out, i64 {c}",
            f"  store {vector} %y{c}, ptr %q{c}, align 16",
        ]
    loop = _compiled("\n".join([*lines, "  ret void", "}"]), ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
    data = np.ones(READ_BYTES // 8, np.int64)
    out = np.empty(lanes * len(chains), np.int64)
    _immortal.extend((data, out))
    return Limit(lambda: loop(READ_BYTES // (8 * lanes), data.ctypes.data, out.ctypes.data), float(READ_BYTES))


def _compiled(text: str, *arguments: Any) -> Callable[..., Any]:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(text)
    module.verify()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=3
    )
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    _immortal.append(engine)
    return ctypes.CFUNCTYPE(None, *arguments)(engine.get_function_address("loop"))

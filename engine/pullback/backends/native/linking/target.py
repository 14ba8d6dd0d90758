"""The processor that programs are written for: this one, or a narrower one that it can stand in for.

Vectors are 512 bits wide where the processor has AVX-512 (F and VL), 256 with AVX2 and FMA, and 128 on all others (NEON on
ARM, SSE elsewhere). Writers of kernels ask `host_target()`; tests narrow it with `forced_width`, which takes the features of
the wider vectors away, so that what a narrower processor would run is what runs.
"""

import contextlib
import contextvars
import functools
import platform
from collections.abc import Iterator
from dataclasses import replace

from pullback.dataclass import dataclass

SUPPORTED_MACHINES = ("x86_64", "amd64", "aarch64", "arm64")

_GENERIC_X86 = {256: "x86-64-v3", 128: "x86-64-v2"}  # AVX2 with FMA; SSE 4.2 without FMA


@dataclass(frozen=True)
class Target:
    """A processor to write for."""

    cpu: str
    """LLVM's name of it."""
    features: str
    """LLVM's list of what it has (+) and lacks (-), beyond what the name implies."""
    vector_bits: int
    """Width of its vectors: 512, 256 or 128."""
    registers: int
    """The number of its vector registers."""
    fma: bool
    """Multiplies and adds in one instruction; where it does not, `llvm.fma` is right but slow (a call per number)."""


def host_target() -> Target:
    """The processor that programs are written for: this machine's, or the one that `forced_width` sets."""
    return _forced.get() or _host()


@contextlib.contextmanager
def forced_width(bits: int) -> Iterator[Target]:
    """Write for a processor with vectors of this width, in this thread, inside the block."""
    if bits not in available_widths():
        raise ValueError(f"This processor has vectors of {available_widths()} bits, not of {bits}.")
    host = _host()
    target = host if bits == host.vector_bits else _x86(_GENERIC_X86[bits], "", bits)
    token = _forced.set(target)
    try:
        yield target
    finally:
        _forced.reset(token)


def available_widths() -> tuple[int, ...]:
    """The vector widths that programs can be forced to here, widest first."""
    widest = _host().vector_bits
    return tuple(bits for bits in (512, 256, 128) if bits <= widest) if _is_x86() else (widest,)


_forced: contextvars.ContextVar[Target | None] = contextvars.ContextVar("forced target", default=None)


@functools.cache
def _host() -> Target:
    import llvmlite.binding as llvm  # noqa: PLC0415 - 90 ms that only native programs pay

    cpu = llvm.get_host_cpu_name()
    features = llvm.get_host_cpu_features()
    if not _is_x86():
        return Target(cpu, features.flatten(), vector_bits=128, registers=32, fma=True)
    if all(features.get(name) for name in ("avx512f", "avx512vl")):
        return _x86(cpu, features.flatten(), 512)
    if all(features.get(name) for name in ("avx2", "fma")):
        return _x86(cpu, features.flatten(), 256)
    # AVX without AVX2 is written for as SSE: half of its vectors have no integer instructions.
    return replace(_x86(cpu, features.flatten(), 128), fma=bool(features.get("fma")))


def _x86(cpu: str, features: str, bits: int) -> Target:
    return Target(cpu, features, vector_bits=bits, registers=32 if bits == 512 else 16, fma=bits >= 256)


def _is_x86() -> bool:
    return platform.machine().lower() in ("x86_64", "amd64")

"""Availability of the native tier on this machine, and the reason where it is not available.

Nothing is imported here before it is needed: `import pullback` stays free of llvmlite, and where the answer is no the
interpreter runs everything.
"""

import ctypes
import functools
import os
import platform
import re

from pullback.backends.native.linking import load
from pullback.backends.native.linking.target import SUPPORTED_MACHINES

OLDEST_LLVMLITE = (0, 46)  # LLVM 20: the first whose intrinsics and new pass manager are the ones we write for
NEWEST_LLVMLITE = (0, 51)  # exclusive: a later LLVM may read our text otherwise; raised after its tests have passed


def is_available() -> bool:
    """True if programs can be native here and the tier is not switched off."""
    return why_not() is None


def why_not() -> str | None:
    """The reason why programs stay with the interpreter, as part of a sentence; None where they can be native."""
    if os.environ.get("PULLBACK_NATIVE", "").strip() == "0":
        return "PULLBACK_NATIVE=0 switches the native tier off"
    return _why_never()


@functools.cache
def _why_never() -> str | None:
    """The part of the reason that no environment variable changes, determined once."""
    if platform.machine().lower() not in SUPPORTED_MACHINES:
        return f"no native programs are written for processors of kind {platform.machine()!r}"
    try:
        import llvmlite  # noqa: PLC0415 - its version alone; to ask importlib.metadata for it takes 25 ms
    except ModuleNotFoundError:
        return "llvmlite is not installed; install it to have native programs"
    version = llvmlite.__version__
    if not OLDEST_LLVMLITE <= _leading_numbers(version) < NEWEST_LLVMLITE:
        oldest, newest = (".".join(map(str, bound)) for bound in (OLDEST_LLVMLITE, NEWEST_LLVMLITE))
        return f"llvmlite {version} is outside the versions that are known to work, {oldest} up to before {newest}"
    try:
        import llvmlite.binding as llvm  # noqa: PLC0415 - 90 ms that only native programs pay

        llvm.check_jit_execution()
        works = _first_program_runs()
    except (ImportError, OSError, RuntimeError, ValueError) as failure:
        return f"llvmlite {version} does not work here: {str(failure).strip().rstrip('.')}"
    return None if works else f"llvmlite {version} does not work here: a first program computes something else"


def _first_program_runs() -> bool:
    """True if a small program can be compiled, linked and run: this kind of machine may never have been tested."""
    loaded = load("define double @half(double %x) {\n  %y = fmul double %x, 0.5\n  ret double %y\n}\n")
    half = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(loaded.address("half"))
    computed: float = half(3.0)
    return computed == 1.5


def _leading_numbers(version: str) -> tuple[int, int]:
    """Major and minor number of a version: (0, 50) for "0.50.0" and "0.50rc1", (-1, 0) for text that is no version."""
    found = re.match(r"(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else (-1, 0)

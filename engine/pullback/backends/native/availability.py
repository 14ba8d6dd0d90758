"""Whether programs can be made native on this machine, and if not, why.

Nothing is imported here before it is asked for: `import pullback` stays free of llvmlite, and where the answer is no the
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
    """Programs can be native here, and nobody switched that off."""
    return why_not() is None


def why_not() -> str | None:
    """Why programs stay with the interpreter, to be part of a sentence; None where they can be native."""
    if os.environ.get("PULLBACK_NATIVE", "").strip() == "0":
        return "PULLBACK_NATIVE=0 switches the native tier off"
    return _why_never()


@functools.cache
def _why_never() -> str | None:
    """The part of it that no environment variable changes, found out once."""
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
    """True if the whole way from text to a call works on this machine, of which there are kinds that nobody tried."""
    loaded = load("define double @half(double %x) {\n  %y = fmul double %x, 0.5\n  ret double %y\n}\n")
    half = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(loaded.address("half"))
    computed: float = half(3.0)
    return computed == 1.5


def _leading_numbers(version: str) -> tuple[int, int]:
    """Of "0.50.0" and of "0.50rc1" (0, 50); what is no version is older than all that are."""
    found = re.match(r"(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else (-1, 0)

"""Builds the native allocation counter into the package where a C compiler is; an install never fails for want of one."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ALLOCATIONS = Path("runners/pullback_runners/allocations")
SOURCE = ALLOCATIONS / "native_counter.c"
LIBRARY = ALLOCATIONS / "_native_counter.so"


class NativeCounterHook(BuildHookInterface[Any]):
    """Compile `native_counter.c` before the wheel, editable or not, is put together."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - hatchling's signature
        """Compile, and if that worked, ship the library in a wheel for this platform only."""
        library = Path(self.root) / LIBRARY
        library.unlink(missing_ok=True)
        complaint = compile_counter(Path(self.root) / SOURCE, library)
        if complaint:
            self.app.display_warning(f"native allocations will not be counted: {complaint}")
            return
        build_data["artifacts"].append(f"/{LIBRARY}")
        build_data["pure_python"] = False
        # Any Python of this platform: the library does not know Python.
        build_data["tag"] = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"


def compile_counter(source: Path, library: Path) -> str | None:
    """Compile the counter, or return in one line why it was not."""
    if sys.platform != "linux":
        return f"{sys.platform} has no LD_PRELOAD of glibc's malloc"
    compiler = next(filter(None, map(shutil.which, [os.environ.get("CC", "cc"), "gcc", "clang"])), None)
    if compiler is None:
        return "no C compiler was found (cc, gcc, clang or $CC)"
    command = [compiler, "-O2", "-fPIC", "-shared", "-fno-builtin", "-o", str(library), str(source)]
    try:
        compiled = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{compiler}: {error}"
    if compiled.returncode != 0:
        library.unlink(missing_ok=True)
        return f"{compiler} said: {(compiled.stderr.strip().splitlines() or ['nothing'])[0]}"
    return None

"""Paths of this machine that every sandbox can read: system programs, Python and Pullback, but no files of users."""

import os
import shutil
import sys
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/gnu/store", "/sys")
_SETTINGS = (
    *("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "timezone", "mime.types"),
    *("passwd", "group", "nsswitch.conf", "ssl", "pki", "ca-certificates", "crypto-policies", "fonts", "OpenCL"),
    *("pip.conf", "uv"),
)
_PACKAGES = ("pullback", "pullback_runners")
_MIG_MINORS = Path("/proc/driver/nvidia-caps/mig-minors")


def system_places() -> list[Path]:
    """System paths: programs, libraries, some settings, descriptions of the hardware."""
    settings = [f"/etc/{name}" for name in _SETTINGS]
    return [path for each in (*_SYSTEM, *settings) if (path := Path(each)).exists()]


def python_places() -> list[Path]:
    """Paths of this Python, of our packages and of uv, with and without symbolic links resolved."""
    results = [Path(each) for each in (sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix)]
    results += [Path(each) for each in sys.path if Path(each).is_absolute() and Path(each).exists()]
    results += [Path(spec.origin).parent for name in _PACKAGES if (spec := find_spec(name)) and spec.origin]
    results += [Path(tool) for tool in [shutil.which("uv")] if tool]
    return [each for path in results for each in (path, Path(os.path.realpath(path)))]


def device_nodes(
    gpu: int, part: tuple[int, int] | None, dev: Path = Path("/dev"), minors: Path = _MIG_MINORS
) -> list[Path]:
    """The device nodes that a process opens to compute on one of NVIDIA's GPUs, given by its minor number, and those of no other one.

    `part` is the GPU instance and the compute instance of a slice of MIG; other slices have capabilities of their own
    (docs.nvidia.com/datacenter/tesla/mig-user-guide, "Device Nodes and Capabilities"; last checked: 2026-11-30).
    """
    nodes = [dev / "nvidiactl", *sorted(dev.glob("nvidia-uvm*")), dev / f"nvidia{gpu}"]
    if part is not None and minors.exists():
        numbers = dict(line.split() for line in minors.read_text(encoding="ascii").splitlines())
        instance = f"gpu{gpu}/gi{part[0]}"
        wanted = (f"{instance}/access", f"{instance}/ci{part[1]}/access")
        nodes += [dev / f"nvidia-caps/nvidia-cap{numbers.get(access)}" for access in wanted]
    return [node for node in nodes if node.exists()]


def without_inner(paths: Iterable[Path]) -> list[Path]:
    """The paths without those that lie in another one, shortest first."""
    results: list[Path] = []
    for path in sorted(set(paths), key=lambda each: (len(each.parts), str(each))):
        if not any(path.is_relative_to(each) for each in results):
            results.append(path)
    return results

"""Description of the machine: facts for people, its host, and a fingerprint of the hardware alone, which is its class."""

import hashlib
import importlib.metadata
import json
import platform
import re
import socket
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from pullback_runners.machine.host import host_id
from pullback_runners.machine.nvidia import query_driver
from pullback_runners.machine.nvml import Device

GIB = 2**30
_KINDS_APART = "; "
PEERS = ("autograd", "jax", "jaxlib", "numba", "torch")
"""Distributions of the peers. Their adapters are not asked: those import our engine, and a worker chooses which one that is."""


def describe_machine(
    name: str | None = None, *, beside: Path | None = None, device: Device | None = None
) -> dict[str, Any]:
    """Return the machine as a report writes it: host, fingerprint, name and facts; `beside` as in `host_id`.

    A `device` that is measured on stands in the place of all GPUs, where it is a slice or they are of several kinds: it is a class of its own.

    The fingerprint is the class: it is made of what only another kind of machine changes. A kernel, a Python or a NumPy may be updated, and
    frequency and bogomips differ from one boot to the next: these are facts, shown beside a point, and split no series.
    """
    gpu, driver = gpu_facts(query_driver("gpu=name,memory.total,driver_version"))
    if device is not None and (device.is_slice or _KINDS_APART in (gpu or "")):
        gpu = f"{device.name}, {round(device.memory_bytes / GIB)} GiB"
    hardware = {
        "architecture": platform.machine(),
        "cpu": _cpu_model(),
        "cores": psutil.cpu_count(logical=False),
        "cpus": psutil.cpu_count(),
        # The kernel keeps some for itself and how much varies: whole GiB are the machine's.
        "memory_gib": round(psutil.virtual_memory().total / GIB),
        "gpu": gpu,
    }
    facts = {
        **hardware,
        "system": platform.system(),
        "kernel": platform.release(),
        "libc": "-".join(platform.libc_ver()) or None,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "numpy": np.__version__,
        "scipy": importlib.metadata.version("scipy"),
        "llvmlite": importlib.metadata.version("llvmlite"),
        "blas": _blas(),
        **_versions(PEERS),
        "driver": driver,
    }
    return {
        "host": host_id(beside),
        "fingerprint": fingerprint(hardware),
        "name": name or socket.gethostname(),
        "facts": facts,
    }


def gpu_facts(listed: list[list[str]] | None) -> tuple[str | None, str | None]:
    """The GPUs, each kind with its number and memory, and their driver's version; None without any.

    A fingerprint is asked for where nothing is measured, too, so that only the driver is asked: what an engine sees depends
    on the engine.
    """
    known = [row for row in listed or () if len(row) == 3 and row[1].isdigit()]
    kinds = Counter(f"{name}, {round(int(mebibytes) / 1024)} GiB" for name, mebibytes, _ in known)
    named = _KINDS_APART.join(kind if number == 1 else f"{number} x {kind}" for kind, number in kinds.items())
    return named or None, known[0][2] if known else None


def fingerprint(hardware: dict[str, Any]) -> str:
    """Return sixteen hexadecimal digits that stand for this hardware."""
    return hashlib.sha256(json.dumps(hardware, sort_keys=True).encode()).hexdigest()[:16]


def _versions(distributions: Iterable[str]) -> dict[str, str]:
    """Versions of the installed ones."""
    results = {}
    for name in distributions:
        with suppress(importlib.metadata.PackageNotFoundError):
            results[name] = importlib.metadata.version(name)
    return results


def _cpu_model() -> str:
    """Name of the CPU; `platform.processor` is empty on most Linux systems."""
    try:
        cpuinfo = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or platform.machine()
    return cpu_model_of(cpuinfo) or platform.processor() or platform.machine()


def cpu_model_of(cpuinfo: str) -> str | None:
    """Model, family and stepping of the first CPU in a /proc/cpuinfo; cloud hosts call very different CPUs by one name."""
    fields = dict(re.findall(r"^([^\t:]+)\t*: (.*)$", cpuinfo.split("\n\n", maxsplit=1)[0], re.MULTILINE))
    name = fields.get("model name") or fields.get("CPU part")
    if name is None:
        return None
    numbers = [fields[key] for key in ("cpu family", "model", "stepping") if key in fields]
    return f"{name.strip()} ({'/'.join(numbers)})" if numbers else name.strip()


def _blas() -> str | None:
    configuration: Any = np.show_config(mode="dicts") or {}
    blas = configuration.get("Build Dependencies", {}).get("blas", {})
    return f"{blas['name']} {blas.get('version', '')}".strip() if "name" in blas else None

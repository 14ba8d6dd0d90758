"""The distribution as a whole: import cost and what is in the tree."""

import importlib.metadata
import subprocess
import sys
import tomllib
from pathlib import Path

from pip._vendor.packaging.requirements import Requirement
from pip._vendor.packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]


def _import_seconds(statement: str) -> float:
    """Process CPU time of importing in a fresh interpreter, best of five (imports only ever get slower by noise)."""
    program = f"import time; start = time.process_time(); {statement}; print(time.process_time() - start)"
    return min(float(subprocess.check_output([sys.executable, "-c", program])) for _ in range(5))


def test_importing_pullback_costs_little_more_than_importing_numpy():
    assert _import_seconds("import pullback") - _import_seconds("import numpy") < 0.150


def test_importing_pullback_leaves_scipy_llvmlite_and_torch_alone():
    program = "import sys, pullback; print({'scipy', 'llvmlite', 'torch'} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "set()"


def test_importing_the_runners_leaves_llvmlite_torch_and_nvidias_binding_alone():
    program = (
        "import sys, pullback_runners, pullback_runners.machine, pullback_runners.measurement.device; "
        "print({'llvmlite', 'torch', 'pynvml'} & set(sys.modules))"
    )
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "set()"


def test_the_extra_gpu_is_pytorch_and_nvidias_binding_and_the_lock_has_neither():
    """No CuPy, no nvmath; which PyTorch fits depends on the driver of a machine, and it is a gigabyte."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert {Requirement(line).name for line in extras["gpu"]} == {"torch", "nvidia-ml-py"}
    locked = (ROOT / "requirements.lock").read_text().splitlines()
    names = {line.partition("==")[0] for line in locked if "==" in line}
    assert "numpy" in names
    assert not [name for name in names if name.startswith(("torch", "nvidia", "cupy", "triton"))]


_LOADED = """
import sys
import pullback_cli.app, pullback_cli.supervision.foreground
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


def _closure(requirement: Requirement, found: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """(distribution, extra) of all that an install of the requirement brings, itself included."""
    for extra in ("", *requirement.extras):
        key = (canonicalize_name(requirement.name), extra)
        if key in found:
            continue
        found.add(key)
        for line in importlib.metadata.distribution(requirement.name).requires or ():
            wanted = Requirement(line)
            if wanted.marker is None or wanted.marker.evaluate({"extra": extra}):
                _closure(wanted, found)
    return found


def test_the_extra_service_brings_every_distribution_that_up_imports():
    loaded = subprocess.check_output([sys.executable, "-c", _LOADED], text=True).split()
    owners = importlib.metadata.packages_distributions()
    imported = {canonicalize_name(each) for name in loaded for each in owners.get(name, ())[:1]}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found: set[tuple[str, str]] = {("pullback", "")}
    for line in (*project["dependencies"], *project["optional-dependencies"]["service"]):
        wanted = Requirement(line)
        if wanted.marker is None or wanted.marker.evaluate({"extra": ""}):
            _closure(wanted, found)
    brought = {name for name, _ in found}
    assert "sqlalchemy" in imported
    assert imported - brought <= {"pip", "setuptools"}

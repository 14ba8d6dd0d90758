"""The distribution as a whole: import cost and what is in the tree."""

import subprocess
import sys


def _import_seconds(statement: str) -> float:
    """Process CPU time of importing in a fresh interpreter, best of five (imports only ever get slower by noise)."""
    program = f"import time; start = time.process_time(); {statement}; print(time.process_time() - start)"
    return min(float(subprocess.check_output([sys.executable, "-c", program])) for _ in range(5))


def test_importing_pullback_costs_little_more_than_importing_numpy():
    assert _import_seconds("import pullback") - _import_seconds("import numpy") < 0.150


def test_importing_pullback_leaves_scipy_llvmlite_and_torch_alone():
    program = "import sys, pullback; print({'scipy', 'llvmlite', 'torch'} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "set()"

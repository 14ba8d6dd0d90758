"""The counters are imported beside NumPy 1 too, which an environment that a commit asks for may hold."""

import subprocess
import sys

AS_NUMPY_1 = "import numpy; numpy.__version__ = '1.26.4'; del numpy._core; import pullback_runners.allocations"
"""NumPy 1 has its C API in `numpy.core`, where NumPy 2 still keeps a module of that name."""


def test_counters_are_imported_where_numpy_has_no_private_core():
    done = subprocess.run([sys.executable, "-c", AS_NUMPY_1], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

"""The engine is imported beside NumPy 2.1 too, which lacks some of the functions that it translates."""

import subprocess
import sys

AS_NUMPY_2_1 = 'import numpy as np; vars(np).pop("matvec", None); vars(np).pop("vecmat", None); import pullback'


def test_the_engine_is_imported_without_the_functions_that_numpy_2_2_added():
    done = subprocess.run([sys.executable, "-c", AS_NUMPY_2_1], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

import os
import subprocess
import sys
import textwrap

import pytest

PREAMBLE = """
import ctypes
import pullback as pb
from pullback.backends.native.linking import load, symbols
from pullback.backends.native.threads import blas, library
"""


def in_fresh_process(program, **variables):
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    output = subprocess.check_output(
        [sys.executable, "-c", PREAMBLE + textwrap.dedent(program)], text=True, env={**environment, **variables}
    )
    return output.split()


def test_the_library_is_loaded_once_by_many_threads():
    output = in_fresh_process("""
        import threading
        found = []
        threads = [threading.Thread(target=lambda: found.append(library.library())) for _ in range(8)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        print(len(set(map(id, found))))
    """)
    assert output == ["1"]


BLAS = """
module = symbols.scipy_module("scipy.linalg.cython_blas")
get, change = (blas.threads_function(module, verb) for verb in ("get", "set"))
if get is None:
    print("skip")
    raise SystemExit
get, change = ctypes.CFUNCTYPE(ctypes.c_int)(get), ctypes.CFUNCTYPE(None, ctypes.c_int)(change)
loaded = load("declare void @pullback_blas_enter()\\ndefine void @f() {\\n  call void @pullback_blas_enter()\\n  ret void\\n}\\n")
change(3)
ctypes.CFUNCTYPE(None)(loaded.address("f"))()
print(get())
ctypes.CFUNCTYPE(None)(library.library().address("pullback_blas_leave"))()
print(get())
"""


def test_scipys_blas_has_one_thread_while_a_program_is_inside():
    output = in_fresh_process(BLAS)
    if output == ["skip"]:
        pytest.skip("SciPy has another BLAS")
    assert output == ["1", "3"]


def test_scipy_is_not_imported_for_the_pool():
    assert in_fresh_process("import sys; library.library(); print('scipy' in sys.modules)") == ["False"]

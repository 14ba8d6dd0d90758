import os
import subprocess
import sys
import textwrap

import pytest

from pullback.backends.native.threads import thread_limit, use_threads


def in_fresh_process(program, **variables):
    program = (
        "from pullback.backends.native.threads import *\nfrom pullback.backends.native.threads import library\n"
        + (textwrap.dedent(program))
    )
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    output = subprocess.check_output([sys.executable, "-c", program], text=True, env={**environment, **variables})
    return output.split()


def test_a_chosen_number_holds_inside_the_block():
    before = thread_limit()
    with use_threads(5):
        assert thread_limit() == 5
        with use_threads(2):
            assert thread_limit() == 2
        assert thread_limit() == 5
    assert thread_limit() == before


@pytest.mark.parametrize("threads", [0, -3])
def test_less_than_one_thread_is_refused(threads):
    with pytest.raises(ValueError, match=f"not on {threads}"), use_threads(threads):
        pass


def test_the_chosen_number_holds_whatever_is_found():
    assert in_fresh_process(
        "print(thread_limit())", PULLBACK_NUM_THREADS="7", OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1"
    ) == ["7"]


def test_limits_of_the_environment_hold():
    assert in_fresh_process("print(thread_limit())", OPENBLAS_NUM_THREADS="1") == ["1"]


LIMITING_NUMPY = """
import ctypes
import numpy._core._multiarray_umath as numpy
from pullback.backends.native.threads import blas
change = library._threads_function(numpy, "set")
if change is None or thread_limit() < 2:
    print("skip")
else:
    before = thread_limit()
    ctypes.CFUNCTYPE(None, ctypes.c_int)(change)(1)  # what threadpoolctl calls
    print(before > 1, thread_limit())
    with use_threads(2):
        print(thread_limit())
    print(thread_limit())
"""


def test_a_limit_set_on_numpys_blas_while_running_holds():
    output = in_fresh_process(LIMITING_NUMPY)
    if output == ["skip"]:
        pytest.skip("NumPy has another BLAS, or there is one processor")
    assert output == ["True", "1", "2", "1"]


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
import ctypes
from pullback.backends.native.linking import load, symbols
module = symbols.scipy_module("scipy.linalg.cython_blas")
get, change = (library._threads_function(module, verb) for verb in ("get", "set"))
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
    assert in_fresh_process("import sys; thread_limit(); print('scipy' in sys.modules)") == ["False"]

"""Native programs read and write nothing beside what they are given: they run with closed pages around every array.

Each group of programs runs in a process of its own, and the last name that it prints is that of the one that ended it.
Every twelfth program is run for every change, the whole by `make test-long`; `PULLBACK_FENCED_SIZES=20 pytest -m long
tests/engine/native/test_fences.py` takes more sizes of each program, up to all.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.engine.native.fences.memory import PAGE, fenced_copy, fenced_empty

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pages are closed by mprotect")

SIZES = os.environ.get("PULLBACK_FENCED_SIZES", "2")
LONG = pytest.mark.long


def _in_a_process(*command):
    return subprocess.run(
        [sys.executable, "-X", "faulthandler", *command],
        cwd=Path(__file__).parents[3],
        env={**os.environ, "PULLBACK_CACHE": "0"},  # memory is laid otherwise there, for which nobody else has use
        capture_output=True,
        text=True,
        check=False,
    )


WHOLE = ["rules 0 2", "rules 1 2", "workloads", "golden", "sizes 0 2", "sizes 1 2", "random"]


@pytest.mark.parametrize("group", ["all 0 12", *(pytest.param(group, marks=LONG) for group in WHOLE)])
def test_programs_stay_inside_of_what_they_are_given(group):
    done = _in_a_process("-m", "tests.engine.native.fences", *group.split(), "--sizes", SIZES)
    last = done.stdout.splitlines()[-1:]
    assert last, done.stderr
    assert last[0].startswith("done"), f"{last[0]} ended with {done.returncode}: {done.stderr[-3000:]}"
    assert int(last[0].split()[1]) > 10  # programs were run


@pytest.mark.parametrize(
    "group", ["all 1 48", pytest.param("golden", marks=LONG), pytest.param("sizes 0 6", marks=LONG)]
)
def test_blocks_of_kernels_stay_inside_of_what_they_are_given(group):
    done = _in_a_process("-m", "tests.engine.native.fences", *group.split(), "--sizes", SIZES, "--cut")
    last = done.stdout.splitlines()[-1:]
    assert last, done.stderr
    assert last[0].startswith("done"), f"{last[0]} ended with {done.returncode}: {done.stderr[-3000:]}"


@pytest.mark.parametrize("touched", ["x[x.size]", "x[-1]"])
@pytest.mark.parametrize("at_end", [True, False])
def test_a_fence_ends_a_process_that_touches_it(touched, at_end):
    program = (
        "import ctypes, numpy as np; from tests.engine.native.fences.memory import fenced_copy;"
        f"y = fenced_copy(np.ones({PAGE // 8}), at_end={at_end});"
        "x = type('X', (), {'size': y.size, '__getitem__': lambda self, k: ctypes.c_double.from_address(y.ctypes.data + 8 * k)})();"
        f"print({touched}.value)"
    )
    assert _in_a_process("-c", program).returncode != 0


@pytest.mark.parametrize("at_end", [True, False])
def test_fenced_copies_lie_as_what_they_are_copies_of(at_end):
    x = np.arange(24.0).reshape(2, 3, 4)
    for view in (x, x[:, ::-2], x.T, x[1:, :, 1::2], np.broadcast_to(x[0], (5, 3, 4)), x[0, 0, 0]):
        copy = fenced_copy(np.asarray(view), at_end=at_end)
        np.testing.assert_array_equal(copy, view)
        assert copy.strides == np.asarray(view).strides
    assert np.isnan(fenced_empty((3,), "f8", at_end=at_end)).all()

"""`pb.threads`, in this process and in fresh ones with other environments."""

import ctypes
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import pullback as pb
from pullback.backends.native.threads import available_processors, counts, setting


def in_fresh_process(program, **variables):
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, "-c", f"import pullback as pb\n{program}"],
        env={**environment, **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split(), done.stderr


@pytest.fixture(autouse=True)
def one_thread_afterwards():
    before = setting.current()
    pb.threads(1)
    yield
    pb.threads(before)


def test_without_being_told_it_is_one_thread():
    assert in_fresh_process("print(pb.threads())") == (["1"], "")
    assert in_fresh_process("print(pb.threads())", OMP_NUM_THREADS="4", OPENBLAS_NUM_THREADS="4") == (["1"], "")


def test_the_environment_allows_more():
    assert in_fresh_process("print(pb.threads())", PULLBACK_NUM_THREADS=" 7 ", OMP_NUM_THREADS="1") == (["7"], "")


@pytest.mark.parametrize("value", ["0", "-2", "2.5", "many", "4,2", "1000000"])
def test_an_environment_that_cannot_be_understood_is_one_thread_and_a_warning(value):
    output, errors = in_fresh_process("print(pb.threads())", PULLBACK_NUM_THREADS=value)
    assert output == ["1"]
    assert f"PULLBACK_NUM_THREADS={value} is ignored: give a whole number from 1 to 1024" in errors


def test_auto_is_what_the_process_has_processors_for():
    program = (
        "from pullback.backends.native.threads import available_processors; pb.threads('auto'); "
        "print(pb.threads() == available_processors.found_limit(), pb.threads())"
    )
    assert in_fresh_process(program, OMP_NUM_THREADS="1")[0] == ["True", "1"]
    assert in_fresh_process(program.replace("pb.threads('auto'); ", ""), PULLBACK_NUM_THREADS="auto")[0][0] == "True"


def test_a_number_holds_until_the_next_and_in_blocks_until_they_are_left():
    pb.threads(3)
    with pb.threads(5):
        assert pb.threads() == 5
        with pb.threads(2):
            assert pb.threads() == 2
        assert pb.threads() == 5
    assert pb.threads() == 3


def test_a_block_that_raises_restores_the_number():
    before = pb.threads()
    with pytest.raises(KeyError), pb.threads(5):
        raise KeyError
    assert pb.threads() == before


def test_the_number_holds_for_all_python_threads():
    seen = []
    with pb.threads(4):
        other = threading.Thread(target=lambda: seen.append(pb.threads()))
        other.start()
        other.join()
    assert seen == [4]


def test_whole_numbers_of_numpy_are_numbers_of_threads():
    with pb.threads(np.int64(2)):
        assert pb.threads() == 2


@pytest.mark.parametrize("limit", [0, -3, 1025, 10**30])
def test_numbers_that_no_machine_has_are_refused(limit):
    before = pb.threads()
    with pytest.raises(
        ValueError, match=rf"^pb\.threads\({limit}\) is no number of threads: give a whole number from 1"
    ):
        pb.threads(limit)
    assert pb.threads() == before


@pytest.mark.parametrize("limit", [2.0, True, "2", "all", np.array([1, 2]), [2]])
def test_what_is_no_number_is_refused(limit):
    with pytest.raises(TypeError, match="is no number of threads: give a whole number from 1 to 1024, or 'auto'"):
        pb.threads(limit)


def test_it_needs_no_compiler():
    program = "import sys; pb.threads(2); print(pb.threads(), 'llvmlite' in sys.modules, 'scipy' in sys.modules)"
    assert in_fresh_process(program)[0] == ["2", "False", "False"]


LARGE = """
import numpy as np
from pullback.backends.native.threads import counts
plan = pb.compile(lambda x: np.sum(np.sin(x)), tier="native")
x = np.ones(2_000_000)
plan(x)
before = counts().shared
plan(x)
print(counts().shared - before)
with pb.threads(2):
    plan(x)
print(counts().shared - before)
plan(x)
print(counts().shared - before)
"""


@pytest.mark.skipif(os.name != "posix", reason="there are no such threads here")
def test_a_plan_shares_its_work_while_more_than_one_thread_is_allowed():
    assert in_fresh_process(LARGE)[0] == ["0", "1", "1"]
    assert in_fresh_process(LARGE, PULLBACK_NUM_THREADS="3")[0] == ["1", "2", "3"]


@pytest.mark.skipif(os.name != "posix", reason="there are no such threads here")
def test_auto_heeds_a_limit_that_is_set_on_numpys_blas_meanwhile(monkeypatch, parallel_for):
    limit = [1]
    function = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: limit[0])
    monkeypatch.setattr(available_processors, "numpys_limit", lambda: ctypes.cast(function, ctypes.c_void_p).value)
    monkeypatch.setattr(available_processors, "fixed_limit", lambda: 8)
    with pb.threads("auto"):
        before = counts().shared
        parallel_for(lambda _: None, 4)
        assert (pb.threads(), counts().shared) == (1, before)
        limit[0] = 3
        parallel_for(lambda _: None, 4)
        assert (pb.threads(), counts().shared) == (3, before + 1)

"""Programs that go wrong after their first call, and ways to end: one sentence each, and never a time."""

import json
import os
import subprocess
import sys

import pytest

FILE = """
import os, signal
import numpy as np
from pullback_runners.workloads import grid, workload

first_process, calls = os.getpid(), 0


@workload(wrt="x", quick=grid(n=(200,)))
def squares(n):
    "The sum of squares."
    return lambda x: np.sum(x * x)


@squares.inputs
def _(rng, dtype, n):
    return {"x": rng.standard_normal(n).astype(dtype)}


@squares.oracle
def _(x, *, n):
    return np.sum(x**2), {"x": 2 * x}


@squares.peer("numpy")
def _(x, *, n):
    global calls
    calls += 1
    is_fork, right = os.getpid() != first_process, 2 * x
    HERE
    return np.sum(x * x), {"x": right}
"""


def run(tmp_path, here):
    file, report = tmp_path / "mine.py", tmp_path / "report.json"
    file.write_text(FILE.replace("HERE", here))
    done = subprocess.run(
        [
            *(sys.executable, "-P", "-m", "pullback_cli", "run", "--workloads", str(file), "--case", "squares"),
            *("--suite", "trial", "--variant", "numpy", "--quiet", "-o", str(report)),
        ],
        env={**os.environ, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    (case,) = json.loads(report.read_text())["pullback"]["cases"]
    return done, next(variant for variant in case["variants"] if variant["variant"] == "numpy")


@pytest.mark.parametrize(
    ("here", "said"),
    [
        ("if calls > 1: right = 0 * right", "in a call after the first"),
        ("if calls > 1: x += 1e-9", "in a call after the first"),
        ("if is_fork: right = right * 1.001", "in a call after the first"),
        ("if is_fork: os.kill(os.getpid(), 40)", "signal 40"),
        ("if is_fork: os._exit(75)", "exit status 75"),
        ("if is_fork and calls > 8: os._exit(75)", "exit status 75"),
    ],
)
def test_what_goes_wrong_after_the_first_call_has_no_time(tmp_path, here, said):
    done, numpy = run(tmp_path, here)
    assert done.returncode == 1
    assert said in numpy["error"]["message"]
    assert numpy["metrics"] == {}


def test_a_workload_that_ignores_its_children_is_measured(tmp_path):
    done, numpy = run(tmp_path, "signal.signal(signal.SIGCHLD, signal.SIG_IGN)")
    assert done.returncode == 0, done.stderr
    assert numpy["error"] is None


def test_what_a_workload_leaves_running_ends_with_it(tmp_path):
    marker = f"{os.getpid()}4321"
    here = f"__import__('subprocess').Popen(['sleep', '{marker}']) if is_fork is False and calls == 1 else None"
    run(tmp_path, here)
    left = subprocess.run(
        ["pgrep", "-f", f"sleep {marker}"], capture_output=True, text=True, check=False
    ).stdout.split()
    for process in left:
        os.kill(int(process), 9)
    assert left == []

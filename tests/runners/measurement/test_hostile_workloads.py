"""Programs that go wrong after their first call, and ways to end: one sentence each, and never a time."""

import json
import os
import subprocess
import sys

import pytest

FILE = """
import contextlib, os, signal
import numpy as np
from pullback_runners.workloads import grid, workload

first_process = os.getpid()


def answers(content):
    "Write to every pipe that this process has, so to that of its answers too."
    for descriptor in range(3, 100):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/self/fd/{descriptor}").startswith("pipe:"):
                written = memoryview(content)
                while written:
                    written = written[os.write(descriptor, written):]


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
"""
PEER = """

calls_of_NAME = 0


@squares.peer("NAME")
def _(x, *, n):
    global calls_of_NAME
    calls_of_NAME += 1
    calls, is_fork, right = calls_of_NAME, os.getpid() != first_process, 2 * x
    HERE
    return np.sum(x * x), {"x": right}
"""
WRONG = {
    "zeros": ("if calls > 1: right = 0 * right", "in a call after the first"),
    "writes": ("if calls > 1: x += 1e-9", "in a call after the first"),
    "forks": ("if is_fork: right = right * 1.001", "in a call after the first"),
    "killed": ("if is_fork: os.kill(os.getpid(), 40)", "signal 40"),
    "exits": ("if is_fork: os._exit(75)", "exit status 75"),
    "floods": ("if is_fork: answers(bytes(100 << 20))", "the worker wrote a line of more than 4 MiB as its answer"),
    "nests": ("answers(b'[' * 10_000_000)", "the worker wrote a line of more than 4 MiB as its answer"),
    "babbles": ("if calls > 1: answers(b'[]\\n')", "the worker wrote a line that is no JSON object as its answer"),
    "answers_nothing": (
        "if calls > 1: answers(b'{}\\n')",
        "the worker wrote a JSON object of another form as its answer",
    ),
    "answers_early": ("if is_fork: answers(b'{}\\n')", "the worker wrote a JSON object of another form as its answer"),
    "fails_oddly": (
        "if calls > 1: answers(b'{\"failed\": 1}\\n')",
        "the worker wrote a JSON object of another form as its answer",
    ),
    "exits_later": ("if is_fork and calls > 8: os._exit(75)", "exit status 75"),
}


def run(folder, peers):
    """What a run of some peers said, and its variants by name."""
    file, report = folder / "mine.py", folder / "report.json"
    file.write_text(FILE + "".join(PEER.replace("NAME", name).replace("HERE", here) for name, here in peers.items()))
    done = subprocess.run(
        [
            *(sys.executable, "-P", "-m", "pullback_cli", "run", "--workloads", str(file), "--case", "squares"),
            *(argument for name in peers for argument in ("--variant", name)),
            *("--suite", "trial", "--quiet", "-o", str(report)),
        ],
        env={**os.environ, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    (case,) = json.loads(report.read_text())["pullback"]["cases"]
    return done, {variant["variant"]: variant for variant in case["variants"]}


@pytest.fixture(scope="module")
def wrong(tmp_path_factory):
    """All that go wrong, in one run: each has processes of its own."""
    return run(tmp_path_factory.mktemp("wrong"), {name: here for name, (here, _) in WRONG.items()})


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("name", WRONG)
def test_what_goes_wrong_after_the_first_call_has_no_time(wrong, name):
    done, variants = wrong
    _, said = WRONG[name]
    assert done.returncode == 1
    assert said in variants[name]["error"]["message"]
    assert variants[name]["metrics"] == {}


@pytest.mark.long
def test_a_workload_that_ignores_its_children_is_measured_and_what_one_leaves_running_ends_with_it(tmp_path):
    marker = f"{os.getpid()}4321"
    begin = f"__import__('subprocess').Popen(['sleep', '{marker}'], start_new_session={{apart}}) if is_fork is False and calls == 1 else None"
    leaves = {"leaves": begin.format(apart=False), "leaves_apart": begin.format(apart=True)}
    done, variants = run(tmp_path, {"ignores": "signal.signal(signal.SIGCHLD, signal.SIG_IGN)", **leaves})
    assert done.returncode == 0, done.stderr
    assert variants["ignores"]["error"] is None
    left = subprocess.run(
        ["pgrep", "-f", f"sleep {marker}"], capture_output=True, text=True, check=False
    ).stdout.split()
    for process in left:
        os.kill(int(process), 9)
    assert left == []

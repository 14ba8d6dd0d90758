"""A small library in a repository of its own."""

import subprocess
import textwrap

import pytest

LIBRARY = """
import numpy as np


def value_and_grad(x):
    for _ in range({times}):
        value, gradient = float(np.sum(np.sin(x))), np.cos(x)
    return value, gradient
"""

WORKLOAD = """
import numpy as np
import waves
from pullback_runners.workloads import grid, workload


@workload(wrt="x", quick=grid(n=(4000,)))
def total(*, n):
    "The sum of sines."
    return lambda x: np.sum(np.sin(x))


@total.inputs
def _(rng, dtype, *, n):
    return {"x": rng.normal(size=n).astype(dtype)}


@total.oracle
def _(x, *, n):
    return np.sum(np.sin(x)), {"x": np.cos(x)}


@total.peer("waves")
def _(x, *, n):
    value, gradient = waves.value_and_grad(x)
    return value, {"x": gradient}
"""

PROJECT = """
[project]
name = "waves"
[build]
import = ["waves"]
[measure]
workloads = ["bench/total.py"]
variants = ["waves"]
"""


class Repository:
    """A repository with the library in src/, by the commits that a test makes."""

    def __init__(self, folder):
        self.folder = folder
        self.git("init", "-q", "-b", "main")
        self.write("src/waves.py", LIBRARY.format(times=1))
        self.write("bench/total.py", WORKLOAD)
        self.write("pullback.toml", PROJECT)

    def git(self, *arguments):
        identity = ("-c", "user.name=A", "-c", "user.email=a@a.test")
        done = subprocess.run(
            ["git", *identity, "-C", self.folder, *arguments], check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def write(self, name, text):
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_text(textwrap.dedent(text))

    def slow_down(self, times):
        self.write("src/waves.py", LIBRARY.format(times=times))

    def commit(self, title):
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", title)
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "waves"
    folder.mkdir()
    return Repository(folder)

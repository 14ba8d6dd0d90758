"""Memory of a process that is timed, beyond that of a program without Pullback that imports and calls the same."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from pullback_runners.measurement.subject import Subject
from pullback_runners.report import Attribution
from pullback_runners.runs import run_suite

PROGRAM = r"""
import os
import re
import numpy as np

NOTES = os.environ["BENCHMARK_NOTES"]


def note():  # anonymous memory: of a forked process, pages of files are counted only once they are touched
    status = open("/proc/self/status", encoding="ascii").read()
    with open(NOTES, "a", encoding="ascii") as notes:
        notes.write(re.search(r"RssAnon:\s+([0-9]+)", status)[1] + "\n")


def prepare(x):
    def call():
        value, gradient = float(np.sum(np.sin(x))), np.cos(x)
        if "LD_PRELOAD" not in os.environ:  # counting is not timing
            note()
        return value, gradient

    return call
"""

PLAIN = """
call = prepare(np.random.default_rng(0).standard_normal(1000))
for _ in range(100):
    call()
"""

MEASURED = """
from pullback_runners.workloads import grid, workload


@workload(wrt="x", numpy=False, trial=grid(n=(1000,)))
def waves(n):
    "a sum of sines"


@waves.inputs
def _(rng, dtype, n):
    return {"x": rng.standard_normal(n).astype(dtype)}


@waves.variant("numpy-by-hand")
def _(x, *, n):
    return prepare(x)


@waves.variant("again")
def _(x, *, n):
    return prepare(x)
"""


def memory(folder: Path) -> Iterator[str]:
    """The most anonymous memory that each takes, and the difference, in a line."""
    plain, measured = folder / "plain.py", folder / "measured_code.py"
    plain.write_text(PROGRAM + PLAIN)
    measured.write_text(PROGRAM + MEASURED)
    environment = {**os.environ, "BENCHMARK_NOTES": str(folder / "plain.txt")}
    subprocess.run([sys.executable, "-P", str(plain)], check=True, env=environment)  # noqa: S603 - a file of ours
    os.environ["BENCHMARK_NOTES"] = str(folder / "measured.txt")
    run_suite(
        "trial",
        workload_files=[measured],
        subject=Subject(paths=(folder,), imports=()),
        owner=Attribution("memory", None, ()),
    )
    without, timed = (max(map(int, (folder / f"{name}.txt").read_text().split())) for name in ("plain", "measured"))
    yield f"without Pullback {without / 1024:.1f} MiB, timed {timed / 1024:.1f} MiB: {(timed - without) * 1024 / 1e6:.1f} MB more"

"""A/A in the sandbox and in the open: how measuring differs, and what the start of a group costs more.

    python -m benchmarks.sandboxed [--rounds 40] [--build-user 61234] [--json FILE]

In each round the same groups are run in a sandbox as jobs have it and without one, in random order: a program, itself again, and the
same with 1 % more work. A ratio in the sandbox less that in the open is to be 0 within 0.2 %, and a group to start at most 0.1 s later; given are
medians of rounds with 95 % intervals. Exit status 1 says that a limit is passed, or that the rounds are too few to say. Needs an idle machine; root
names a user (`--build-user`) who can run this Python and read this folder. Takes some 20 s a round.
"""

import argparse
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.outcomes.session import WORKLOADS
from benchmarks.turns import Median

from pullback_runners.machine import take_preflight
from pullback_runners.measurement.comparison import REFERENCE
from pullback_runners.measurement.lockstep import GroupProcesses, paired_slices, run_group
from pullback_runners.measurement.member import Member
from pullback_runners.measurement.worker_process import WorkerSettings
from pullback_runners.sandbox.bubblewrap import SandboxView
from pullback_runners.sandbox.isolation import Isolation, isolated
from pullback_runners.sandbox.limits import limit_this_process
from pullback_runners.workloads import load_workload_file, select_cases

ROOT = Path(__file__).parents[1]
CANDIDATES = {"A/A": "hundred", "+1 %": "hundred-and-one"}
START = "start of a group"
LIMITS = {"A/A": 0.002, "+1 %": 0.002, START: 0.1}
SLICES = 100
WAIT_S = 300.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure in turns, print the differences, and say whether they are within the limits."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--build-user", help="of the sandbox; needed by root alone")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write what each group gave")
    parser.add_argument("--group", metavar="LIMITS", help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if asked.group is not None:
        print(json.dumps(_measure(json.loads(asked.group))))
        return 0
    found: dict[str, list[dict[str, float]]] = {"sandbox": [], "none": []}
    with tempfile.TemporaryDirectory(prefix="pullback-sandboxed-") as folder:
        Path(folder).chmod(0o755)
        with isolated(Path(folder), "sandbox", asked.build_user, readable=[ROOT]) as sandbox:
            for _ in range(asked.rounds):
                for isolation in random.sample((sandbox, Isolation()), 2):
                    found[isolation.level].append(_group(isolation, Path(folder) / "work"))
    rows = [_row(what, found) for what in LIMITS]
    print(f"{'sandbox less open':18} {'median':>9} {'95 % interval':>20} {'limit':>7}")
    for row in rows:
        print(
            f"{row['what']:18} {row['median']:9.5f} {row['low']:9.5f} .. {row['high']:.5f} {row['limit']:7.3f} {row['verdict']}"
        )
    if asked.json is not None:
        asked.json.write_text(json.dumps({"rows": rows, "groups": found}, indent=1) + "\n")
    return int(any(row["verdict"] != "reached" for row in rows))


def _row(what: str, found: dict[str, list[dict[str, float]]]) -> dict[str, Any]:
    """The difference of something in all rounds, and how it stands to its limit."""
    pairs = zip(found["sandbox"], found["none"], strict=True)
    difference = Median.of([inside[what] - outside[what] for inside, outside in pairs])
    limit = LIMITS[what]
    # A start may be earlier by as much as it likes.
    is_reached = difference.high <= limit and (what == START or difference.low >= -limit)
    is_missed = difference.low > limit or (what != START and difference.high < -limit)
    verdict = "reached" if is_reached else "missed" if is_missed else "too few rounds to say"
    return {
        "what": what,
        "median": difference.middle,
        "low": difference.low,
        "high": difference.high,
        "limit": limit,
        "verdict": verdict,
    }


def _group(isolation: Isolation, work: Path) -> dict[str, float]:
    """The times of one group in an isolation."""
    place = work.with_name(f"work-{isolation.level}")
    isolation.give(place)
    limits = None if isolation.level == "none" else isolation.limits.of_a_process("cpu")
    environment = {name: os.environ[name] for name in ("PATH", "LANG", "LD_LIBRARY_PATH") if name in os.environ} | {
        "HOME": str(place),
        "TMPDIR": str(place),
        "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)]),
    }
    confined = isolation.start(
        [sys.executable, "-P", "-m", "benchmarks.sandboxed", "--group", json.dumps(limits)],
        SandboxView(place, [ROOT]),
        environment=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )
    try:
        written, _ = confined.process.communicate(timeout=WAIT_S)
    finally:
        confined.process.kill()
        confined.end()
    if confined.process.returncode != 0:
        raise SystemExit(f"a group ended with {confined.process.returncode} at the level {isolation.level}")
    given: dict[str, float] = json.loads(written)
    return given


def _measure(limits: dict[str, int] | None) -> dict[str, float]:
    """Log ratios of one group, and the seconds that another one takes for a turn of each."""
    if limits is not None:
        limit_this_process(limits)
    load_workload_file(WORKLOADS)
    (case,) = select_cases("quick", ["counted_arrays"])
    settings = WorkerSettings([WORKLOADS], take_preflight().pinned_cpu)
    members = [
        Member("hundred", role=REFERENCE),
        *(Member(variant, role=name) for name, variant in CANDIDATES.items()),
    ]
    run_group(GroupProcesses(case, members, settings), 1)  # files are in memory
    began = time.monotonic()
    run_group(GroupProcesses(case, members, settings), 1)
    start_s = time.monotonic() - began
    group = run_group(GroupProcesses(case, members, settings), SLICES)
    if group.failures:
        raise SystemExit(f"{case.name}: {next(iter(group.failures.values())).message}")
    reference, *others = paired_slices(case, [group.timings[name] for name in (REFERENCE, *CANDIDATES)])
    ratios = {
        name: statistics.median(math.log(own / base) for own, base in zip(slices, reference, strict=True))
        for name, slices in zip(CANDIDATES, others, strict=True)
    }
    return {**ratios, START: start_s}


if __name__ == "__main__":
    sys.exit(main())

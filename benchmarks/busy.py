"""`python -m benchmarks.busy`: how often a run is marked as measured on a busy machine, and what it claims of equal programs.

Sessions of the quick suite (see `benchmarks.outcomes`) on an idle machine and beside a competitor that is pinned to the
measured CPU, one that moves, and one that streams through memory. Each holds two processes of one program among its members:
a difference claimed between them is false. A session takes about ten seconds.
"""

import argparse
import contextlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.outcomes.load import busy
from benchmarks.outcomes.session import WORKLOADS, run_session

from pullback_runners.machine import take_preflight
from pullback_runners.suites import find_suite
from pullback_runners.workloads import load_workload_file, select_cases


@contextlib.contextmanager
def pinned() -> Iterator[None]:
    """A competitor on the CPU that is measured on."""
    cpu = take_preflight().pinned_cpu
    with busy("compute") as (competitor,):
        if cpu is not None:
            os.sched_setaffinity(competitor, {cpu})
        yield


SETTINGS: dict[str, Callable[[], contextlib.AbstractContextManager[object]]] = {
    "idle": contextlib.nullcontext,
    "pinned": pinned,
    "moving": lambda: busy("compute"),
    "memory": lambda: busy("stream"),
}


def main() -> None:
    """Run the sessions and print a line for each setting."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.busy", description=__doc__)
    parser.add_argument("--sessions", type=int, default=40, help="for each setting; the kinds of work take turns")
    parser.add_argument("--settings", nargs="+", choices=SETTINGS, default=list(SETTINGS))
    parser.add_argument("--json", type=Path, help="write every session to this file")
    options = parser.parse_args()
    load_workload_file(WORKLOADS)
    cases = select_cases("quick", ["counted_*"])
    found: dict[str, list[dict[str, Any]]] = {}
    print(f"{'machine':8} {'sessions':>8} {'clean':>6} {'marked':>6} {'false claims':>12}  limits passed")
    for setting in options.settings:
        with SETTINGS[setting]():
            found[setting] = [
                run_session(cases[number % len(cases)], find_suite("quick")) for number in range(options.sessions)
            ]
        print(_line(setting, found[setting]), flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1), encoding="utf-8")


def _line(setting: str, sessions: list[dict[str, Any]]) -> str:
    clean = sum(session["quality"] == "clean" for session in sessions)
    false = sum(session["judged"]["A/A"]["outcome"] in {"faster", "slower"} for session in sessions)
    passed = sorted({limit["name"] for session in sessions for limit in session["limits"]})
    return (
        f"{setting:8} {len(sessions):8d} {clean:6d} {len(sessions) - clean:6d} {false:12d}  {', '.join(passed) or '-'}"
    )


if __name__ == "__main__":
    main()

"""`python -m benchmarks.outcomes`: real sessions of the standard suite on programs whose ratio is known, on a loaded machine.

A session is what `pullback compare` does for one case: checking and counting, then groups of processes taking turns, 20 first
and up to 40 while the answer is ambiguous and there is time, then an outcome. The load is part of it: `--load` busy processes
of its own, as many as there are CPUs unless told otherwise. It takes up to 100 s a session, of which 60 are the share of
one candidate.
"""

import argparse
import dataclasses
import json
import os
import subprocess
from pathlib import Path
from typing import Any

from benchmarks.outcomes.load import busy, kinds
from benchmarks.outcomes.session import WORKLOADS, run_session
from benchmarks.outcomes.table import table, with_table

from pullback_runners.suites import find_suite
from pullback_runners.workloads import load_workload_file, select_cases

PAGE = Path(__file__).parents[2] / "docs" / "measurement.md"

SAME_IN_ALL = ("busy", "cpus", "suite", "seconds", "code")
"""Sessions that differ in one of these are not counted together."""


def main() -> None:
    """Run sessions and print how often each outcome came."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.outcomes", description=__doc__)
    parser.add_argument("--sessions", type=int, default=30, help="how many; the kinds of work take turns")
    parser.add_argument(
        "--load", type=int, default=_cpus(), help="busy processes to measure beside; by default as many as CPUs"
    )
    parser.add_argument("--suite", default="standard", help="whose numbers of groups and slices")
    parser.add_argument("--seconds", type=float, default=60.0, help="most a session of one candidate may take")
    parser.add_argument(
        "--json", type=Path, help="a line a session is added to this file; what is in it is counted too"
    )
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.name}, between its marks")
    options = parser.parse_args()
    suite = dataclasses.replace(find_suite(options.suite), comparison_s=options.seconds)
    setting = {
        "busy": options.load,
        "cpus": _cpus(),
        "suite": options.suite,
        "seconds": options.seconds,
        "code": _code(),
    }
    found = earlier_sessions(options.json)
    if len(found) < options.sessions:
        refuse_other_settings(found, setting)
        load_workload_file(WORKLOADS)
        cases = select_cases("quick", ["counted_*"])
        with busy(*kinds(options.load)):
            for number in range(len(found), options.sessions):
                session = setting | run_session(cases[number % len(cases)], suite)
                found.append(session)
                if options.json is not None:
                    with options.json.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(session) + "\n")
                print(f"{number + 1}/{options.sessions} {_told(session)}", flush=True)
    print(table(found))
    if options.write:
        PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), table(found)), encoding="utf-8")


def _told(session: dict[str, Any]) -> str:
    judged = ", ".join(
        f"{name} {each['outcome']} ({each['groups']}, {each['seconds']:.0f} s)"
        for name, each in session["judged"].items()
    )
    return f"{session['case']}: {judged}; load {session['load_during']:.1f}"


def earlier_sessions(file: Path | None) -> list[dict[str, Any]]:
    """The sessions of a file, if they are of one setting."""
    if file is None or not file.exists():
        return []
    sessions = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    if sessions:
        refuse_other_settings(sessions, sessions[0])
    return sessions


def refuse_other_settings(sessions: list[dict[str, Any]], setting: dict[str, Any]) -> None:
    """Sessions that were run otherwise are not to be counted with those to come."""
    for session in sessions:
        for key in SAME_IN_ALL:
            if session.get(key) != setting[key]:
                raise SystemExit(
                    f"a session with {key} {session.get(key)!r} cannot be counted with one with {setting[key]!r}; "
                    "name another --json"
                )


def _cpus() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _code() -> str | None:
    """The last commit that changed what is measured or how; None without git. Documentation may change in between."""
    folder = Path(__file__).parents[2]
    try:
        return subprocess.run(
            ["git", "log", "-1", "--format=%h", "--", "engine", "runners", "benchmarks/outcomes"],  # noqa: S607 - the user's git
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


if __name__ == "__main__":
    main()

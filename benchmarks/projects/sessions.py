"""Sessions of `pullback compare` on made repositories, and what they found."""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import fmean, median
from typing import Any

from benchmarks.projects.repositories import LIBRARIES, make_repository

from pullback_runners.comparing import compare_commits
from pullback_runners.projects.subjects import BuiltCommit, build_subject
from pullback_runners.revisions import find_commit, require_project

UNITS = {"base": 100, "equal": 100, "two": 102, "thirty": 130}
CALLED_DIFFERENT = {"slower", "faster"}


class Sessions:
    """A repository and its built commits."""

    def __init__(self, folder: Path, engine: str, requirements: Mapping[str, str] | None = None) -> None:
        make_repository(folder, LIBRARIES[engine], UNITS, dict(requirements or {}))
        self._project = require_project(folder)
        self._built: dict[str, BuiltCommit] = {}

    def compare(self, reference: str, candidate: str) -> dict[str, Any]:
        """The row of time of one session."""
        ours, theirs = self._commit(candidate), self._commit(reference)
        report = compare_commits(
            theirs, ours, "standard", workload_files=self._project.workload_files(ours.files), measure_equal=True
        )
        rows = [row for row in report["comparisons"] if row["metric"] == "time"]
        if len(rows) != 1 or rows[0]["outcome"] == "failed":
            raise SystemExit(f"{reference} against {candidate}: {rows or report['harness']}")
        return {**rows[0], "duration_s": report["duration_s"]}

    def _commit(self, tag: str) -> BuiltCommit:
        if tag not in self._built:
            self._built[tag] = build_subject(self._project, self._project.top, find_commit(self._project.top, tag))
        return self._built[tag]


def planted(folder: Path, engines: list[str], sessions: int) -> Iterator[str]:
    """Rows of a table: what was planted in which engine, and in how many sessions it was found."""
    yield "| engine | planted | called slower | called different | mean estimate | groups | s |"
    yield "|---" * 7 + "|"
    for engine in engines:
        made = Sessions(folder / engine, engine)
        for name, said in (("equal", "0 %"), ("two", "+2 %"), ("thirty", "+30 %")):
            rows = [made.compare("base", name) for _ in range(sessions)]
            slower = sum(row["outcome"] == "slower" for row in rows)
            different = sum(row["outcome"] in CALLED_DIFFERENT for row in rows)
            mean = 100 * math.expm1(fmean(row["log_ratio"] for row in rows))
            groups, seconds = (median(row[key] for row in rows) for key in ("n", "duration_s"))
            yield (
                f"| {engine} | {said} | {slower} of {sessions} | {different} of {sessions} | {mean:+.2f} % "
                f"| {groups:.0f} | {seconds:.0f} |"
            )


def same(folder: Path, lock: str, sessions: int) -> Iterator[str]:
    """Rows of a table: equal commits in one environment, and across two that were made of two lock files."""
    texts = {name: f"# made for {'one' if name == 'base' else 'another'}\n{lock}" for name in UNITS}
    made = Sessions(folder / "same", "numpy", texts)
    yield "| environments | called different | floor, median | groups | s |"
    yield "|---" * 5 + "|"
    floors = []
    for said, reference in (("one", "equal"), ("two", "base")):
        rows = [made.compare(reference, "equal") for _ in range(sessions)]
        different = sum(row["outcome"] in CALLED_DIFFERENT for row in rows)
        floors.append(median(row["claim"] for row in rows))
        groups, seconds = (median(row[key] for row in rows) for key in ("n", "duration_s"))
        yield f"| {said} | {different} of {sessions} | {100 * floors[-1]:.2f} % | {groups:.0f} | {seconds:.0f} |"
    yield f"\nfloor of two environments: {floors[1] / floors[0]:.2f} times that of one"

"""Sessions of `pullback compare` on made repositories, and what they found. They go on where the record of them ends."""

import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

from benchmarks.projects.repositories import LIBRARIES, make_repository

from pullback_runners.comparison_runs import compare_commits
from pullback_runners.projects.subjects import BuiltCommit, build_subject
from pullback_runners.revisions import find_commit, require_project

UNITS = {"base": 100, "equal": 100, "two": 102, "thirty": 130}
CALLED_DIFFERENT = {"slower", "faster"}
KEPT = ("outcome", "log_ratio", "low", "high", "n", "claim")

Row = dict[str, Any]


@dataclass(frozen=True)
class Question:
    """What a row of the table asks: two commits of a repository, any number of times."""

    name: str
    """As the record has it."""
    cells: str
    """The first cells of its row."""
    engine: str
    reference: str
    candidate: str
    locked: bool = False
    """Each commit with a lock file of its own."""


def planted(engines: Sequence[str]) -> list[Question]:
    """Questions whether a slower gradient is found, and whether equal ones are called different."""
    units = (("equal", "0 %"), ("two", "+2 %"), ("thirty", "+30 %"))
    return [
        Question(f"{engine} {name}", f"{engine} | {said}", engine, "base", name)
        for engine in engines
        for name, said in units
    ]


SAME = [
    Question("one environment", "numpy, one environment | 0 %", "numpy", "equal", "again", locked=True),
    Question("two environments", "numpy, two environments | 0 %", "numpy", "base", "again", locked=True),
]
"""Equal commits; `base` alone has an environment of its own."""


class Sessions:
    """Repositories with their built commits, and the record of what was compared."""

    def __init__(self, folder: Path, record: Path | None, lock: str) -> None:
        self._folder = folder
        self._record = record
        self._lock = lock
        self._built: dict[tuple[str, bool, str], BuiltCommit] = {}
        self.rows: dict[str, list[Row]] = {}
        if record is not None and record.exists():
            self.rows = json.loads(record.read_text(encoding="utf-8"))

    def run(self, questions: Sequence[Question], sessions: int, minutes: float) -> Iterator[Question]:
        """Ask each question so many times in turn, as long as there is time; what was asked least often comes first."""
        ends = time.monotonic() + 60 * minutes
        while time.monotonic() < ends:
            question = min(questions, key=lambda each: len(self.rows.get(each.name, ())))
            if len(self.rows.get(question.name, ())) >= sessions:
                return
            self.rows.setdefault(question.name, []).append(self._compared(question))
            if self._record is not None:
                self._record.write_text(json.dumps(self.rows, indent=1), encoding="utf-8")
            yield question

    def _compared(self, question: Question) -> Row:
        """The row of time of one session."""
        theirs, ours = (self._commit(question, tag) for tag in (question.reference, question.candidate))
        files = require_project(self._repository(question)).workload_files(ours.files)
        report = compare_commits(theirs, ours, "standard", workload_files=files, measure_equal=True)
        rows = [row for row in report["comparisons"] if row["metric"] == "time"]
        if len(rows) != 1 or rows[0]["outcome"] == "failed":
            raise SystemExit(f"{question.name}: {rows or report['harness']}")
        return {**{key: rows[0][key] for key in KEPT}, "duration_s": report["duration_s"]}

    def _commit(self, question: Question, tag: str) -> BuiltCommit:
        key = (question.engine, question.locked, tag)
        if key not in self._built:
            top = self._repository(question)
            self._built[key] = build_subject(require_project(top), top, find_commit(top, tag))
        return self._built[key]

    def _repository(self, question: Question) -> Path:
        top = self._folder / f"{question.engine}{'-locked' if question.locked else ''}"
        if not top.exists():
            units = dict.fromkeys(("base", "equal", "again"), 100) if question.locked else UNITS
            texts = {tag: f"# made for {'one' if tag == 'base' else 'another'}\n{self._lock}" for tag in units}
            make_repository(top, LIBRARIES[question.engine], units, texts if question.locked else {})
        return top


HEADING = "| | planted | sessions | slower | different | same | mean estimate | floor | groups | s |"


def row_of(question: Question, rows: Sequence[Row]) -> str:
    """A row of the table: outcomes counted, the rest as means and medians."""
    outcomes = [row["outcome"] for row in rows]
    mean = 100 * math.expm1(fmean(row["log_ratio"] for row in rows))
    floor, groups, seconds = (median(row[key] for row in rows) for key in ("claim", "n", "duration_s"))
    different = sum(outcome in CALLED_DIFFERENT for outcome in outcomes)
    return (
        f"| {question.cells} | {len(rows)} | {outcomes.count('slower')} | {different} | {outcomes.count('same')} "
        f"| {mean:+.2f} % | {100 * floor:.2f} % | {groups:.0f} | {seconds:.0f} |"
    )


def floor_ratio(rows: Mapping[str, Sequence[Row]]) -> str | None:
    """How the floor of two environments compares with that of one, where both were measured."""
    if not all(rows.get(question.name) for question in SAME):
        return None
    one, two = (median(row["claim"] for row in rows[question.name]) for question in SAME)
    return f"floor of two environments: {two / one:.2f} times that of one"


def missing(questions: Sequence[Question], rows: Mapping[str, Sequence[Row]], sessions: int) -> str | None:
    """The sessions that are not held yet and the time for them, as those that were held took; None if none is missing."""
    left = {each.name: max(0, sessions - len(rows.get(each.name, ()))) for each in questions}
    held = {name: [row["duration_s"] for row in rows.get(name, ())] for name in left}
    usual = median([seconds for each in held.values() for seconds in each] or [60.0])
    minutes = sum(count * (median(held[name]) if held[name] else usual) for name, count in left.items()) / 60
    return f"missing: {sum(left.values())} sessions, about {minutes:.0f} minutes" if any(left.values()) else None

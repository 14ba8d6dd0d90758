"""The noise of recorded sessions in which a commit was compared with itself, and the answers of an agent that has it.

A session is the numbers of its groups. Groups of a session are drawn again, so that what differs from one session to the next stays in
what is measured, as on the machine where they were recorded.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pullback_runners.measurement.outcomes import Margins, margins, noisy_outcome
from pullback_runners.measurement.statistics import RatioEstimate, noise_floor, ratio_estimate
from pullback_runners.report.document import ratio_document
from pullback_runners.suites import SUITES

RECORDED = Path(__file__).with_name("recorded.json")
SUITE = SUITES["standard"]
PROCESSES = 6
"""Processes of a run whose times are sent; more of them take time to store, and nothing reads them here."""


@dataclass(frozen=True, slots=True)
class Session:
    """A case compared with itself: log ratios of its groups, those of the twins, and the seconds of the reference."""

    case: str
    groups: Sequence[float]
    twins: Sequence[float]
    seconds: Sequence[float]


class Noise:
    """Noise by chance, out of recorded sessions."""

    def __init__(self, seed: str) -> None:
        self._sessions = recorded()
        self._levels = _levels(self._sessions)
        self.random = np.random.default_rng(list(seed.encode()))

    def ratio(self, size: float, *, scale: float = 1.0) -> dict[str, Any]:
        """The ratio of a variant to its baseline in a run, as a report has it; `size` is the true one."""
        number, groups = self._draw(SUITE.groups)
        estimate = ratio_estimate((size + scale * groups).tolist())
        return ratio_document(estimate, _margins(number, SUITE.groups), may_say_same=True)

    def comparison(self, size: float, effort: int) -> dict[str, Any]:
        """A comparison of two commits, as a report has it: more groups while the answer is ambiguous, as many as a job has."""
        suite = SUITE.with_effort(effort)
        number, groups = self._draw(suite.most_groups)
        n = suite.groups
        while True:
            measured = (size + groups[:n]).tolist()
            estimate, smallest = ratio_estimate(measured), _margins(number, n)
            if n >= suite.most_groups or not _is_ambiguous(estimate, smallest):
                break
            n += suite.more_groups
        return {
            **ratio_document(estimate, smallest, may_say_same=True),
            "log_ratios": [round(each, 6) for each in measured],
        }

    def seconds(self, level: float) -> list[float]:
        """The times of the processes of a run, in seconds."""
        number = int(self.random.integers(len(self._sessions)))
        drawn = self.random.choice(np.asarray(self._sessions[number].seconds), PROCESSES)
        return [float(value) for value in level * drawn / self._levels[number]]

    def _draw(self, groups: int) -> tuple[int, NDArray[np.float64]]:
        number = int(self.random.integers(len(self._sessions)))
        return number, self.random.choice(np.asarray(self._sessions[number].groups), groups)


def _is_ambiguous(estimate: RatioEstimate, smallest: Margins) -> bool:
    return noisy_outcome(estimate, smallest, may_say_same=True) == "ambiguous"


@cache
def recorded() -> Sequence[Session]:
    """The sessions that were recorded."""
    return [Session(**each) for each in json.loads(RECORDED.read_text())]


@cache
def _margins(number: int, groups: int) -> Margins:
    return margins(noise_floor(recorded()[number].twins, groups))


def _levels(sessions: Sequence[Session]) -> Sequence[float]:
    """The usual time of the case of each session."""
    of_case = {
        case: median(value for each in sessions if each.case == case for value in each.seconds)
        for case in {each.case for each in sessions}
    }
    return [of_case[each.case] for each in sessions]


def record(rounds: int, cases: Sequence[str]) -> None:
    """Compare this commit with itself so many times, and keep the sessions beside those that are there."""
    sessions = list(recorded()) if RECORDED.exists() else []
    narrowed = [word for case in cases for word in ("--case", case)]
    command = [
        "compare",
        "--against",
        "HEAD",
        "--candidate",
        "HEAD",
        "--variant",
        "unfused",
        "--variant",
        "native",
        *narrowed,
    ]
    for number in range(rounds):
        done = subprocess.run(  # noqa: S603 - our own command
            [sys.executable, "-P", "-m", "pullback_cli", *command, "--json", "--quiet"],
            check=False, capture_output=True, text=True,
        )  # fmt: skip
        for row in json.loads(done.stdout)["comparisons"]:
            if row["metric"] == "time" and row["outcome"] != "failed":
                name = f"{row['case']['workload']} {row['variant']}"
                sessions.append(Session(name, row["log_ratios"], row["twin_log_ratios"], row["reference_s"]))
        RECORDED.write_text(_text([asdict(each) for each in sessions]))
        print(f"{number + 1} of {rounds}: {len(sessions)} sessions", flush=True)


def _text(sessions: Sequence[dict[str, Any]]) -> str:
    """One session a line."""
    return "[\n" + ",\n".join(json.dumps(each) for each in sessions) + "\n]\n"

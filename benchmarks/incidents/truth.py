"""What is true of a project: how long each variant of each case takes at each commit, and what was planted there."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha1
from typing import Final, Literal, TypeAlias

import numpy as np

VARIANTS: Final = ("unfused", "fused", "stateful", "native")
LEVELS: Final = (1.0, 0.6, 0.45, 0.3)
"""Times of the variants, of the baseline's."""
BASELINE: Final = 0

Kind: TypeAlias = Literal[
    "case", "workload", "tier", "baseline", "count", "unsteady", "count and time", "drift", "fixed", "wrong gradient", "missing",
    "small",
]  # fmt: skip
SilentKind: TypeAlias = Literal[
    "slower machine", "machine that favours", "software", "harness", "edited workload", "late upload", "force-push", "withdrawn",
    "busy",
]  # fmt: skip
KIND_TOLD: Final = {"unsteady": "unsteady", "wrong gradient": "wrong_gradient", "missing": "missing"}
"""Kinds of incidents; all others are `worse`."""


@dataclass(frozen=True, slots=True)
class Case:
    """A workload at one size."""

    workload: str
    n: int

    @property
    def label(self) -> str:
        """Its name."""
        return f"{self.workload}[n={self.n},f8,cpu]"

    def document(self) -> dict[str, object]:
        """Its entry in a report."""
        return {"workload": self.workload, "params": {"n": self.n}, "dtype": "f8", "device": "cpu"}


@dataclass(frozen=True, slots=True)
class Event:
    """A change that the commit at `place` made, and that asks for an incident.

    `subjects` are (case, variant). It was over at `until`, or of a drift complete.
    """

    kind: Kind
    place: int
    subjects: frozenset[tuple[int, int]]
    size: float = 0.0
    count: int = 0
    until: int | None = None

    @property
    def incident_kind(self) -> str:
        """The kind of the incident that is to be told."""
        return KIND_TOLD.get(self.kind, "worse")


@dataclass(frozen=True, slots=True)
class SilentEvent:
    """Something that no commit made: it comes when the commit at `place` is measured, on one machine or on all (None)."""

    kind: SilentKind
    place: int
    machine: int | None = None
    subjects: frozenset[tuple[int, int]] = frozenset()
    size: float = 0.0


@dataclass(slots=True)
class Truth:
    """A project: its cases, its commits by their places, and what was planted.

    `docs` are commits that change nothing that is measured. Arrays are of places, cases and variants; those of machines are of the time at
    which something is measured, by the newest commit then.
    """

    cases: Sequence[Case]
    commits: int
    machines: int
    events: Sequence[Event]
    silent: Sequence[SilentEvent]
    docs: frozenset[int]
    times: np.ndarray = field(init=False)
    counts: np.ndarray = field(init=False)
    is_wrong: np.ndarray = field(init=False)
    is_missing: np.ndarray = field(init=False)
    of_machine: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        """Compute what is true from what was planted."""
        shape = (self.commits, len(self.cases), len(VARIANTS))
        usual = np.log([[case.n * 1e-6 * level for level in LEVELS] for case in self.cases])
        self.times = np.broadcast_to(usual, shape).copy()
        self.counts = np.full(shape, 12, dtype=np.int64)
        self.is_wrong, self.is_missing = np.zeros(shape, bool), np.zeros(shape, bool)
        self.of_machine = np.zeros((self.machines, *shape))
        for event in self.events:
            self._plant(event)
        for silent in self.silent:
            for machine in range(self.machines) if silent.machine is None else (silent.machine,):
                for case, variant in silent.subjects:
                    self.of_machine[machine, silent.place :, case, variant] += silent.size

    def _plant(self, event: Event) -> None:
        end = event.until if event.kind != "drift" else None
        for case, variant in event.subjects:
            there = (slice(event.place, end), case, variant)
            if event.kind == "drift" and event.until is not None:
                grown = np.clip((np.arange(self.commits) - event.place + 1) / (event.until - event.place), 0, 1)
                self.times[:, case, variant] += event.size * grown
            elif event.kind == "unsteady":
                self.counts[event.place : event.until : 2, case, variant] += event.count
            elif event.kind == "wrong gradient":
                self.is_wrong[there] = True
            elif event.kind == "missing":
                self.is_missing[there] = True
            else:
                self.times[there] += event.size
                self.counts[there] += event.count

    @property
    def series(self) -> int:
        """Series of a machine: times and counts of arrays."""
        return 2 * len(self.cases) * len(VARIANTS)

    def subject(self, place: int) -> str:
        """The digest of the measured files at a commit."""
        while place in self.docs:
            place -= 1
        return sha1(f"files {place}".encode(), usedforsecurity=False).hexdigest()

    def silent_before(self, kind: SilentKind, now: int, machine: int) -> int:
        """Silent events of a kind that came to a machine so far."""
        return sum(each.kind == kind and each.place <= now and each.machine in {None, machine} for each in self.silent)

    def silent_at(self, kind: SilentKind, now: int) -> Sequence[SilentEvent]:
        """The silent events of a kind that come with a commit."""
        return [each for each in self.silent if each.kind == kind and each.place == now]


def sha_of(place: int, branch: str = "") -> str:
    """The hash of the commit at a place; `branch` names what a force-push put there."""
    return sha1(f"commit {place} {branch}".encode(), usedforsecurity=False).hexdigest()


def cases_for(series: int) -> Sequence[Case]:
    """So many cases that a machine has this many series, two of a workload where that goes."""
    number = max(series // (2 * len(VARIANTS)), 2)
    return [Case(f"workload{place // 2:02d}", (100, 400)[place % 2]) for place in range(number)]

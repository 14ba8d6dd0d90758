"""Jobs, agents and machines as plain values, and their wording."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from pullback_dashboards.charts.noise import Floor
from pullback_dashboards.wording.units import quantity

# What agents call the steps of their work, and pages. Cases take turns, so that examining comes again and again.
PHASES: Mapping[str, str] = {
    "prepare": "preparing the commit",
    "preflight": "checking the machine",
    "examine": "examining",
    "measure": "measuring",
    "finished": "measuring",
    "upload": "uploading",
}


@dataclass(frozen=True)
class Progress:
    """The progress of an attempt."""

    done: int
    total: int
    message: str


@dataclass(frozen=True)
class JobLine:
    """One job in the queue."""

    id: int
    project: str
    sha: str
    title: str | None
    suite: str
    state: str
    attempts: int
    max_attempts: int
    created_at: datetime
    finished_at: datetime | None
    machine_id: int | None = None
    phase: str | None = None
    progress: Progress | None = None
    failure: str | None = None
    machine: str | None = None
    since: datetime | None = None
    """The start of its last attempt."""
    ended_at: datetime | None = None
    kind: str = "run"
    reference: str | None = None
    origin: str = "asked"
    asked_by: str | None = None
    priority: int = 0
    requires: str = ""
    fork: str | None = None
    awaits_approval: bool = False
    cancel_requested: bool = False

    @property
    def short(self) -> str:
        """The commit's short name."""
        return self.sha[:9]

    @property
    def doing(self) -> str:
        """The phase in words."""
        return phase_in_words(self.phase)

    @property
    def what(self) -> str:
        """The work at the commit: a suite, or a comparison with another commit or with itself."""
        if self.kind != "compare":
            return self.suite
        if self.reference == self.sha:
            return f"{self.suite}, against itself (A/A)"
        return f"{self.suite}, against {(self.reference or '')[:9]}"

    @property
    def asker(self) -> str:
        """The origin of the job."""
        if self.origin == "idle":
            return "idle machine"
        if self.origin in {"confirm", "bisect"}:
            return self.asked_by or ("detection" if self.origin == "confirm" else "bisection")
        if self.origin == "anchor":
            return "anchor of the project"
        if self.origin == "backfill":
            return f"backfill by {self.asked_by}" if self.asked_by else "backfill of the project"
        return self.asked_by or "unknown"


@dataclass(frozen=True)
class AgentLine:
    """One agent, and whether it was heard of lately."""

    name: str
    machine: str
    machine_id: int
    last_seen_at: datetime
    present: bool
    job_id: int | None = None
    phase: str | None = None
    since: datetime | None = None
    progress: Progress | None = None
    spool: str = "unknown"
    spool_waiting: int | None = None
    refuses: str | None = None
    labels: str = ""

    @property
    def doing(self) -> str:
        """The phase in words."""
        return phase_in_words(self.phase)


@dataclass(frozen=True)
class Fleet:
    """Counts of agents: all, those heard of lately, and when any was; their work and how much waits."""

    agents: int = 0
    present: int = 0
    last_seen: datetime | None = None
    running: tuple[JobLine, ...] = ()
    queued: int = 0


@dataclass(frozen=True)
class Quality:
    """The last uploads of a machine, oldest first: `clean`, `busy` or `failed` (some case gave nothing)."""

    marks: tuple[str, ...]
    words: str


@dataclass(frozen=True)
class NoiseLine:
    """The noise floor of a machine, in words and day by day."""

    floor: str
    floor_value: float
    words: str
    provisional: bool
    days: tuple[Floor, ...]


@dataclass(frozen=True)
class MachineLine:
    """A machine and its agents."""

    id: int
    name: str
    hardware: str
    href: str
    state: str
    agents: tuple[AgentLine, ...]
    noise: NoiseLine
    quality: Quality
    accepts_untrusted: bool
    last_seen_at: datetime


def phase_in_words(phase: str | None) -> str:
    """A phase as pages call it; progress of other agents is shown unchanged."""
    return PHASES.get(phase, phase) if phase else "starting"


def failure_in_words(kind: str | None, message: str | None) -> str | None:
    """The failure message, without the failure kind in front of it."""
    if not kind or not message:
        return message or kind
    return message if message.lower().startswith(kind.lower()) else f"{kind}: {message}"


def progress_of(raw: object) -> Progress | None:
    """The progress in a heartbeat, if it can be shown: an agent may send anything."""
    if not isinstance(raw, dict):
        return None
    done, total, message = raw.get("done"), raw.get("total"), raw.get("message")
    if not isinstance(done, int) or not isinstance(total, int) or total < 1:
        return None
    return Progress(max(0, min(done, total)), total, message if isinstance(message, str) else "")


def state_of(agents: Sequence[AgentLine]) -> str:
    """The state of a machine: measuring, refusing jobs, idle, or silent; without an agent it is only reported from."""
    if not agents:
        return "no agent"
    if any(agent.job_id for agent in agents):
        return "at work"
    here = [agent for agent in agents if agent.present]
    if not here:
        return "silent"
    return "idle" if any(agent.refuses is None for agent in here) else "takes no jobs"


def spool_in_words(waiting: int | None, size: int | None) -> str:
    """The reports that an agent has not delivered yet, in words."""
    if waiting is None:
        return "unknown"
    if not waiting:
        return "none"
    return f"{waiting} {'delivery' if waiting == 1 else 'deliveries'}, {quantity(float(size or 0), 'B')}"


def hardware_in_words(facts: Mapping[str, Any]) -> str:
    """The facts that a person knows a machine by."""
    cores, memory = facts.get("cores"), facts.get("memory_gib")
    parts = [
        facts.get("gpu"),
        facts.get("cpu"),
        f"{cores} {'core' if cores == 1 else 'cores'}" if cores else None,
        f"{memory} GiB" if memory else facts.get("memory"),
    ]
    return ", ".join(str(part) for part in parts if part)


def percent(log_ratio: float) -> str:
    """A noise floor as the percentage by which two runs of one commit come apart."""
    value = math.expm1(log_ratio) * 100
    return f"{value:.1f} %" if value < 10 else f"{value:.0f} %"


def noise_line(
    floor: float, *, provisional: bool, comparisons: int, false_alarms: int, history: Sequence[tuple[date, float, bool]]
) -> NoiseLine:
    """The noise of a machine out of its figures."""
    if not comparisons:
        words = "no A/A comparisons yet"
    else:
        words = f"{comparisons} A/A, {false_alarms or 'no'} false {'alarm' if false_alarms == 1 else 'alarms'}"
    days = tuple(Floor(day.isoformat(), value, assumed) for day, value, assumed in history)
    return NoiseLine(f"{percent(floor)}{' assumed' if provisional else ''}", floor, words, provisional, days)


def quality_of(newest_first: Sequence[tuple[str, int]]) -> Quality:
    """The last uploads out of (quality, failures), the newest first."""
    marks = tuple(
        "busy" if quality != "clean" else "failed" if failures else "clean"
        for quality, failures in reversed(newest_first)
    )
    if not marks:
        return Quality((), "no results yet")
    parts = [f"{marks.count('clean')} of {len(marks)} clean"]
    for name, told in (("busy", "on a busy machine"), ("failed", "with failures")):
        if name in marks:
            parts.append(f"{marks.count(name)} {told}")
    return Quality(marks, ", ".join(parts))

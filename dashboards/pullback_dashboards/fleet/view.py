"""The fleet's line and the queue, as plain values."""

from dataclasses import dataclass
from datetime import datetime, timedelta

PRESENT_FOR = timedelta(minutes=3)  # two missed claims of 30 s and a slow minute: beyond that an agent is away


@dataclass(frozen=True)
class Progress:
    """How far an attempt is."""

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

    @property
    def short(self) -> str:
        """The commit's short name."""
        return self.sha[:9]


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


@dataclass(frozen=True)
class Fleet:
    """Agents, what they are doing and how much waits."""

    agents: tuple[AgentLine, ...] = ()
    running: tuple[JobLine, ...] = ()
    queued: int = 0

    @property
    def present(self) -> int:
        """How many agents were heard of lately."""
        return sum(agent.present for agent in self.agents)

    def machine_of(self, job: JobLine) -> str | None:
        """The name of the machine that has or had a job."""
        return next((agent.machine for agent in self.agents if agent.machine_id == job.machine_id), None)

    @property
    def last_seen(self) -> datetime | None:
        """When any agent was last heard of."""
        return max((agent.last_seen_at for agent in self.agents), default=None)


def is_present(last_seen_at: datetime, now: datetime) -> bool:
    """Whether an agent counts as here."""
    return now - last_seen_at < PRESENT_FOR


def progress_of(raw: object) -> Progress | None:
    """What a heartbeat said of its progress, if that can be shown: an agent may send anything."""
    if not isinstance(raw, dict):
        return None
    done, total, message = raw.get("done"), raw.get("total"), raw.get("message")
    if not isinstance(done, int) or not isinstance(total, int) or total < 1:
        return None
    return Progress(max(0, min(done, total)), total, message if isinstance(message, str) else "")

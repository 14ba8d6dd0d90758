"""The content of the page of a job, as plain values: its steps, its attempts, its log, and its reader's decisions."""

import codecs
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from pullback_dashboards.fleet.view import JobLine, Progress
from pullback_service.caller import Caller
from pullback_service.jobs.queries import ACTIVE, UNFINISHED

STEPS = ("waiting", "preparing", "measuring", "sending", "done")
_STEP_OF_PHASE: Mapping[str | None, int] = {None: 1, "prepare": 1, "upload": 3}
_MEASURING = 2
ENDED_BADLY = frozenset({"failed", "cancelled", "lost"})


@dataclass(frozen=True)
class Step:
    """One step on the way of a job: behind it, where it is, before it, or where it ended without a result."""

    name: str
    state: str


@dataclass(frozen=True)
class AttemptLine:
    """One agent's try."""

    number: int
    state: str
    machine: str
    machine_href: str
    agent: str
    phase: str | None
    progress: Progress | None
    failure: str | None
    began_at: datetime
    ended_at: datetime | None
    took_s: float | None
    log_bytes: int
    log_href: str
    shown: bool


@dataclass(frozen=True)
class LogView:
    """The end of a log: `left_out` bytes stand before it. `end` is where a stream goes on, behind whole characters."""

    text: str
    attempt: int
    left_out: int
    end: int
    whole_href: str
    streams: bool


@dataclass(frozen=True)
class JobActions:
    """The decisions possible on the job as it is, by its reader; `explained` tells why something is not."""

    cancel: bool = False
    cancel_loses: str | None = None
    retry: bool = False
    approve: bool = False
    explained: str | None = None


@dataclass(frozen=True)
class JobView:
    """A job."""

    job: JobLine
    steps: tuple[Step, ...]
    expected: str | None
    why: str | None
    timeout_s: float
    attempts: tuple[AttemptLine, ...]
    report_href: str | None
    decisions: JobActions
    log: LogView


def steps_of(state: str, phase: str | None) -> tuple[Step, ...]:
    """The way of a job. What ended badly stopped at some step, and which one is not kept."""
    if state == "queued":
        at = 0
    elif state in ACTIVE:
        at = _STEP_OF_PHASE.get(phase, _MEASURING)
    else:
        at = len(STEPS) - 1
    steps = [
        Step(name, "behind" if place < at else "here" if place == at else "ahead") for place, name in enumerate(STEPS)
    ]
    if state == "done":
        steps[-1] = Step("done", "behind")
    elif state in ENDED_BADLY:
        return (Step(STEPS[0], "behind"), Step(state, "ended"))
    return tuple(steps)


def decisions_for(job: JobLine, caller: Caller) -> JobActions:
    """The decisions open to a reader, and a sentence for those that the job allows and the reader's token does not."""
    can_cancel = job.state in UNFINISHED and not job.cancel_requested
    can_retry = job.state in ENDED_BADLY
    steers, administers = caller.has("upload"), caller.has("admin")
    missing = []
    if (can_cancel or can_retry) and not steers:
        missing.append(f"{'Cancelling' if can_cancel else 'Retrying'} needs a token with the scope upload")
    if job.awaits_approval and not administers:
        missing.append("approving needs the scope admin" if missing else "Approving needs a token with the scope admin")
    who = "you are not signed in" if caller.anonymous else f"you are signed in as {caller.name}"
    return JobActions(
        cancel=can_cancel and steers,
        cancel_loses="The results measured so far are discarded." if job.state in ACTIVE else None,
        retry=can_retry and steers,
        approve=job.awaits_approval and administers,
        explained=f"{', and '.join(missing)}; {who}." if missing else None,
    )


def whole_characters(content: bytes, *, more_follows: bool) -> tuple[str, int]:
    """The text of a piece of a log, and how many of its bytes that is: a character that is cut at the end waits."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(content, final=not more_follows)
    return text, len(content) - len(decoder.getstate()[0])


def from_a_line_on(content: bytes) -> int:
    """The start of the first whole line of a piece that was cut out of a log; 0 where it is all one line."""
    return content.find(b"\n") + 1

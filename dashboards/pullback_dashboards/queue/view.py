"""The content of the queue, as plain values: jobs with their forecasts, in words."""

from collections.abc import Sequence
from dataclasses import dataclass

from pullback_dashboards.choices import EmptyPage, Question
from pullback_dashboards.fleet.view import Fleet, JobLine
from pullback_dashboards.wording.moments import duration
from pullback_service.jobs.forecast import Forecast
from pullback_service.jobs.forecast_inputs import QueueForecast
from pullback_service.rows_to_models import filled

NO_ESTIMATE = "no estimate"


MOVING = frozenset({"turn", "pause"})
"""Of the reasons to wait, those that pass by themselves."""


@dataclass(frozen=True)
class WaitingLine:
    """A job that waits: why, and when and for how long it will run as far as that is known."""

    job: JobLine
    reason: str
    why: str
    starts: str
    takes: str
    starts_in_s: float | None = None
    takes_s: float | None = None
    where: str | None = None

    @property
    def stuck(self) -> bool:
        """True if no agent can take it as things are."""
        return self.reason not in MOVING

    @property
    def forecast(self) -> str:
        """Sentence with the known part of the job's expected start and duration."""
        known = [
            f"{word} {told}" for word, told in (("starts", self.starts), ("takes", self.takes)) if told != NO_ESTIMATE
        ]
        return (", ".join(known) or NO_ESTIMATE).capitalize()


@dataclass(frozen=True)
class RunningLine:
    """A job that is being measured, and when it will be done."""

    job: JobLine
    ends: str
    remaining_s: float | None = None


@dataclass(frozen=True)
class Filters:
    """The filters of the form, as the address holds them, and their choices."""

    state: str | None
    project: str | None
    suite: str | None
    machine: str | None
    origin: str | None
    projects: tuple[str, ...] = ()
    machines: tuple[str, ...] = ()

    @property
    def any(self) -> bool:
        """True if something is left out."""
        return any((self.project, self.suite, self.machine, self.origin))


@dataclass(frozen=True)
class QueueView:
    """The queue: running jobs, a page of waiting ones, a page of finished ones."""

    fleet: Fleet
    filters: Filters
    questions: tuple[Question, ...]
    running: tuple[RunningLine, ...]
    waiting: tuple[WaitingLine, ...]
    waiting_count: int
    first: int
    ended: tuple[JobLine, ...]
    earlier_href: str | None = None
    later_href: str | None = None
    older_href: str | None = None
    clear_href: str = "/jobs"
    empty: EmptyPage | None = None

    @property
    def last(self) -> int:
        """The place of the last waiting job that is shown."""
        return self.first + len(self.waiting) - 1


def waiting_lines(jobs: Sequence[JobLine], outlook: QueueForecast) -> tuple[WaitingLine, ...]:
    """Waiting jobs with their forecast; the end of a very long queue has none."""
    return tuple(waiting_line(job, outlook.waiting.get(job.id)) for job in jobs)


def waiting_line(job: JobLine, forecast: Forecast | None) -> WaitingLine:
    """A waiting job in words."""
    if forecast is None:
        return WaitingLine(job, "turn", "Far behind in the queue.", NO_ESTIMATE, NO_ESTIMATE)
    return filled(
        WaitingLine,
        forecast,
        job=job,
        starts=_starts(forecast),
        takes=NO_ESTIMATE if forecast.takes_s is None else f"about {duration(forecast.takes_s)}",
        where=forecast.machine,
    )


def running_lines(jobs: Sequence[JobLine], outlook: QueueForecast) -> tuple[RunningLine, ...]:
    """Jobs at work, and when each will be done."""
    return tuple(
        RunningLine(job, ends_in_words(outlook.remaining_s.get(job.id)), outlook.remaining_s.get(job.id))
        for job in jobs
    )


def ends_in_words(remaining_s: float | None) -> str:
    """The time when a running job will be done, in words."""
    if remaining_s is None:
        return NO_ESTIMATE
    return "soon" if remaining_s < 1 else f"in about {duration(remaining_s)}"


def _starts(forecast: Forecast) -> str:
    if forecast.reason not in MOVING:
        return "not yet"
    if forecast.starts_in_s is None:
        return NO_ESTIMATE
    return "now" if forecast.starts_in_s < 1 else f"in about {duration(forecast.starts_in_s)}"

"""Output of `up` while it runs: live bars on a terminal, a line per event elsewhere."""

from collections.abc import Sequence
from typing import Self

from rich.console import Console, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table

from pullback_cli.supervision.first_jobs import FollowedJob

_SHORT_SHA = 10


class Display:
    """Draws jobs as the service tells them; what is shown here is what was stored."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, transient=True, auto_refresh=False) if console.is_terminal else None
        self._told: dict[str, str] = {}
        self._told_at: dict[str, str] = {}

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()

    def say(self, sentence: str) -> None:
        """Print a sentence above whatever moves."""
        self._console.print(escape(sentence), soft_wrap=True)

    def show_result(self, result: RenderableType) -> None:
        """Print what a person came for."""
        self._console.print(result, soft_wrap=True)

    def show(self, jobs: Sequence[FollowedJob]) -> None:
        """Draw the jobs as they stand."""
        for job in jobs:
            self._tell_change(job)
            if self._live is None and not job.is_final:
                self._tell_progress(job)
        if self._live:
            self._live.update(_table([job for job in jobs if not job.is_final]), refresh=True)

    def _tell_change(self, job: FollowedJob) -> None:
        sha = str(job.commit["sha"])
        last, self._told[sha] = self._told.get(sha), job.state
        if last == job.state or (last is None and not job.is_final and job.state == "queued"):
            return
        if last is None and job.is_final:
            self.say(f"{_name(job)}: {job.state} already")
        elif job.is_final:
            reason = job.job.failure_message
            self.say(f"{_name(job)}: {job.state}" + (f" ({reason})" if reason else ""))
        elif self._live is None:
            self.say(f"{_name(job)}: {job.state}")

    def _tell_progress(self, job: FollowedJob) -> None:
        """A line a case: one for each group of its would fill a log."""
        sha, progress = str(job.commit["sha"]), job.progress
        message = str(progress.get("message") or "")
        subject = message.rpartition(": ")[0] or message
        if subject and subject != self._told_at.get(sha):
            self._told_at[sha] = subject
            self.say(f"{sha[:_SHORT_SHA]} [{progress.get('done') or 0}/{progress.get('total') or 0}] {message}")


def _table(jobs: Sequence[FollowedJob]) -> Table:
    table = Table.grid(padding=(0, 2))
    # One line a job however narrow the terminal: what is being measured matters more than the whole title.
    table.add_column(no_wrap=True, overflow="ellipsis", ratio=2)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, overflow="ellipsis", ratio=3)
    for job in jobs:
        progress = job.progress
        done, total = int(progress.get("done") or 0), int(progress.get("total") or 0)
        bar = ProgressBar(total=max(total, 1), completed=done, width=24) if total else ""
        message = str(progress.get("message") or job.state)
        table.add_row(escape(_name(job)), bar, f"{done}/{total}" if total else "", escape(message))
    return table


def _name(job: FollowedJob) -> str:
    title = str(job.commit["title"])
    return f"{str(job.commit['sha'])[:_SHORT_SHA]} {title[:40]}{'…' if len(title) > 40 else ''}"

"""Code shared by commands that measure: progress, Ctrl-C and SIGTERM, and a file that is refused before a minute is spent on it."""

import contextlib
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from pullback_cli.usage_errors import RefusalError, note

if TYPE_CHECKING:
    from pullback_runners.progress import Progress


def check_output(output: Path, option: str = "-o") -> None:
    """Refuse a file that cannot be written."""
    folder = output.absolute().parent
    if not folder.exists():
        raise RefusalError(
            f"cannot write {output}: the folder {folder} does not exist; create it, or give {option} another file"
        )
    if not folder.is_dir() or not os.access(folder, os.W_OK) or output.is_dir():
        raise RefusalError(f"cannot write {output}; give {option} a file in a writable folder")


def print_refusals(sentences: Iterable[str]) -> None:
    """Say on standard error what cannot be had."""
    for sentence in dict.fromkeys(sentences):
        note(sentence)


def print_once() -> Callable[[Iterable[str]], None]:
    """Print each refusal once, for a command that may get the same one several times; otherwise as `print_refusals`."""
    told: set[str] = set()

    def tell(sentences: Iterable[str]) -> None:
        new = [sentence for sentence in sentences if sentence not in told]
        print_refusals(new)
        told.update(new)

    return tell


class Interrupts:
    """Interrupts of a command: asked between steps, with the signal that came."""

    def __init__(self) -> None:
        self._signal_number: int | None = None

    def __call__(self) -> bool:
        """True if the command is to stop."""
        return self._signal_number is not None

    @property
    def status(self) -> int:
        """The exit status of an end by that signal, as shells count it: 130 for Ctrl-C, 143 for SIGTERM."""
        return 128 + (self._signal_number or signal.SIGINT)

    def note(self, signal_number: int, _frame: object) -> None:
        """Remember the first signal; the second one ends at once."""
        if self._signal_number is not None:
            if signal_number == signal.SIGINT:
                raise KeyboardInterrupt
            raise SystemExit(128 + signal_number)
        self._signal_number = signal_number


@contextlib.contextmanager
def interrupts() -> Iterator[Interrupts]:
    """Turn the first Ctrl-C or SIGTERM into a wish to stop, so that what was measured is kept; the second one ends at once.

    Commands of a build end with the first one.
    """
    from pullback_runners.projects.build_steps import stopped_by

    asked = Interrupts()
    previous = {number: signal.signal(number, asked.note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with stopped_by(asked):
            yield asked
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def progress(*, quiet: bool) -> "Iterator[Callable[[Progress], None]]":
    """Show progress on standard error: a bar on a terminal, a line for each step of a build and each finished case elsewhere."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True, highlight=False)
    if quiet:
        yield lambda _: None
    elif not console.is_terminal:
        yield _print_finished
    else:
        columns = (BarColumn(bar_width=24), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
        # Case names are full of brackets, which are markup to rich unless escaped.
        from rich.markup import escape

        with Progress(*columns, console=console, transient=True) as bar:
            task = bar.add_task("")
            yield lambda step: bar.update(task, completed=step.done, total=step.total, description=escape(step.message))


def _print_finished(step: "Progress") -> None:
    if step.phase == "build":
        typer.echo(step.message, err=True)
    elif step.phase == "finished":
        typer.echo(f"[{step.done}/{step.total}] {step.message}", err=True)

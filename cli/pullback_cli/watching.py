"""What commands that measure share: progress, Ctrl-C, and a file that is refused before a minute is spent on it."""

import contextlib
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from pullback_runners.progress import Progress

INTERRUPTED = 130


def check_output(command: str, output: Path, option: str = "-o") -> None:
    """Refuse a file that cannot be written."""
    from pullback_cli.refusals import RefusalError  # noqa: PLC0415 - only here

    folder = output.absolute().parent
    if not folder.is_dir() or not os.access(folder, os.W_OK) or output.is_dir():
        raise RefusalError(f"{command}: cannot write {output}; give {option} a file in an existing, writable folder")


def tell_refused(command: str, sentences: Iterable[str]) -> None:
    """Say on standard error, after what was done, what could not be had."""
    for sentence in dict.fromkeys(sentences):
        typer.echo(f"pullback {command}: {sentence}", err=True)


@contextlib.contextmanager
def interrupts() -> Iterator[Callable[[], bool]]:
    """Turn the first Ctrl-C into a wish to stop, so that what was measured is kept; the second one ends at once."""
    asked: list[int] = []

    def note(signal_number: int, _frame: object) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(signal_number)

    previous = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: bool(asked)
    finally:
        signal.signal(signal.SIGINT, previous)


@contextlib.contextmanager
def progress(*, quiet: bool) -> "Iterator[Callable[[Progress], None]]":
    """Show progress on standard error: a bar on a terminal, a line for each finished case elsewhere."""
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    console = Console(stderr=True, highlight=False)
    if quiet:
        yield lambda _: None
    elif not console.is_terminal:
        yield _print_finished
    else:
        columns = (BarColumn(bar_width=24), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
        # Case names are full of brackets, which are markup to rich unless escaped.
        from rich.markup import escape  # noqa: PLC0415

        with Progress(*columns, console=console, transient=True) as bar:
            task = bar.add_task("")
            yield lambda step: bar.update(task, completed=step.done, total=step.total, description=escape(step.message))


def _print_finished(step: "Progress") -> None:
    if step.phase == "finished":
        typer.echo(f"[{step.done}/{step.total}] {step.message}", err=True)

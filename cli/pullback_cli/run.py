"""`pullback run`: measure gradients here and now, without any service."""

import contextlib
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from pullback_runners.progress import Progress

CASE_FAILED = 1
USAGE = 2
INTERRUPTED = 130


def run(
    suite: Annotated[str, typer.Option(help="quick (under a minute) or standard (narrower intervals)")] = "quick",
    case: Annotated[list[str] | None, typer.Option(help="a workload, a case's name or a glob; may be repeated")] = None,
    variant: Annotated[list[str] | None, typer.Option(help="a tier or peer; may be repeated")] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="write a file that pyperf reads")] = None,
    engine: Annotated[Path | None, typer.Option(help="measure the engine of this checkout")] = None,
    workloads: Annotated[list[Path] | None, typer.Option(help="a Python file with workloads of your own")] = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="print the report as JSON instead of a table")] = False,
    list_only: Annotated[bool, typer.Option("--list", help="list the suite's cases and measure nothing")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="show no progress")] = False,
) -> None:
    """Measure gradients against the unfused baseline: time, memory, and whether they are right.

    Exit status: 0 all cases measured, 1 a case failed, 2 wrong usage, 130 interrupted (finished cases are kept).

    Examples:
    pullback run --suite quick -o bench.json

    pullback run --case 'dense_bias_act*' --variant fused --engine ../other-checkout
    """
    try:
        from pullback_runners.errors import UsageError  # noqa: PLC0415 - a runner's packages load when it runs
        from pullback_runners.report import write_report  # noqa: PLC0415
        from pullback_runners.runs import list_cases, run_suite  # noqa: PLC0415
    except ModuleNotFoundError as missing:
        typer.echo(f"pullback run: {missing.name} is not installed; pip install 'pullback[runner]'", err=True)
        raise typer.Exit(USAGE) from missing

    try:
        if list_only:
            _print_cases(list_cases(suite, case or (), workloads or ()), as_json=as_json)
            return
        if output is not None:
            _check_output(output)
        with _progress(quiet=quiet) as on_progress, _interrupts() as interrupted:
            report = run_suite(
                suite,
                case or (),
                variants=variant or (),
                engine_dir=engine,
                workload_files=workloads or (),
                on_progress=on_progress,
                stop=interrupted,
            )
        if output is not None:
            write_report(report, output)
    except UsageError as error:
        typer.echo(f"pullback run: {error}", err=True)
        raise typer.Exit(USAGE) from error

    if as_json:
        typer.echo(json.dumps(report))
    else:
        _print_table(report, output)
    if not report["harness"]["complete"]:
        raise typer.Exit(INTERRUPTED)
    if any(variant["error"] for each in report["cases"] for variant in each["variants"]):
        raise typer.Exit(CASE_FAILED)


def _check_output(output: Path) -> None:
    """Refuse a file that cannot be written before a minute is spent on what goes in it."""
    folder = output.absolute().parent
    if not folder.is_dir() or not os.access(folder, os.W_OK) or output.is_dir():
        typer.echo(f"pullback run: cannot write {output}; give -o a file in an existing, writable folder", err=True)
        raise typer.Exit(USAGE)


def _print_cases(cases: list[tuple[Any, str]], *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps([{"name": each.name, **each.document()} for each, _ in cases]))
        return
    width = max((len(each.name) for each, _ in cases), default=0)
    for each, description in cases:
        typer.echo(f"{each.name:<{width}}  {description}")


def _print_table(report: dict[str, Any], output: Path | None) -> None:
    from rich.console import Console  # noqa: PLC0415

    from pullback_runners.report.table import footnotes, report_table  # noqa: PLC0415

    # A pipe or a file has no width: rows stay whole there, for grep and for eyes.
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 200)
    console.print(report_table(report, console.width))
    console.print()
    for line in footnotes(report):
        console.print(line, soft_wrap=True)
    commit = report["commit"]
    what = f"{commit['sha'][:10]}{' with uncommitted changes' if commit['dirty'] else ''}" if commit else "no commit"
    console.print(f"{what} on {report['machine']['name']}, {report['duration_s']:.0f} s", soft_wrap=True)
    if output is not None:
        console.print(f"written to {output}; python -m pyperf stats {output}", soft_wrap=True)


@contextlib.contextmanager
def _interrupts() -> Iterator[Callable[[], bool]]:
    """Turn the first Ctrl-C into a wish to stop, so that finished cases are kept; the second one ends at once."""
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
def _progress(*, quiet: bool) -> "Iterator[Callable[[Progress], None]]":
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

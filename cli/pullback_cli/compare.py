"""`pullback compare`: compare the gradients of two commits."""

import json
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pullback_cli import completions
from pullback_cli.options import AsJson, Cases, Clone, ComparedVariants, Device, Quiet
from pullback_cli.run_interrupts import check_output, interrupts, print_once, print_refusals, progress
from pullback_cli.usage_errors import RefusalError, needs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pullback_cli.run_interrupts import Interrupts
    from pullback_runners.progress import Progress
    from pullback_runners.projects.configuration import ProjectFile
    from pullback_runners.projects.subjects import BuiltCommit

FAILED = 1
USAGE = 2
REGRESSION = 3


@needs("runner")
def compare(
    against: Annotated[
        str, typer.Option("--against", metavar="REV", help="The reference: an older commit, tag or branch.")
    ],
    candidate: Annotated[str | None, typer.Option(metavar="REV", help="The commit to judge; default: HEAD.")] = None,
    suite: Annotated[
        str,
        typer.Option(
            help="standard (finds 1-2 %, up to a minute a comparison), quick, full or trial (2 groups of 20 slices, finds nothing small); "
            "quick:poly9* is a part.",
            autocompletion=completions.suites,
        ),
    ] = "standard",
    case: Cases = None,
    device: Device = "cpu",
    variant: ComparedVariants = None,
    repository: Clone = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write a report that can be uploaded.")] = None,
    workloads: Annotated[
        list[Path] | None,
        typer.Option(
            help="A Python file with workloads; default: those of pullback.toml, in the candidate or else in the working tree."
        ),
    ] = None,
    *,
    dirty: Annotated[
        bool, typer.Option("--dirty", help="Judge the working tree, including uncommitted changes.")
    ] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Compare two commits of this project: build both and measure them in turns.

    Examples:
    pullback compare --against main

    pullback compare --against v1.2 --candidate v1.3 --case 'lstm*' --variant native -o compared.json

    pullback compare --against HEAD --dirty --suite quick --json
    """
    from pullback_runners.comparison_runs import compare_commits, failures, regressions
    from pullback_runners.errors import UsageError
    from pullback_runners.projects.subjects import build_subject
    from pullback_runners.report import write_report
    from pullback_runners.revisions import find_commit, require_project
    from pullback_runners.suites import narrowed_suite

    project = require_project((repository or Path.cwd()).resolve())
    if output is not None:
        check_output(output)
    if candidate == "":
        raise RefusalError("--candidate is empty; name a commit, or leave it out")
    name, globs = narrowed_suite(suite)
    reference_commit = find_commit(project.top, against)
    with (
        tempfile.TemporaryDirectory(prefix="pullback-") as temporary,
        progress(quiet=quiet) as tell,
        interrupts() as stop,
    ):
        with _build_errors(stop):
            judged = _candidate(project, candidate, Path(temporary), tell, dirty=dirty)
            files = workloads or project.workload_files(judged.files, project.top)
            built = build_subject(project, project.top, reference_commit, tell)
        print_refusals([warning for each in (built, judged) if (warning := each.warning())])
        print_refusals([] if candidate or dirty else _unused_workloads(project, files, judged))
        report = compare_commits(
            built,
            judged,
            name,
            [*(case or ()), *globs],
            device=device,
            variants=variant or (),
            usual=project.measure.variants,
            project=project.name,
            workload_files=files,
            on_refused=print_once(),
            on_progress=tell,
            stop=stop,
        )
    written = output
    try:
        if output is not None:
            write_report(report, output)
    except UsageError:
        written = None  # a full disk takes the file, not what was measured
        raise
    finally:
        if as_json:
            typer.echo(json.dumps(report))
        else:
            _print_table(report, written)
    if not report["harness"]["complete"]:
        raise typer.Exit(stop.status)
    if regressions(report):
        raise typer.Exit(REGRESSION)
    if report["harness"]["refused"]:
        raise typer.Exit(USAGE)
    if failures(report):
        raise typer.Exit(FAILED)


@contextmanager
def _build_errors(stop: "Interrupts") -> "Iterator[None]":
    """Refuse what cannot be built; end where that is for a signal."""
    from pullback_runners.errors import BuildError

    try:
        yield
    except BuildError as error:
        if stop():
            raise typer.Exit(stop.status) from error
        raise RefusalError(str(error)) from error


def _candidate(
    project: "ProjectFile", revision: str | None, folder: Path, tell: "Callable[[Progress], None]", *, dirty: bool
) -> "BuiltCommit":
    """The commit that is judged. What is not committed is judged only on purpose, and then the report says so."""
    from pullback_runners.projects.subjects import build_files, build_subject
    from pullback_runners.revisions import find_commit, uncommitted_changes

    if dirty and revision is not None:
        raise RefusalError("--dirty judges the files as they are, and --candidate a commit; give only one of them")
    commit = find_commit(project.top, revision or "HEAD")
    changed = uncommitted_changes(project) if revision is None else []
    if dirty:
        return build_files(project, {**commit, "dirty": bool(changed)}, folder, tell)
    if changed:
        raise RefusalError(
            f"{changed[0]}{f' and {len(changed) - 1} more' if len(changed) > 1 else ''} in {project.top} "
            f"{'differ' if len(changed) > 1 else 'differs'} from HEAD: "
            "commit, or add --dirty to judge the files as they are, or --candidate HEAD to judge the commit without them"
        )
    return build_subject(project, project.top, commit, tell)


def _unused_workloads(project: "ProjectFile", files: "Sequence[Path]", judged: "BuiltCommit") -> "Iterator[str]":
    """A sentence for each workload file that somebody has edited and not committed."""
    from pullback_runners.revisions import uncommitted_changes

    if any(judged.files in file.parents for file in files):
        for name in uncommitted_changes(project, project.measure.workloads):
            yield f"{name} differs from HEAD, whose file is measured; --workloads {name} takes it as it is"


def _print_table(report: dict[str, Any], output: Path | None) -> None:
    from rich.console import Console

    from pullback_runners.report.comparison_table import comparison_notes, comparison_table

    console = Console(highlight=False, width=None if sys.stdout.isatty() else 200)
    if report["comparisons"]:
        console.print(comparison_table(report))
        console.print()
    for line in comparison_notes(report):
        console.print(line, soft_wrap=True)
    if output is not None:
        console.print(f"written to {output}; pullback upload {output}", soft_wrap=True)

"""`pullback run`: measure gradients here and now, without any service."""

import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pullback_cli import completions
from pullback_cli.options import AsJson, Cases, Clone, Device, Quiet, Variants
from pullback_cli.run_interrupts import Interrupts, check_output, interrupts, print_once, print_refusals, progress
from pullback_cli.usage_errors import RefusalError, needs, note

if TYPE_CHECKING:
    from pullback_runners.progress import Progress
    from pullback_runners.projects.configuration import ProjectFile
    from pullback_runners.projects.subjects import BuiltCommit

CASE_FAILED = 1
USAGE = 2

Report = dict[str, Any]


@needs("runner")
def run(
    suite: Annotated[
        str | None,
        typer.Option(
            help="quick (45 seconds on two processors), standard (narrower intervals), full (every size) or trial (2 groups of 20 "
            "slices: does it work?); quick:poly9* is a part; default: the suite of pullback.toml, or quick.",
            autocompletion=completions.suites,
        ),
    ] = None,
    case: Cases = None,
    device: Device = "cpu",
    variant: Variants = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="Write the report, which pyperf reads too; with --commits, a folder of reports."
        ),
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write an HTML page with charts, in one file.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write the tables as Markdown.")] = None,
    engine: Annotated[Path | None, typer.Option(help="Measure the engine of this checkout.")] = None,
    commits: Annotated[
        str | None, typer.Option(help="Measure each commit of A..B that changed measured files, or one commit.")
    ] = None,
    repository: Clone = None,
    workloads: Annotated[list[Path] | None, typer.Option(help="A Python file with workloads of your own.")] = None,
    project: Annotated[
        str | None,
        typer.Option(help="Default: the project of pullback.toml; for other workloads their repository."),
    ] = None,
    *,
    instructions: Annotated[
        bool, typer.Option("--instructions", help="Also count instructions with valgrind (slow).")
    ] = False,
    as_json: AsJson = False,
    list_only: Annotated[bool, typer.Option("--list", help="List the suite's cases and measure nothing.")] = False,
    quiet: Quiet = False,
) -> None:
    """Measure gradients against their baseline: time, memory and correctness.

    In a repository with a pullback.toml these are its own workloads, elsewhere those that come with Pullback.

    Examples:
    pullback run --suite quick -o bench.json --html bench.html

    pullback run --case 'dense_bias_act*' --variant fused --engine ../other-checkout

    pullback run --device cuda --variant torch --variant jax

    pullback run --suite standard --commits v1.0..HEAD -o history && pullback upload history/*.json
    """
    from pullback_runners.errors import UsageError
    from pullback_runners.runs import list_cases, run_suite
    from pullback_runners.suites import narrowed_suite

    name, globs = narrowed_suite(suite or _usual_suite((repository or Path.cwd()).resolve()))
    cases = [*(case or ()), *globs]
    if list_only:
        with tempfile.TemporaryDirectory(prefix="pullback-") as temporary, progress(quiet=quiet) as tell:
            own = _own_project((repository or Path.cwd()).resolve(), Path(temporary), tell)
            files = workloads or own.get("workload_files", ())
            listed, refused = list_cases(name, cases, files, device, own.get("subject"))
        _print_cases(listed, as_json=as_json)
        print_refusals(refused)
        if refused:
            raise typer.Exit(USAGE)
        return
    _check_places(output, html, markdown, engine, commits)
    if not (quiet or workloads or engine or commits):
        _say_if_no_project((repository or Path.cwd()).resolve())

    told = print_once()

    def measure(stop: Callable[[], bool], tell: Callable[[Any], None], **what: Any) -> Report:
        own = {"variants": variant, "project": project, "workload_files": workloads}
        return run_suite(
            name,
            cases,
            device=device,
            with_instructions=instructions,
            partial=bool(variant),
            on_refused=told,
            on_progress=tell,
            stop=stop,
            **{**what, **{name: value for name, value in own.items() if value}},
        )

    with (
        progress(quiet=quiet) as tell,
        interrupts() as stop,
        tempfile.TemporaryDirectory(prefix="pullback-") as temporary,
    ):
        if commits is not None:
            reports, status = _measure_commits(
                (repository or Path.cwd()).resolve(), commits, output, lambda **e: measure(stop, tell, **e), tell, stop
            )
        else:
            own = {} if engine else _own_project((repository or Path.cwd()).resolve(), Path(temporary), tell, stop)
            reports, status = [measure(stop, tell, engine_dir=engine, **own)], 0
    written = output
    try:
        if commits is None:
            _write(reports[0], output, html, markdown)
    except UsageError:
        written = None  # a full disk takes the file, not what was measured
        raise
    finally:
        _show(reports, written, one=commits is None, as_json=as_json)
    raise typer.Exit(_status_of(reports, status, stop))


def _status_of(reports: list[Report], status: int, stop: Interrupts) -> int:
    """The exit status that the help promises; `status` is what went wrong with commits and their files."""
    if stop():
        return stop.status
    if any(report["harness"]["refused"] for report in reports):
        return USAGE
    failed = any(each["error"] for report in reports for case in report["cases"] for each in case["variants"])
    return max(status, CASE_FAILED if failed else 0)


def _show(reports: list[Report], output: Path | None, *, one: bool, as_json: bool) -> None:
    """Print reports; of several commits also what changed from each to the next."""
    if one:
        if as_json:
            typer.echo(json.dumps(reports[0]))
        else:
            print_table(reports[0], output)
        return
    from pullback_cli.run_changes import changes_between, lines_of

    changes = changes_between(reports)
    if as_json:
        documents = [None, *(change.document() for change in changes)]
        typer.echo(json.dumps([{**report, "changes": each} for report, each in zip(reports, documents, strict=False)]))
        return
    for report in reports:
        print_table(report, None)
    for line in lines_of(changes):
        typer.echo(line)


def _check_places(
    output: Path | None, html: Path | None, markdown: Path | None, engine: Path | None, commits: str | None
) -> None:
    """Refuse what cannot be written, and what does not go together, before anything is measured."""
    if commits is not None and any(place is not None for place in (engine, html, markdown)):
        raise RefusalError(
            "--commits goes with -o FOLDER, not with --engine, --html or --markdown: each commit is a report"
        )
    taken: dict[Path, str] = {}
    for file, option in ((None if commits else output, "-o"), (html, "--html"), (markdown, "--markdown")):
        if file is not None:
            check_output(file, option)
            if (other := taken.setdefault(file.resolve(), option)) != option:
                raise RefusalError(
                    f"{other} and {option} are both {file}, where one would overwrite the other; name two files"
                )


def _usual_suite(start: Path) -> str:
    """The suite that a project's file names, if none is asked for."""
    from pullback_runners.projects.configuration import find_project

    project = find_project(start)
    return project.measure.suite if project else "quick"


def _say_if_no_project(start: Path) -> None:
    """Tell somebody who is in a repository of their own that these are not their gradients."""
    from pullback_runners.git import is_clone
    from pullback_runners.projects.configuration import FILE
    from pullback_runners.revisions import checked_out_project

    if checked_out_project(start) is None and is_clone(start):
        typer.echo(f"no {FILE} here: these are Pullback's own workloads; `pullback init` begins with yours", err=True)


def _own_project(
    start: Path, folder: Path, tell: "Callable[[Progress], None]", stop: Interrupts | None = None
) -> dict[str, Any]:
    """The subject of a run without `--commits` in a user's project: its files as they are, built in a folder if they need it."""
    from pullback_runners.commits import describe_commit
    from pullback_runners.errors import BuildError
    from pullback_runners.projects.subjects import subject_of_files
    from pullback_runners.revisions import checked_out_project

    project = checked_out_project(start)
    if project is None or project.is_engine:
        return {}
    try:
        subject = subject_of_files(project, folder, note, tell)
    except BuildError as error:
        if stop is not None and stop():
            raise typer.Exit(stop.status) from error
        raise RefusalError(str(error)) from error
    return {"subject": subject, **_measured(project, describe_commit(project.top))}


def _measured(project: "ProjectFile", commit: Mapping[str, Any] | None) -> dict[str, Any]:
    """The settings in a project's file for the measurement of a commit."""
    from pullback_runners.report import Attribution

    return {
        "owner": Attribution(project.name, commit, project.measure.workloads),
        "usual": project.measure.variants,
        "baseline": project.measure.baseline,
        "workload_files": project.workload_files(project.top),
    }


def _measure_commits(
    repository: Path,
    wish: str,
    folder: Path | None,
    measure: Callable[..., Report],
    tell: "Callable[[Progress], None]",
    stop: Callable[[], bool],
) -> tuple[list[Report], int]:
    """Measure commit after commit, each written as soon as it is measured, and return the reports and an exit status.

    A commit that cannot be built or imported, and a report that cannot be written, are said and stop no other.
    """
    from pullback_runners.errors import UsageError
    from pullback_runners.report import write_report
    from pullback_runners.revisions import count_commits, find_commits, require_project
    from pullback_runners.workloads import FIX_IT

    project = require_project(repository)
    result = find_commits(project, wish)
    if folder is not None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RefusalError(f"{folder} cannot be made a folder ({error.strerror}); give -o another") from error
    _say_what_is_left_out(count_commits(project, wish) - len(result) if ".." in wish else 0, wish)
    reports: list[Report] = []
    status = 0
    for number, commit in enumerate(result, start=1):
        if stop():
            break
        typer.echo(f"commit {number} of {len(result)}: {commit['sha'][:10]} {commit['title']}", err=True)
        name = f"{number:03d}-{commit['sha'][:10]}"
        log = None if folder is None else folder / f"{name}.log"
        built = _built_or_told(project, commit, log, tell, stop)
        if built is None:
            status = max(status, CASE_FAILED)
            continue
        try:
            report = measure(subject=built.subject, **_measured(project, commit))
        except UsageError as error:
            _write_log(log, error)
            if number == len(result) and not reports:  # what no commit has is asked for wrongly
                raise
            status = max(status, CASE_FAILED)
            message = str(error).replace(FIX_IT, "")  # another commit may be able to load it
            note(f"commit {commit['sha'][:10]} cannot be measured: {message}")
            continue
        reports.append(report)
        try:
            if folder is not None:
                write_report(report, folder / f"{name}.json")
        except UsageError as error:
            status = USAGE
            note(str(error))
    return reports, status


def _say_what_is_left_out(commits: int, wish: str) -> None:
    if commits:
        named = f"{commits} commit{'s' if commits > 1 else ''} of {wish}"
        typer.echo(f"{named} left out: nothing that is measured was changed ([build] files)", err=True)


def _built_or_told(
    project: "ProjectFile",
    commit: Mapping[str, Any],
    log: Path | None,
    tell: "Callable[[Progress], None]",
    stop: Callable[[], bool],
) -> "BuiltCommit | None":
    """A commit made ready; None if it cannot be built, which is told, with what its build wrote in a file, or was interrupted."""
    from pullback_runners.errors import BuildError
    from pullback_runners.projects.subjects import build_subject

    try:
        built = build_subject(project, project.top, commit, tell)
    except BuildError as error:
        if stop():
            return None
        note(str(error))
        _write_log(log, error)
        return None
    print_refusals(filter(None, [built.warning()]))
    return built


def _write_log(file: Path | None, error: Exception) -> None:
    """Write what a build wrote, or the traceback of an import, where there is such a log and a folder for it."""
    if file is not None and (log := getattr(error, "log", "")):
        file.write_text(log, encoding="utf-8", errors="replace")


def _write(report: Report, output: Path | None, html: Path | None, markdown: Path | None) -> None:
    """Write what was asked for; a disk that is full stops with the first file."""
    from pullback_runners.report import write_report

    if output is not None:
        write_report(report, output)
    if html is not None:
        from pullback_runners.report.page import write_page

        write_page(report, html)
    if markdown is not None:
        from pullback_runners.report.markdown import write_markdown

        write_markdown(report, markdown)


def _print_cases(cases: list[tuple[Any, str]], *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps([{"name": each.name, **each.document()} for each, _ in cases]))
        return
    width = max((len(each.name) for each, _ in cases), default=0)
    for each, description in cases:
        typer.echo(f"{each.name:<{width}}  {description}")


def print_table(report: Report, output: Path | None) -> None:
    """Print a report: the table, then what a reader must know to judge it."""
    from rich.console import Console

    from pullback_runners.report.terminal_table import footnotes, report_table

    # A pipe or a file has no width: rows stay whole there, for grep and for eyes.
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 200)
    console.print(report_table(report, console.width))
    console.print()
    for line in _lines(footnotes(report), report, output):
        console.print(line, soft_wrap=True)


def _lines(notes: Iterator[Any], report: Report, output: Path | None) -> Iterator[Any]:
    yield from notes
    commit = report["commit"]
    what = f"{commit['sha'][:10]}{' with uncommitted changes' if commit['dirty'] else ''}" if commit else "no commit"
    yield f"{report['project']} at {what} on {report['machine']['name']}, {report['duration_s']:.0f} s"
    if output is not None:
        timed = any(each["metrics"].get("time", {}).get("slices") for c in report["cases"] for each in c["variants"])
        hint = f"python -m pyperf stats {output}" if timed else "nothing in it was timed, so pyperf cannot read it"
        yield f"written to {output}; {hint}"

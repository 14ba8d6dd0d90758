"""`pullback init`: the files that make a repository a project, filled in from what the repository shows."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pullback_cli.run_interrupts import interrupts, print_once, progress
from pullback_cli.usage_errors import RefusalError, needs, note

if TYPE_CHECKING:
    from pullback_runners.projects.configuration import ProjectFile
    from pullback_runners.projects.detection import Guesses
    from pullback_runners.projects.functions import PlainFunction

CASE_FAILED = 1
NOTHING = "none"
_MOST_NAMED = 3


@needs("runner")
def init(
    repository: Annotated[Path | None, typer.Option(help="A clone; default: the one of this folder.")] = None,
    name: Annotated[str | None, typer.Option(help="Name of the project.")] = None,
    python: Annotated[str | None, typer.Option(help="Python version to measure with, such as 3.12.")] = None,
    requirements: Annotated[
        list[str] | None,
        typer.Option(help="Requirements file of the environment; may be repeated; none: the environment of pullback."),
    ] = None,
    path: Annotated[list[str] | None, typer.Option(help="A folder to import from; may be repeated.")] = None,
    module: Annotated[
        list[str] | None, typer.Option("--import", help="A module that is imported from the commit; may be repeated.")
    ] = None,
    install: Annotated[
        str | None, typer.Option(help="path (nothing is installed) or wheel (built by pip or uv).")
    ] = None,
    workloads: Annotated[
        list[str] | None,
        typer.Option(help="A workload file of the repository; default: bench/gradients.py; may be repeated."),
    ] = None,
    function: Annotated[
        str | None, typer.Option(metavar="MODULE:NAME", help="The function that bench/gradients.py differentiates.")
    ] = None,
    engine: Annotated[
        str | None, typer.Option(help="Engine of the gradients: numpy, jax, torch, autograd or mygrad.")
    ] = None,
    *,
    force: Annotated[bool, typer.Option("--force", help="Overwrite existing files.")] = False,
    measure: Annotated[bool, typer.Option("--run/--no-run", help="Measure one case of each workload.")] = True,
) -> None:
    """Set up this repository: write pullback.toml and bench/gradients.py, and measure one case.

    Not interactive. Each guess can be overridden by an option, or changed in the files afterwards.

    Examples:
    pullback init

    pullback init --function ridge.losses:squared_error --requirements none

    pullback init --workloads bench/mine.py --force --no-run
    """
    from pullback_runners.projects.configuration import FILE, parse_project
    from pullback_runners.projects.detection import detect
    from pullback_runners.projects.drafts import WORKLOAD_FILE, project_text
    from pullback_runners.projects.functions import ENGINES
    from pullback_runners.projects.scaffold import require_work_tree
    from pullback_runners.report.attribution import origin_name
    from pullback_runners.report.files import write_whole

    start = (repository or Path.cwd()).resolve()
    top = require_work_tree(start)
    _check_place(top / FILE, force=force)
    if engine is not None and engine not in ENGINES:
        raise RefusalError(f"--engine {engine} is not known; give {', '.join(ENGINES)}")
    if name == "":
        raise RefusalError("--name is empty; give a name, or leave it out")
    guesses = detect(top, origin_name(top), start, next(iter(_listed(path) or ()), None))
    for table, key, value in (
        ("project", "name", name),
        ("build", "python", python),
        ("build", "requirements", _listed(requirements)),
        ("build", "path", _listed(path)),
        ("build", "import", _listed(module)),
        ("build", "install", install),
    ):
        guesses = guesses.given(table, key, value)
    files = _listed(workloads) or (WORKLOAD_FILE,)
    text = project_text(guesses, files)
    _check_text(text)
    project = parse_project(text, top)
    if missing := [each for each in workloads or () if not (top / each).is_file()]:
        raise RefusalError(f"--workloads {missing[0]} is not in {top}; leave it out to have {WORKLOAD_FILE} written")
    functions = _functions(project, function, engine)
    keeps = (top / files[0]).exists() and not (force and not workloads)
    typer.echo(f"project in {top}")
    for each in guesses.guesses:
        shown = each.value if isinstance(each.value, str) else ", ".join(each.value) or NOTHING
        typer.echo(f"  {f'{each.table}.{each.key}':<20} {shown:<24} {each.reason}")
    for remark in guesses.notes:
        typer.echo(f"  note: {remark}")
    try:
        (top / files[0]).parent.mkdir(parents=True, exist_ok=True)
        write_whole(text, top / FILE)
    except OSError as error:
        is_there = isinstance(error, FileExistsError | NotADirectoryError)
        remedy = "rename the existing file" if is_there else "fix the permissions of its folder"
        raise RefusalError(f"{error.filename} cannot be written ({error.strerror}); {remedy}") from error
    typer.echo(f"wrote {FILE}")
    status = _write_and_measure(project, guesses, functions, engine, keeps=keeps, measure=measure, chosen=function)
    written = " ".join([FILE, *(() if keeps else files)])
    typer.echo(f'next: git add {written} && git commit -m "Measure gradients"')
    typer.echo("then: pullback up, and after your next commit pullback compare --against HEAD~1")
    raise typer.Exit(status)


def _check_place(file: Path, *, force: bool) -> None:
    """Refuse a file that must not be overwritten."""
    if os.path.lexists(file):
        if not file.is_file():
            raise RefusalError(f"{file} is no file, nor a link to one; remove it")
        if not force:
            raise RefusalError(f"{file} already exists; edit it, or overwrite it with --force")


def _check_text(text: str) -> None:
    """Refuse names of files that are not UTF-8: the file is."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        excerpt = ascii(text.splitlines()[text.count("\n", 0, error.start)])
        raise RefusalError(
            f"{excerpt} cannot be written into pullback.toml, which is UTF-8; give another by its option, as --name"
        ) from error


def _listed(values: Sequence[str] | None) -> tuple[str, ...] | None:
    """The values of a repeatable option; `none` stands for an empty list."""
    return None if values is None else tuple(each for each in values if each != NOTHING)


def _functions(project: "ProjectFile", chosen: str | None, engine: str | None) -> list["PlainFunction"]:
    """Functions to begin with: the one that was chosen, or all that can be taken, those of one engine if it is given."""
    from pullback_runners.projects.functions import plain_functions
    from pullback_runners.projects.subjects import paths_of

    folders = [project.top / each for each in paths_of(project.build, project.top)]
    if missing := [folder for folder in folders if not folder.is_dir()]:
        raise RefusalError(f"--path {missing[0].relative_to(project.top)} is no folder of {project.top}")
    functions = [each for folder in folders for each in plain_functions(folder, project.top)]
    if chosen is not None:
        functions = [each for each in functions if f"{each.module}:{each.name}" == chosen]
        if not functions:
            raise RefusalError(
                f"--function {chosen} is no function at the top of a module that only computes from arrays and numbers; "
                "leave it out, and call it in bench/gradients.py"
            )
    return [each for each in functions if engine in {None, each.engine}]


def _write_and_measure(
    project: "ProjectFile",
    guesses: "Guesses",
    functions: list["PlainFunction"],
    engine: str | None,
    *,
    keeps: bool,
    measure: bool,
    chosen: str | None,
) -> int:
    """Write the workload file if there is none, measure a case of each workload, and return the exit status."""
    import tempfile

    from pullback_runners.errors import BuildError
    from pullback_runners.projects.scaffold import write_workload
    from pullback_runners.projects.subjects import subject_of_files

    file = project.top / project.measure.workloads[0]
    engine = engine or guesses.engine
    with tempfile.TemporaryDirectory(prefix="pullback-") as folder:
        subject, failed = None, None
        if measure:
            try:
                with progress(quiet=False) as tell:
                    subject = subject_of_files(project, Path(folder), note, tell)
                # the files are imported where they lie, and init leaves there what it says that it writes
                subject = replace(subject, variables={**subject.variables, "PYTHONDONTWRITEBYTECODE": "1"})
            except BuildError as error:
                failed = str(error)
        if keeps:
            typer.echo(f"kept {project.measure.workloads[0]}, which was there")
        else:
            draft = write_workload(file, functions, engine, project.name, subject, tell=typer.echo)
            for sentence in draft.refused:
                typer.echo(f"  {sentence}")
            what = draft.function
            example = (
                f"an example, by {what.engine}, that calls nothing of this repository: call yours in its place first"
            )
            told = f"{what.module}.{what.name} of {what.place}" if what.module else example
            typer.echo(f"wrote {project.measure.workloads[0]}: {told}")
            _hint_at_gradients(project)
            if chosen is not None and not what.module:
                return CASE_FAILED
        if failed is not None:
            note(failed)
            return CASE_FAILED
        return _measure(project, subject) if measure else 0


def _hint_at_gradients(project: "ProjectFile") -> None:
    """Name functions that look as if they returned a gradient, which the file does not call."""
    from pullback_runners.projects.functions import gradient_functions
    from pullback_runners.projects.subjects import paths_of

    functions = [
        each for path in paths_of(project.build, project.top) for each in gradient_functions(project.top / path)
    ]
    if functions:
        more = f" and {len(functions) - _MOST_NAMED} more" if len(functions) > _MOST_NAMED else ""
        typer.echo(
            f"  found {', '.join(functions[:_MOST_NAMED])}{more}, by the name a gradient: to measure it, declare it as a variant in the file, "
            'as docs/engines.md of Pullback shows ("Any callable")'
        )


def _measure(project: "ProjectFile", subject: Any) -> int:
    """Measure one case of each workload and print the table."""
    from pullback_cli.run import print_table
    from pullback_runners.commits import describe_commit
    from pullback_runners.measurement.subject_cases import choose_for
    from pullback_runners.report import Attribution
    from pullback_runners.runs import run_suite

    files = project.workload_files(project.top)
    choice = choose_for(subject, "trial", files=files)
    first = {case.workload: case.name for case in reversed(choice.cases)}
    with progress(quiet=False) as tell, interrupts() as stop:
        report = run_suite(
            "trial",
            list(first.values()),
            subject=subject,
            owner=Attribution(project.name, describe_commit(project.top), project.measure.workloads),
            workload_files=files,
            on_refused=print_once(),
            on_progress=tell,
            stop=stop,
        )
    print_table(report, None)
    if stop():
        return stop.status
    failed = any(each["error"] for case in report["cases"] for each in case["variants"])
    return CASE_FAILED if failed or report["harness"]["refused"] else 0

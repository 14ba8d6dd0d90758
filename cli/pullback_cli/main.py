"""The command `pullback`: a table of subcommands, each of which imports its part when it runs."""

import sys
from typing import Annotated

import typer

from pullback_cli import (
    agent,
    check,
    compare,
    db,
    down,
    export,
    gradbench,
    import_history,
    init,
    job,
    log,
    migrate,
    project,
    run,
    serve,
    status,
    token,
    up,
    upload,
    version,
    worker,
    workloads,
)
from pullback_cli.refusals import sentence_of
from pullback_runners.agent.lifeline import die_with_named_parent

app = typer.Typer(
    name="pullback",
    help="Continuous benchmarking for gradients: measure, store and track the memory and speed of backward passes.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command("init")(init.init)
app.command("up")(up.up)
app.command("status")(status.status)
app.command("down")(down.down)
app.command("run")(run.run)
app.command("workloads")(workloads.workloads)
app.command("gradbench")(gradbench.gradbench)
app.command("compare")(compare.compare)
app.command("check")(check.check)
app.command("upload")(upload.upload)
app.command("export")(export.export)
app.command("import")(import_history.import_history)
app.command("serve")(serve.serve)
app.command("worker")(worker.worker)
app.command("log")(log.log)
app.command("migrate")(migrate.migrate)
app.command("agent")(agent.agent)
app.add_typer(job.app, name="job")
app.add_typer(token.app, name="token")
app.add_typer(project.app, name="project")
app.add_typer(db.app, name="db")
app.command("version")(version.version)


def _print_release(asked: bool) -> None:  # noqa: FBT001 - typer hands it over so
    if asked:
        typer.echo(version.release())
        raise typer.Exit


@app.callback()
def _root(
    *,
    _version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_release,
            is_eager=True,
            help="Print the version and exit; `pullback version` prints more.",
        ),
    ] = False,
) -> None:
    """Continuous benchmarking for gradients."""


def main() -> None:
    """Run the command line: exit code 2 and one sentence where the surroundings or the usage are wrong."""
    die_with_named_parent()
    try:
        app()
    except Exception as error:
        sentence = sentence_of(error)
        if sentence is None:
            raise
        sys.stderr.write(f"pullback: {sentence}\n")
        raise SystemExit(2) from error

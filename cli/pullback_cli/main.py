"""The command `pullback`: a table of subcommands, each of which imports its part when it runs."""

import sys
from io import TextIOWrapper
from typing import Annotated

import typer

from pullback_cli import (
    agent,
    bisect,
    channel,
    check,
    compare,
    db,
    down,
    export,
    gradbench,
    import_history,
    incident,
    init,
    job,
    log,
    migrate,
    project,
    report,
    rules,
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
from pullback_cli.exit_statuses import add_exit_statuses
from pullback_cli.usage_errors import note, sentence_of, status_of
from pullback_runners.agent.parent_death import die_with_named_parent

app = typer.Typer(
    name="pullback",
    help="Continuous benchmarking for gradients: measure, store and track the memory and speed of backward passes.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_YOURS = "Measure your repository"
_RESULTS = "Use a service"
_OPERATE = "Operate a service"
_OTHER = "Other"

app.command("init", rich_help_panel=_YOURS)(init.init)
app.command("run", rich_help_panel=_YOURS)(run.run)
app.command("compare", rich_help_panel=_YOURS)(compare.compare)
app.command("bisect", rich_help_panel=_YOURS)(bisect.bisect)
app.command("up", rich_help_panel=_YOURS)(up.up)
app.command("status", rich_help_panel=_YOURS)(status.status)
app.command("down", rich_help_panel=_YOURS)(down.down)
app.command("workloads", rich_help_panel=_YOURS)(workloads.workloads)
app.command("upload", rich_help_panel=_RESULTS)(upload.upload)
app.command("check", rich_help_panel=_RESULTS)(check.check)
app.command("import", rich_help_panel=_RESULTS)(import_history.import_history)
app.command("export", rich_help_panel=_RESULTS)(export.export)
app.command("log", rich_help_panel=_RESULTS)(log.log)
app.add_typer(job.app, name="job", rich_help_panel=_RESULTS)
app.add_typer(incident.app, name="incident", rich_help_panel=_RESULTS)
app.command("rules", rich_help_panel=_RESULTS)(rules.rules)
app.add_typer(report.app, name="report", rich_help_panel=_RESULTS)
app.add_typer(project.app, name="project", rich_help_panel=_OPERATE)
app.add_typer(channel.app, name="channel", rich_help_panel=_OPERATE)
app.add_typer(token.app, name="token", rich_help_panel=_OPERATE)
app.command("serve", rich_help_panel=_OPERATE)(serve.serve)
app.command("worker", rich_help_panel=_OPERATE)(worker.worker)
app.command("agent", rich_help_panel=_OPERATE)(agent.agent)
app.command("migrate", rich_help_panel=_OPERATE)(migrate.migrate)
app.add_typer(db.app, name="db", rich_help_panel=_OPERATE)
app.command("gradbench", rich_help_panel=_OTHER)(gradbench.gradbench)
app.command("version", rich_help_panel=_OTHER)(version.version)
add_exit_statuses(app)


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
    """Run the command line: one sentence where the environment or the usage is wrong (2), or the service is away (75)."""
    die_with_named_parent()
    if isinstance(sys.stdout, TextIOWrapper):  # as standard error: names of files need not be UTF-8
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        app()
    except Exception as error:
        sentence = sentence_of(error)
        if sentence is None:
            raise
        note(sentence)
        raise SystemExit(status_of(error)) from error

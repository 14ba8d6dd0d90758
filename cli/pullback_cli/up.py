"""`pullback up`: database, API, pages, worker and a local agent, all started and stopped together."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pullback_cli.paths import DATA
from pullback_cli.usage_errors import needs

if TYPE_CHECKING:
    from pullback_runners.projects.configuration import ProjectFile


@needs("service,runner")
def up(
    *,
    detach: Annotated[
        bool, typer.Option("--detach", "-d", help="Return once ready; `pullback down` stops it.")
    ] = False,
    port: Annotated[
        int, typer.Option(envvar="PULLBACK_PORT", min=0, max=65535, help="Port; 0 takes a free one.")
    ] = 8000,
    host: Annotated[
        str, typer.Option(help="Address to listen on; beyond loopback needs PULLBACK_AUTH=token.")
    ] = "127.0.0.1",
    data: Annotated[
        Path, typer.Option(envvar="PULLBACK_DATA", help="Folder for the database and everything else.")
    ] = DATA,
    repository: Annotated[
        Path | None, typer.Option(help="Clone whose commits are measured; default: the one of this folder.")
    ] = None,
    no_agent: Annotated[bool, typer.Option("--no-agent", help="Measure nothing on this machine.")] = False,
    suite: Annotated[str, typer.Option(help="Suite to measure, narrowed by globs like quick:poly9*.")] = "quick",
) -> None:
    """Start a service and an agent for this repository, and measure its commits as they are made.

    Without a pullback.toml in the folder, nothing is measured and only uploads are shown. The database is an embedded Postgres in the data folder, or the one of DATABASE_URL. Ctrl-C stops everything.

    Examples:
    pullback up

    pullback up --detach --port 8001 --data /srv/pullback
    """
    from pullback_service.settings import load_settings, refuse_open_bind

    # What is wrong with them is said before anything heavy is loaded, and before a process in the background has to say it.
    settings = load_settings()
    refuse_open_bind(host, settings)
    settings.token()
    settings.named_database_url()

    from pullback_cli.supervision.detached import start_detached
    from pullback_cli.supervision.plan import UpOptions

    options = UpOptions(
        data=data.expanduser().absolute(),
        project=None if no_agent else _project(repository),
        host=host,
        port=port,
    )
    if not detach:
        from pullback_cli.supervision.foreground import run_up

        raise typer.Exit(run_up(options, settings, suite=suite))
    state, code, message = start_detached(options, suite=suite)
    if state is None:
        sys.stderr.write(message + "\n")
        raise typer.Exit(code)
    typer.echo(
        f"Pullback is ready: {state.url}   (`pullback status` shows what runs, `pullback down` stops it; data in {options.data})"
    )


def _project(repository: Path | None) -> "ProjectFile | None":
    """The project that is measured; none where the folder has none and nobody named another."""
    from pullback_runners.errors import UsageError
    from pullback_runners.projects.configuration import find_project
    from pullback_runners.revisions import require_project

    try:
        return require_project((repository or Path.cwd()).resolve())
    except UsageError as error:
        if repository is not None or find_project(Path.cwd()) is not None:
            raise
        typer.echo(f"note: nothing is measured here: {error}")
        return None

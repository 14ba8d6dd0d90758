"""`pullback up`: database, API, pages, worker and a local agent, all started and stopped together."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from pullback_cli.places import DATA, default_repository
from pullback_cli.refusals import needs


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
        Path | None, typer.Option(help="Clone whose commits are measured; default: this one.")
    ] = None,
    no_agent: Annotated[bool, typer.Option("--no-agent", help="Measure nothing on this machine.")] = False,
    suite: Annotated[str, typer.Option(help="Suite to measure, narrowed by globs like quick:poly9*.")] = "quick",
) -> None:
    """Start everything and measure the checked-out commit.

    The database is an embedded Postgres in the data folder, or the one of DATABASE_URL. Ctrl-C stops everything.

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
        repository=(repository or default_repository()).resolve(),
        host=host,
        port=port,
        with_agent=not no_agent,
    )
    if not detach:
        from pullback_cli.supervision.foreground import run_up

        raise typer.Exit(run_up(options, settings, suite=suite))
    state, code, said = start_detached(options, suite=suite)
    if state is None:
        sys.stderr.write(said + "\n")
        raise typer.Exit(code)
    typer.echo(
        f"Pullback is ready: {state.url}   (`pullback status` looks, `pullback down` stops; data in {options.data})"
    )

"""`pullback down`: stop everything that `pullback up` started, and wait until it is gone."""

from pathlib import Path
from typing import Annotated

import typer

from pullback_cli.paths import DATA
from pullback_cli.usage_errors import needs

STOP_TIMEOUT_S = 90.0


@needs("service")
def down(
    *,
    data: Annotated[Path, typer.Option(envvar="PULLBACK_DATA", help="Folder that was given to `pullback up`.")] = DATA,
) -> None:
    """Stop what `pullback up` started on a folder, Postgres included; the data stays.

    Examples:
    pullback down

    pullback down --data /srv/pullback
    """
    from pullback_cli.supervision.state_file import find_up, forget_state, only_up_on, read_state
    from pullback_runners.agent.process_mark import end_politely, end_trees
    from pullback_service.postgres import EmbeddedPostgres

    folder = data.expanduser().absolute()
    stopped: list[str] = []
    up = find_up(folder)
    if up is not None and end_politely(up, grace_s=STOP_TIMEOUT_S):
        stopped.append("up")
    if folder.is_dir():
        # `up` stops its own in order; what it could not stop itself is ended from here, once no `up` holds the folder.
        with only_up_on(folder):
            state = read_state(folder)
            if state is not None:
                stopped += ["its children"] if end_trees(state.children.values()) else []
                forget_state(folder)
            if (folder / "postgres").exists() and EmbeddedPostgres(folder / "postgres").stop():
                stopped.append("Postgres")
    typer.echo(
        f"stopped ({', '.join(stopped)}); data is kept in {folder}" if stopped else f"nothing is running on {folder}"
    )

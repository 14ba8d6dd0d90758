"""`--server`: the service that a command talks to."""

import os
from pathlib import Path
from typing import Annotated

import typer

from pullback_cli.paths import DATA

DEFAULT_SERVER = "http://127.0.0.1:8000"


def server_of_folder() -> str:
    """The address of the `pullback up` that runs on the data folder of this folder, else that of one with no options."""
    from pullback_cli.supervision.state_file import find_up, read_state

    folder = Path(os.environ.get("PULLBACK_DATA") or DATA).expanduser().absolute()
    if find_up(folder) and (state := read_state(folder)):
        return state.url
    return DEFAULT_SERVER


def _named_or_of_folder(context: typer.Context, parameter: typer.CallbackParam, server: str) -> str:
    source = getattr(context.get_parameter_source(str(parameter.name)), "name", "")
    return server_of_folder() if source == "DEFAULT" else server


Server = Annotated[
    str,
    typer.Option(
        envvar="PULLBACK_SERVER",
        help="Address of the service; default: the `pullback up` of this folder, or port 8000 of this machine.",
        callback=_named_or_of_folder,
        show_default=False,
    ),
]

"""Common parts of commands that talk to a service: options, client, and output as JSON or text."""

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pullback_cli.jobs.output import show_json
from pullback_cli.options import AsJson, TokenFile
from pullback_cli.server_option import DEFAULT_SERVER, Server
from pullback_cli.usage_errors import needs


def _shared(*, server: Server = DEFAULT_SERVER, token_file: TokenFile = None, as_json: AsJson = False) -> None:
    """The options of all such commands, behind their own."""


def service_command(
    name: str, show: Callable[[Any], None] | None = None
) -> Callable[[Callable[..., Any]], Callable[..., None]]:
    """Mark a command that is given the client as its first argument and returns the answer, which `show` prints in words.

    Without `show` it prints the answer itself, and takes `as_json`.
    """

    def mark(command: Callable[..., Any]) -> Callable[..., None]:
        @functools.wraps(command)
        def asked(*, server: str, token_file: Path | None, as_json: bool, **own: Any) -> None:
            from pullback_cli.services import connected_client

            with connected_client(server, token_file) as service:
                answer = command(service, **own) if show else command(service, as_json=as_json, **own)
            if show:
                (show_json if as_json else show)(answer)

        _, *own = inspect.signature(command).parameters.values()
        shared = inspect.signature(_shared).parameters.values()
        parameters = [*(each for each in own if each.name != "as_json"), *shared]
        made = needs("runner", name)(asked)
        made.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # typer reads it
        made.__annotations__ = {each.name: each.annotation for each in parameters}
        return made

    return mark

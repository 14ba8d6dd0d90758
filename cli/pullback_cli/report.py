"""`pullback report`: taking back reports."""

from typing import Annotated
from uuid import UUID

import typer

from pullback_cli.options import DEFAULT_SERVER, AsJson, Server, TokenFile
from pullback_cli.usage_errors import needs

app = typer.Typer(no_args_is_help=True)


@app.callback()
def report() -> None:
    """Take back reports that should never have come.

    Examples:
    pullback report withdraw 0f8fad5b-d9cb-469f-a165-70867728950e
    """


@app.command()
@needs("runner", "report withdraw")
def withdraw(
    *,
    report_id: Annotated[
        UUID, typer.Argument(metavar="ID", help="Id of a report, as its page and its address have it.")
    ],
    server: Server = DEFAULT_SERVER,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Take back a report: its points leave history, and the incidents that it made are judged anew.

    The report and its file are kept, and marked; it does not come back. Needs a token of the scope upload.

    Exit status: 0, also where it was withdrawn before; 2 where there is no such report, or the service refused.

    Examples:
    pullback report withdraw 0f8fad5b-d9cb-469f-a165-70867728950e

    pullback report withdraw 0f8fad5b-d9cb-469f-a165-70867728950e --json
    """
    from pullback_cli.jobs.showing import show_json
    from pullback_cli.services import asking

    with asking(server, token_file) as service:
        found = service.withdraw_report(report_id)
    if as_json:
        show_json(found)
    else:
        typer.echo(
            f"report {found.id} of {found.project} at {found.commit[:10]} is withdrawn: {found.points} points left history"
        )

"""`pullback report`: taking back reports."""

from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from pullback_cli.service_commands import service_command

if TYPE_CHECKING:
    from pullback_service.client import Client, models

app = typer.Typer(no_args_is_help=True)


@app.callback()
def report() -> None:
    """Withdraw reports that were uploaded by mistake.

    Examples:
    pullback report withdraw 0f8fad5b-d9cb-469f-a165-70867728950e
    """


def _show(found: "models.ReportSummary") -> None:
    typer.echo(
        f"report {found.id} of {found.project} at {found.commit[:10]} is withdrawn: {found.points} points left history"
    )


@app.command()
@service_command("report withdraw", _show)
def withdraw(
    service: "Client",
    *,
    report_id: Annotated[
        UUID, typer.Argument(metavar="ID", help="Id of a report, as shown on its page and in its address.")
    ],
) -> "models.ReportSummary":
    """Withdraw a report: its points are removed from history, and incidents that rest on it are judged again.

    The report and its file are kept and marked as withdrawn; this cannot be undone. Needs a token of the scope upload.

    Examples:
    pullback report withdraw 0f8fad5b-d9cb-469f-a165-70867728950e

    pullback report withdraw 0f8fad5b-d9cb-469f-a165-70867728950e --json
    """
    return service.withdraw_report(report_id)

"""`pullback import`: the history another tool has kept, commit by commit."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pullback_cli.options import AsJson, TokenFile
from pullback_cli.server_option import DEFAULT_SERVER, Server
from pullback_cli.upload import show_receipts
from pullback_cli.usage_errors import RefusalError, needs

if TYPE_CHECKING:
    from pullback_service.client import models


@needs("service")
def import_history(
    path: Annotated[Path, typer.Argument(help="asv's `results`, a data.js, or a folder of GradBench's nightlies.")],
    *,
    project: Annotated[str, typer.Option(help="Project of the history.")],
    machine: Annotated[str | None, typer.Option(help="Machine it was measured on; default: the file's.")] = None,
    branch: Annotated[str | None, typer.Option(help="Branch of its commits.")] = None,
    direction: Annotated[str | None, typer.Option(help="smaller or bigger, if the files do not say.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Store nothing; print what would be stored.")] = False,
    server: Server = DEFAULT_SERVER,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Import a history, one report for each commit; safe to repeat, and to continue after an interruption.

    Examples:
    pullback import .asv/results --project parser

    pullback import gh-pages/dev/bench/data.js --project parser --machine ci
    """
    from pullback_cli.uploading.histories import pieces_of
    from pullback_cli.uploading.request import Uploads
    from pullback_service.errors import RequestError

    parameters = {
        "project": project,
        "machine": machine,
        "branch": branch,
        "direction": direction,
        "dry_run": dry_run or None,
    }
    receipts: list[models.UploadReceipt] = []
    try:
        with Uploads(server, token_file) as uploads:
            for piece in pieces_of(path):
                receipt = uploads.send(piece.body, {**parameters, **piece.said}, name=f"{path}: {piece.name}")
                receipts.append(receipt)
    except RequestError as error:
        raise RefusalError(f"{path}: {error.detail}") from error
    finally:  # a refusal does not hide what was stored before it
        if as_json:
            show_receipts(receipts)
    if as_json:
        return
    stored = sum(receipt.was_created for receipt in receipts)
    before = len(receipts) - stored
    points = sum(receipt.points for receipt in receipts if receipt.was_created or dry_run)
    if dry_run:
        typer.echo(f"{path}: {before} reports with {points} points would be stored")
    else:
        typer.echo(f"{path}: {stored} reports with {points} points stored, {before} already stored")

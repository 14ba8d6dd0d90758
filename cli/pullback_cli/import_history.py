"""`pullback import`: the history another tool has kept, commit by commit."""

from pathlib import Path
from typing import Annotated

import typer

from pullback_cli.refusals import RefusalError, needs
from pullback_cli.upload import DEFAULT_SERVER, Server, TokenFile


@needs("service")
def import_history(
    path: Annotated[Path, typer.Argument(help="asv's `results`, a data.js, or a folder of GradBench's nightlies.")],
    *,
    project: Annotated[str, typer.Option(help="Project the history belongs to.")],
    machine: Annotated[str | None, typer.Option(help="Machine it was measured on; default: the file's.")] = None,
    branch: Annotated[str | None, typer.Option(help="Branch of its commits.")] = None,
    direction: Annotated[str | None, typer.Option(help="smaller or bigger, where the files do not say.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Store nothing; say what would be stored.")] = False,
    server: Server = DEFAULT_SERVER,
    token_file: TokenFile = None,
) -> None:
    """Import a history, one report for each commit; safe to repeat, and to continue after an interruption.

    Examples:
    pullback import .asv/results --project parser

    pullback import gh-pages/dev/bench/data.js --project parser --machine ci
    """
    from pullback_cli.uploading.histories import pieces_of  # noqa: PLC0415 - only when it runs
    from pullback_cli.uploading.sending import Uploads  # noqa: PLC0415 - httpx is of an extra
    from pullback_service.errors import RequestError  # noqa: PLC0415 - of an extra

    said = {
        "project": project,
        "machine": machine,
        "branch": branch,
        "direction": direction,
        "dry_run": dry_run or None,
    }
    stored = before = points = 0
    try:
        with Uploads(server, token_file) as uploads:
            for piece in pieces_of(path):
                receipt = uploads.send(piece.body, {**said, **piece.said}, name=f"{path}: {piece.name}")
                stored += receipt.was_created
                before += not receipt.was_created
                points += receipt.points if receipt.was_created or dry_run else 0
    except RequestError as error:
        raise RefusalError(f"{path}: {error.detail}") from error
    if dry_run:
        typer.echo(f"{path}: {before} reports with {points} points would be stored")
    else:
        typer.echo(f"{path}: {stored} reports with {points} points stored, {before} were stored before")

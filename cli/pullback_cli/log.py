"""`pullback log`: send the history of a branch to the service, so that results are placed at their commits."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pullback_cli.options import AsJson
from pullback_cli.server_option import DEFAULT_SERVER, Server
from pullback_cli.uploading.git_log import first_parents, reason_of
from pullback_cli.usage_errors import RefusalError, needs
from pullback_runners.git import output_of

if TYPE_CHECKING:
    from pullback_service.client import models

MOST = 500


@needs("runner")
def log(
    *,
    project: Annotated[str, typer.Option(help="Project of the commits.")],
    server: Server = DEFAULT_SERVER,
    repository: Annotated[Path, typer.Option(help="Clone or mirror to read.")] = Path(),
    branch: Annotated[
        list[str] | None, typer.Option(help="Branch to send; repeatable; default: the one checked out.")
    ] = None,
    revision: Annotated[
        str | None,
        typer.Option(help="Last commit of the branch, if no branch of that name is checked out, as in CI."),
    ] = None,
    most: Annotated[int, typer.Option(min=1, max=5000, help="How many commits back.")] = MOST,
    token_file: Annotated[
        Path | None, typer.Option(envvar="PULLBACK_TOKEN_FILE", help="File with a token with the scope upload.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Send the history of a branch to a service: parents, authors, times and titles of commits, no content.

    Results are placed at their commits, whenever they are uploaded; a branch that lost commits is shown as force-pushed. Sending the same log again changes nothing.

    Examples:
    pullback log --project demo

    pullback log --project demo --branch main --revision "$SHA" --server https://pullback.example --token-file token
    """
    from pullback_cli.services import client_of, refusal_of
    from pullback_service.client import ClientError, models

    names = branch or [_checked_out(repository)]
    if revision is not None and len(names) != 1:
        raise RefusalError("--revision needs one --branch")
    receipts = []
    with client_of(server, token_file) as client:
        for name in names:
            commits = first_parents(repository, revision or name, most)
            if commits is None:
                raise _unreadable(
                    repository, "rev-parse", revision or name, remedy="name a branch or commit this clone has"
                )
            statement = models.LogStatement.model_validate({"project": project, "branch": name, "commits": commits})
            try:
                receipts.append(client.tell_log(statement))
            except ClientError as error:
                raise refusal_of(error, subject=f"branch {name}: ") from error
    if as_json:
        typer.echo(json.dumps([receipt.model_dump(mode="json") for receipt in receipts], indent=2))
        return
    for receipt in receipts:
        known = receipt.branch
        assert known is not None  # noqa: S101 - each log was of a branch
        gaps = f", {known.gaps} gaps" if known.gaps else ""
        typer.echo(f"{known.name}: {learnt_in_words(receipt)}{gaps}")


def learnt_in_words(receipt: "models.BranchReceipt") -> str:
    """The effect of an upload in words: commits that were new, and those known by their bare hash before."""
    assert receipt.branch is not None  # noqa: S101 - the log was of a branch
    completed = f", {receipt.completed_commits} completed" if receipt.completed_commits else ""
    return f"{receipt.new_commits} new commits{completed}, {receipt.branch.commits} known"


def _checked_out(repository: Path) -> str:
    command = ("symbolic-ref", "--quiet", "--short", "HEAD")
    output = output_of(repository, *command)
    if output is None:
        raise _unreadable(repository, *command, remedy="name the branch with --branch")
    return output.strip()


def _unreadable(repository: Path, *command: str, remedy: str) -> RefusalError:
    return RefusalError(f"git cannot read {repository} ({reason_of(repository, *command)}): {remedy}")

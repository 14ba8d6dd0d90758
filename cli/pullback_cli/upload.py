"""`pullback upload`: results of any tool to a service."""

import json
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pullback_cli.log import learnt_in_words
from pullback_cli.options import AsJson, TokenFile
from pullback_cli.receipt_text import changes_in_words, commit_page
from pullback_cli.server_option import DEFAULT_SERVER, Server
from pullback_cli.uploading import checkout
from pullback_cli.uploading.git_log import first_parents
from pullback_cli.uploading.rules import send_rules
from pullback_cli.usage_errors import RefusalError, needs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pullback_cli.uploading.request import Uploads
    from pullback_service.client import models


@needs("runner")
def upload(
    paths: Annotated[list[Path], typer.Argument(help="Report, or files or folder (criterion, asv) of another tool.")],
    *,
    project: Annotated[str | None, typer.Option(help="Required unless the file is a Pullback report.")] = None,
    commit: Annotated[
        str | None, typer.Option(help="Full hash; default: the commit in the file, else git's HEAD.")
    ] = None,
    branch: Annotated[str | None, typer.Option(help="Default: the branch in the file, else git's.")] = None,
    machine: Annotated[
        str | None, typer.Option(help="A stable name for the machine; default: the one in the file.")
    ] = None,
    format_name: Annotated[
        str | None, typer.Option("--format", help="Format of the file, if it cannot be detected.")
    ] = None,
    variant: Annotated[str | None, typer.Option(help="How it was executed; default: external.")] = None,
    unit: Annotated[
        str | None, typer.Option(help="ns, or latency:ns,throughput:ops/s; for files without units.")
    ] = None,
    direction: Annotated[
        str | None, typer.Option(help="smaller, bigger, or one per metric; for files without directions.")
    ] = None,
    allow_dirty: Annotated[
        bool, typer.Option("--allow-dirty", help="Accept results measured with uncommitted changes.")
    ] = False,
    repository: Annotated[Path, typer.Option(help="Clone that was measured; default: the current one.")] = Path(),
    log: Annotated[
        int, typer.Option(min=0, max=5000, help="Number of commits of the branch's log to send; 0 for none.")
    ] = 100,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Store nothing; print what would be stored.")] = False,
    server: Server = DEFAULT_SERVER,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Upload results of pyperf, pytest-benchmark, asv, Google Benchmark, criterion, hyperfine and others, or our own.

    From a checkout of the trunk the rules of its `pullback.toml` are sent too, as `pullback rules` does.

    Examples:
    pullback upload bench.json

    pullback upload target/criterion --project parser --machine ci --server https://pullback.example

    pullback upload results.json --project parser --machine ci --unit ns --direction smaller --dry-run
    """
    from pullback_cli.uploading.request import Uploads
    from pullback_cli.uploading.request_bodies import body_of

    parameters = {
        "project": project,
        "commit": commit,
        "branch": branch,
        "machine": machine,
        "format": format_name,
        "variant": variant,
        "unit": unit,
        "direction": direction,
        "allow_dirty": allow_dirty or None,
        "dry_run": dry_run or None,
    }
    with Uploads(server, token_file) as uploads:
        logs = _Logs(uploads, repository, 0 if dry_run else log)
        receipts = []
        try:
            bodies = [body_of(path) for path in paths]  # one that cannot be read is said before anything is sent
            for path, body in zip(paths, bodies, strict=True):
                receipts.append(_send(uploads, logs, body, parameters, path))
                if not as_json:
                    _tell(path, receipts[-1])
                logs.say(err=as_json)
        finally:  # a refusal does not hide what was stored before it
            if as_json:
                show_receipts(receipts)
        if not dry_run:
            send_rules(uploads.client, repository, branch, {receipt.project for receipt in receipts}, err=as_json)
        if not as_json:
            _tell_changes(uploads, receipts)


def _send(
    uploads: "Uploads", logs: "_Logs", body: bytes, parameters: dict[str, Any], path: Path
) -> "models.UploadReceipt":
    """Send a file; what it leaves unsaid of the commit is what is checked out here."""
    from pullback_cli.uploading.request import MissingParameterError

    logs.tell(parameters["project"], parameters["branch"], parameters["commit"])
    try:
        receipt = uploads.send(body, parameters, name=str(path))
    except MissingParameterError as missing:
        if "commit" not in missing.reasons or not checkout.is_one(logs.repository):
            raise
        others = missing.without("commit")  # git knows it
        if others is not None:
            raise others from missing
        here = checkout.head(logs.repository)
    else:
        logs.tell(
            receipt.project, parameters["branch"] or receipt.branch or logs.branch_of(receipt.commit), receipt.commit
        )
        return receipt
    if here.dirty and not parameters["allow_dirty"]:
        raise RefusalError(
            f"{path}: this checkout has uncommitted changes, so {here.sha[:10]} was not measured as it is; commit them, "
            "or add --allow-dirty"
        )
    placed = {
        **parameters,
        "commit": here.sha,
        "branch": parameters["branch"] or here.branch,
        "authored_at": None if here.authored_at is None else datetime.fromisoformat(here.authored_at),
        "dirty": here.dirty or None,
    }
    logs.tell(parameters["project"], placed["branch"], here.sha)
    return uploads.send(body, placed, name=str(path))


def show_receipts(receipts: "Sequence[models.UploadReceipt]") -> None:
    """Print the service's answers, with whether each upload stored something."""
    shown = [{**receipt.model_dump(mode="json"), "created": receipt.was_created} for receipt in receipts]
    typer.echo(json.dumps(shown, indent=2))


def _tell(path: Path, receipt: "models.UploadReceipt") -> None:
    what = f"{_counted(receipt.points, 'point')} of {_counted(receipt.cases, 'case')}"
    failures = f", {_counted(receipt.failures, 'failure')}" if receipt.failures else ""
    state = "would be stored" if receipt.dry_run else "stored" if receipt.was_created else "already stored"
    typer.echo(f"{path}: {receipt.format}, {what}{failures} at {receipt.commit[:10]} {state}")
    for note in receipt.notes:
        typer.echo(f"  note: {note}")
    for point in receipt.preview or ():
        typer.echo(
            f"  {point.case} {point.variant} {point.metric} = {point.value:g} {point.unit} ({point.direction} is better)"
        )


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _tell_changes(uploads: "Uploads", receipts: "Sequence[models.UploadReceipt]") -> None:
    """Print the addresses of the commits' pages, and what changed at each."""
    stored = [receipt for receipt in receipts if not receipt.dry_run]
    for project, sha in dict.fromkeys((receipt.project, receipt.commit) for receipt in stored):
        if changed := changes_in_words(uploads.client, project, sha):
            typer.echo(f"{sha[:10]} {changed}")
        typer.echo(f"More at {commit_page(uploads.server, project, sha)}")


class _Logs:
    """The histories of branches up to measured commits, each sent once.

    Before the upload where that is possible: a commit that is already on the branch when its log arrives may as well be
    an old one, so that a force-push would go unnoticed.
    """

    def __init__(self, uploads: "Uploads", repository: Path, most: int) -> None:
        self.repository = repository
        self._uploads = uploads
        self._most = most
        self._told: set[tuple[str, str]] = set()
        self._lines: list[str] = []

    def tell(self, project: str | None, branch: str | None, sha: str | None) -> None:
        """Tell the service the first parents of a commit, where all is known and this clone has it."""
        from pullback_service.client import ClientError, models

        if not self._most or project is None or branch is None or sha is None or (branch, sha) in self._told:
            return
        self._told.add((branch, sha))
        commits = first_parents(self.repository, sha, self._most)
        if not commits:
            return  # measured elsewhere
        statement = models.LogStatement.model_validate({"project": project, "branch": branch, "commits": commits})
        try:
            learnt = self._uploads.client.tell_log(statement)
        except ClientError as error:
            self._lines.append(f"  note: the log of {branch} could not be sent ({error}); send it with `pullback log`")
            return
        known = learnt.branch
        assert known is not None  # noqa: S101 - it was named
        gaps = f", {known.gaps} gaps in its history" if known.gaps else ""
        forced = f", force-pushed from {known.forced_from[:10]}" if known.forced_from else ""
        self._lines.append(f"  {branch}: {learnt_in_words(learnt)}{gaps}{forced}")

    def branch_of(self, sha: str) -> str | None:
        """The branch checked out here, where the commit is on it; not asked where nothing is told."""
        return checkout.branch_of(self.repository, sha) if self._most else None

    def say(self, *, err: bool) -> None:
        """Print what came of it."""
        for line in self._lines:
            typer.echo(line, err=err)
        self._lines.clear()

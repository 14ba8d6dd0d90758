"""`pullback upload`: results of any tool to a service."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pullback_cli.refusals import RefusalError, needs
from pullback_cli.uploading import checkout

if TYPE_CHECKING:
    from pullback_cli.uploading.sending import Uploads

DEFAULT_SERVER = "http://127.0.0.1:8000"
Server = Annotated[str, typer.Option(envvar="PULLBACK_SERVER", help="Address of the service.")]
TokenFile = Annotated[
    Path | None, typer.Option(envvar="PULLBACK_TOKEN_FILE", help="File with the token; or set PULLBACK_TOKEN.")
]


@needs("service")
def upload(
    paths: Annotated[list[Path], typer.Argument(help="Files of a tool, or the folder it writes (criterion, asv).")],
    *,
    project: Annotated[str | None, typer.Option(help="Needed unless the file is a report of ours.")] = None,
    commit: Annotated[str | None, typer.Option(help="Full hash; default: what the file says, else git's HEAD.")] = None,
    branch: Annotated[str | None, typer.Option(help="Default: what the file says, else git's.")] = None,
    machine: Annotated[str | None, typer.Option(help="A name that stays from run to run; default: the file's.")] = None,
    format_name: Annotated[str | None, typer.Option("--format", help="Where the content does not tell.")] = None,
    variant: Annotated[str | None, typer.Option(help="How it was executed; default: external.")] = None,
    unit: Annotated[str | None, typer.Option(help="ns, or latency:ns,throughput:ops/s; for files without.")] = None,
    direction: Annotated[
        str | None, typer.Option(help="smaller, bigger, or one per metric; for files without.")
    ] = None,
    allow_dirty: Annotated[bool, typer.Option("--allow-dirty", help="Keep what uncommitted changes measured.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Store nothing; show what would be stored.")] = False,
    server: Server = DEFAULT_SERVER,
    token_file: TokenFile = None,
) -> None:
    """Upload results of pyperf, pytest-benchmark, asv, Google Benchmark, criterion, hyperfine and others, or our own.

    Examples:
    pullback upload bench.json

    pullback upload target/criterion --project parser --machine ci --server https://pullback.example

    pullback upload results.json --project parser --machine ci --unit ns --direction smaller --dry-run
    """
    from pullback_cli.uploading.packing import body_of  # noqa: PLC0415 - only when it runs
    from pullback_cli.uploading.sending import Uploads  # noqa: PLC0415 - httpx is of an extra

    said = {
        "project": project,
        "commit": commit,
        "branch": branch,
        "machine": machine,
        "format": format_name,
        "variant": variant,
        "unit": unit,
        "direction": direction,
        "allow_dirty": "true" if allow_dirty else None,
        "dry_run": "true" if dry_run else None,
    }
    with Uploads(server, token_file) as uploads:
        for path in paths:
            _tell(path, *_send(uploads, body_of(path), said, path, allow_dirty=allow_dirty))


def _send(
    uploads: "Uploads", body: bytes, said: dict[str, str | None], path: Path, *, allow_dirty: bool
) -> tuple[dict[str, Any], bool]:
    """Send a file; what it leaves unsaid of the commit is what is checked out here."""
    from pullback_cli.uploading.sending import MissingError  # noqa: PLC0415 - as above

    try:
        return uploads.send(body, said, name=str(path))
    except MissingError as missing:
        if "commit" not in missing.names or said["commit"] is not None or missing.names - {"commit"}:
            raise
        here = checkout.head()
    if here.dirty and not allow_dirty:
        raise RefusalError(
            f"{path}: this checkout has uncommitted changes, so {here.sha[:10]} is not what was measured; commit them, "
            "or add --allow-dirty"
        )
    here = replace(here, branch=said["branch"] or here.branch)
    placed = {
        **said,
        "commit": here.sha,
        "branch": here.branch,
        "authored_at": here.authored_at,
        "dirty": "true" if here.dirty else None,
    }
    return uploads.send(body, placed, name=str(path))


def _tell(path: Path, receipt: dict[str, Any], created: bool) -> None:  # noqa: FBT001 - the second half of one answer
    what = f"{receipt['points']} points of {receipt['cases']} cases"
    failures = f", {receipt['failures']} failures" if receipt["failures"] else ""
    state = "would be stored" if receipt["dry_run"] else "stored" if created else "stored before"
    typer.echo(f"{path}: {receipt['format']}, {what}{failures} at {receipt['commit'][:10]} {state}: {receipt['url']}")
    for note in receipt["notes"]:
        typer.echo(f"  note: {note}")
    for point in receipt["preview"] or ():
        typer.echo(
            f"  {point['case']} {point['variant']} {point['metric']} = {point['value']:g} {point['unit']}"
            f" ({point['direction']} is better)"
        )

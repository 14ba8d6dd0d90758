"""`pullback db`: backing up, restoring, upgrading, checking, rebuilding and looking anew at the service's database."""

import json
from pathlib import Path
from typing import Annotated

import typer

from pullback_cli.options import AsJson
from pullback_cli.service_database import DEFAULT_DATA, DataFolder, database_url
from pullback_cli.usage_errors import needs

app = typer.Typer(no_args_is_help=True)


@app.callback()
def db() -> None:
    """Back up, restore, upgrade and check the database: the one of DATABASE_URL, or the one of `pullback up` in --data.

    Examples:
    pullback db backup nightly.backup

    pullback db check --json
    """


@app.command()
@needs("service", "db backup")
def backup(
    *,
    file: Annotated[Path, typer.Argument(help="File to write.")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Overwrite an existing file.")] = False,
    data: DataFolder = DEFAULT_DATA,
    as_json: AsJson = False,
) -> None:
    """Back up the database to one file, from one snapshot; the service can keep running.

    Examples:
    pullback db backup nightly.backup --overwrite

    DATABASE_URL=postgresql://user@host/pullback pullback db backup "$(date +%F).backup"
    """
    url = database_url(data)

    from pullback_service.backups import back_up

    size = back_up(url, file, overwrite=overwrite)
    typer.echo(json.dumps({"file": str(file), "bytes": size}) if as_json else f"{file}: {size} bytes")


@app.command()
@needs("service", "db restore")
def restore(
    *,
    file: Annotated[Path, typer.Argument(help="File written by `pullback db backup`.")],
    replace: Annotated[bool, typer.Option("--replace", help="Delete the current data of the database.")] = False,
    data: DataFolder = DEFAULT_DATA,
    as_json: AsJson = False,
) -> None:
    """Restore a backup into an empty database, in one transaction. Stop API and workers first.

    Examples:
    DATABASE_URL=postgresql://user@host/empty pullback db restore nightly.backup

    pullback db restore nightly.backup --replace
    """
    url = database_url(data)

    from pullback_service import backups

    stands = backups.restore(url, file, replace=replace)
    if as_json:
        typer.echo(json.dumps({"migration": stands.current, "needs_upgrade": not stands.match}))
        return
    then = "" if stands.match else f"; this release needs {stands.head}: run `pullback db upgrade`"
    typer.echo(f"restored from {file}, at migration {stands.current}{then}")


@app.command()
@needs("service", "db upgrade")
def upgrade(*, data: DataFolder = DEFAULT_DATA, as_json: AsJson = False) -> None:
    """Migrate the database to this release's schema, like `pullback migrate`; also for an embedded database.

    Examples:
    pullback db upgrade

    DATABASE_URL=postgresql://user@host/pullback pullback db upgrade --json
    """
    url = database_url(data)

    from pullback_service import migrations

    before = migrations.revisions(url)
    migrations.upgrade(url)
    if as_json:
        typer.echo(json.dumps({"migration": before.head, "was": before.current}))
        return
    typer.echo(
        f"database at {before.head}" + (" already" if before.match else f", was at {before.current or 'nothing'}")
    )


@app.command()
@needs("service", "db check")
def check(*, data: DataFolder = DEFAULT_DATA, as_json: AsJson = False) -> None:
    """Check the database and print problems with their remedies; exit status 1 if there are any. Reads every point once.

    Examples:
    pullback db check

    pullback db check --json | jq -r '.findings[]'
    """
    url = database_url(data)

    from pullback_service import database_checks

    findings = database_checks.check(url)
    if as_json:
        typer.echo(json.dumps({"ok": not findings, "findings": findings}, indent=2))
    else:
        typer.echo("\n".join(findings) or "no problems found")
    raise typer.Exit(1 if findings else 0)


@app.command()
@needs("service", "db rebuild")
def rebuild(
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Change nothing; print how much would change.")] = False,
    data: DataFolder = DEFAULT_DATA,
    as_json: AsJson = False,
) -> None:
    """Recompute everything derived from raw values: medians, readings, steps, counts of projects.

    Run it after an upgrade if the release notes say so. It works in batches while the service is running, and can be interrupted and repeated; values whose raw data was deleted are left unchanged.

    Examples:
    pullback db rebuild --dry-run

    pullback db rebuild --json
    """
    url = database_url(data)

    import asyncio

    from pullback_service import models  # noqa: F401 - heavy, and an extra; every table
    from pullback_service.database_rebuild import rebuild_everything

    result = asyncio.run(rebuild_everything(url, write=not dry_run))
    parts = {"values": result.values, "readings": result.readings, "steps": result.steps}
    if as_json:
        counts = {name: {"looked_at": part.looked_at, "changed": part.changed} for name, part in parts.items()}
        typer.echo(json.dumps(counts | {"dry_run": dry_run}))
        return
    verb = "would change" if dry_run else "changed"
    typer.echo(f"values: {result.values.looked_at} checked, {result.values.changed} {verb}")
    typer.echo(f"readings: {result.readings.looked_at} points checked, {result.readings.changed} {verb}")
    typer.echo(f"steps: {result.steps.looked_at} commits checked, {result.steps.changed} {verb}")


@app.command()
@needs("service", "db detect")
def detect(
    *,
    project: Annotated[str | None, typer.Option(help="Only of this project; default: all.")] = None,
    data: DataFolder = DEFAULT_DATA,
    as_json: AsJson = False,
) -> None:
    """Run the detector of this release over all stored history, and list where its findings differ from the stored ones.

    Run it after `pullback db upgrade` and before the workers start. Nothing is written or announced. New (+): found only by this release; gone (-): found only by an earlier one; moved (~): begins at other commits. If it is interrupted, findings so far are listed.

    Examples:
    pullback db detect

    pullback db detect --project demo --json | jq '.[] | select(.kind == "new")'
    """
    url = database_url(data)

    from pullback_cli.db_detect import detect, show

    result, is_whole = detect(url, project)
    show(result, as_json=as_json)
    raise typer.Exit(130 if not is_whole else 1 if result else 0)


app.command("recompute", hidden=True)(rebuild)  # its name in 0.1, for one release more
